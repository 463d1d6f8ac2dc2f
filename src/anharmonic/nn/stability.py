"""Warnings about settings, or gaps between samples, that let states grow or vanish."""

from __future__ import annotations

import warnings

from anharmonic import _checks


class StabilityWarning(UserWarning):
    """The settings allow states to grow without bound, or to vanish in a deep network.

    Example:
        >>> import anharmonic as ah
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = ah.LEM(1, 4, dt=3.0)
        >>> caught[0].category.__name__
        'StabilityWarning'
    """


def warn_unstable(condition: str, values: str, advice: str, longest: float = 1.0) -> bool:
    """Warn the caller if a stability condition does not hold.

    ``longest`` is the largest ``elapsed``, which multiplies dt. Returns True.

    Example:
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     warn_unstable("dt must be < 2", "dt=3", "lower dt")
        True
    """
    if longest != 1:
        values += f", elapsed up to {longest:g}"
        advice += "; divide elapsed by the usual time between samples; or make it an input channel,"
        advice += " in a run with elapsed='channel'"
    warnings.warn(
        _checks.message(f"for stable states {condition}", values, advice),
        StabilityWarning,
        stacklevel=_checks.levels_to_caller("anharmonic.nn", "torch.nn.modules.module"),
    )
    return True


def check_learned(name: str, value: float, learned: bool) -> None:
    """Refuse a learned scalar that starts at 0, where relu has no gradient."""
    _checks.require(
        not learned or value > 0, name, value,
        f"> 0 if it is learned, as relu(raw_{name}) never leaves 0", "start with a small number",
    )  # fmt: skip
