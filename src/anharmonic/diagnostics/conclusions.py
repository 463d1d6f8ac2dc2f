"""Conclusions from measurements: sentences with problems and remedies, if any."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

FADED, EXPLODED = 1e-4, 1e3
"""Factor by which gradients must change over time to count as vanished or exploded."""
GROWN = 10.0
"""Growth of an energy along a sequence that is reported."""
SMOOTHED = 1e-3
"""Remaining share of the Dirichlet energy that counts as oversmoothing."""
SHUT = 0.05
"""Mean rate below which a gate is nearly closed."""
STRAIGHT = 0.8
"""Smallest r² of a power law."""
MISSED = 50.0
"""Recall in percent below which a class is missed more often than found."""
SHORT = 0.5
"""Share of the recipe's steps below which a training is short."""
_FEW_CLASSES = 5
MOVED = 10.0
"""Adjoint score above which gradients change much."""


def gradients_over_time(
    distances: Sequence[int], sizes: Sequence[float], *, has_dt: bool, readout: str = "last"
) -> tuple[str, ...]:
    """Report whether gradients vanish or explode with distance, where, and what helps.

    Example:
        >>> gradients_over_time([0, 10, 20], [1.0, 1e-3, 1e-6], has_dt=True)[0][:50]
        'Gradients vanish: over 20 steps they shrink to 1e-'
    """
    if not sizes or not math.isfinite(sizes[0]) or sizes[0] <= 0:
        return ()
    ratios = [size / sizes[0] for size in sizes]
    step = ", a smaller dt" if has_dt else ""
    if not all(map(math.isfinite, ratios)) or max(ratios) > EXPLODED:
        most = max((r for r in ratios if math.isfinite(r)), default=math.inf)
        return (
            f"Gradients explode: further back they are up to {most:.2g} times as large. What "
            f"helps: a lower lr{step}; clipping alone (--clip-norm) hides it.",
        )
    if ratios[-1] < FADED:
        remedies = ["--readout mean"] * (readout == "last")
        remedies += ["--patch for fewer steps"] * (readout != "all")
        remedies += ["a smaller dt"] * has_dt
        until = next(d for d, ratio in zip(distances, ratios, strict=True) if ratio < 0.01)
        return (
            f"Gradients vanish: over {distances[-1]} steps they shrink to {ratios[-1]:.1g} of "
            f"themselves, below a hundredth after {until}. Inputs further back are hardly "
            f"learned. Try {', '.join(remedies) or 'another model'}.",
        )
    return ()


def energies(names: Sequence[str], along: Sequence[Sequence[float]]) -> tuple[str, ...]:
    """Report whether energies grow along a sequence.

    Example:
        >>> energies(["layer 1"], [[6.0] * 10 + [958.0] * 10])[0][:40]
        'The energy of layer 1 grows from 6 to 95'
    """
    said = []
    for name, values in zip(names, along, strict=True):
        early, late = values[len(values) // 10], max(values[-max(1, len(values) // 10) :])
        if early > 0 and late > GROWN * early:
            said.append(
                f"The energy of {name} grows from {early:.3g} to {late:.3g} along the sequence: "
                "a smaller dt limits it."
            )
    return tuple(said)


def chaos(exponent: float, steps: int) -> tuple[str, ...]:
    """Report whether small differences grow too much to predict the far future.

    Example:
        >>> chaos(0.1, 100)[0][:37]
        'Small differences double every 6.9 st'
    """
    if not exponent * steps >= math.log(EXPLODED):  # nor if it is NaN
        return ()
    return (
        f"Small differences double every {math.log(2) / exponent:.2g} steps: outputs far ahead "
        "depend on noise. A smaller dt or more damping helps.",
    )


def smoothing(energy: Sequence[float], has_dt: bool = False) -> tuple[str, ...]:
    """Report whether neighbours become alike over the layers; `has_dt` means GraphCON.

    Example:
        >>> smoothing([1.0, 0.1, 1e-5])[0][:54]
        'Neighbours become alike: the Dirichlet energy falls to'
    """
    if energy[0] <= 0 or energy[-1] >= SMOOTHED * energy[0]:
        return ()
    remedy = "a smaller dt" if has_dt else "GraphCON"
    return (
        f"Neighbours become alike: the Dirichlet energy falls to {energy[-1] / energy[0]:.1g} of "
        f"itself over {len(energy) - 1} layers. Try {remedy}, fewer layers, or GradientGating "
        "around the convolution.",
    )


def gate(rates: Sequence[float]) -> tuple[str, ...]:
    """Report whether the gate of Gradient Gating is nearly closed.

    Example:
        >>> gate([0.01, 0.02])[0][:54]
        'The gate is nearly closed: its mean rate is 0.015, so '
    """
    mean = sum(rates) / len(rates)
    if mean >= SHUT:
        return ()
    return (
        f"The gate is nearly closed: its mean rate is {mean:.2g}, so nodes get almost nothing from "
        "their neighbours. Try --scale-rows, --p 1, a larger --gate-scale, or less --weight-decay.",
    )


def adjoint(score: float) -> tuple[str, ...]:
    """Report whether gradients change much over time.

    Example:
        >>> adjoint(25.0)[0][:34]
        'Gradients change by a factor of 25'
    """
    if score < MOVED:
        return ()
    return (f'Gradients change by a factor of {score:.3g} over time: dynamics="skew" limits that.',)


def recalls(
    by_class: Mapping[str, float], scored: str, *, are_labels: bool = False
) -> tuple[str, ...]:
    """Report classes that are missed more often than found, by their recall in percent.

    Example:
        >>> recalls({"calm": 95.0, "fault": 20.0}, "test")[0][:61]
        'Classes mostly missed in the test set: fault (recall 20 %). T'
    """
    missed = {name: recall for name, recall in by_class.items() if recall < MISSED}
    if not missed:
        return ()
    worst = sorted(missed.items(), key=lambda pair: pair[1])
    named = ", ".join(f"{name} (recall {recall:.0f} %)" for name, recall in worst[:_FEW_CLASSES])
    kind = "labels" if are_labels else "classes"
    more = f" and {len(worst) - _FEW_CLASSES} more {kind}" if len(worst) > _FEW_CLASSES else ""
    remedy = "more examples, longer training, or --class-weights balanced"
    if are_labels:
        remedy = "more examples or longer training"
    where = f"mostly missed in the {scored} set"
    return (f"{kind.capitalize()} {where}: {named}{more}. Try {remedy}.",)


def budget(steps: int, usual: int) -> tuple[str, ...]:
    """Report whether a training was much shorter than the recipe's.

    Example:
        >>> budget(60, 2000)[0][:58]
        'The run made 60 optimiser steps. The default is 2,000: lea'
    """
    if steps >= SHORT * usual:
        return ()
    return (
        f"The run made {steps:,} optimiser steps. The default is {usual:,}: leave out --epochs "
        "to get it.",
    )


def above_baseline(metric: str, value: float, baseline: float, better: bool) -> tuple[str, ...]:
    """Report whether a model is hardly better than the baseline.

    Example:
        >>> above_baseline("mse", 0.166, 0.167, False)
        ('The model is hardly better than the baseline: mse 0.166 against 0.167.',)
    """
    if better:
        return ()
    return (
        f"The model is hardly better than the baseline: {metric} {value:.4g} against "
        f"{baseline:.4g}.",
    )


def training(
    loss: Sequence[float],
    valid_loss: Sequence[float],
    norms: Sequence[float],
    epochs: Sequence[float] = (),
    takes_noise: bool = True,
) -> tuple[str, ...]:
    """Report whether a training was too short, too long or unstable.

    Args:
        loss: Training loss by epoch.
        valid_loss: Validation loss by epoch; may be empty.
        norms: Largest gradient norm by epoch; may be empty.
        epochs: The epochs of these values, if a long curve was thinned; empty for 1, 2, 3, ...
        takes_noise: Whether noise can be added to the inputs.

    Example:
        >>> training([2.0, 1.5, 1.1, 0.8], [], [])[0][:44]
        'The training loss still falls by 27 % in the'
    """
    said = []
    epochs = epochs or range(1, 1 + len(loss))
    if len(valid_loss) > 3 and min(valid_loss) > 0 and valid_loss[-1] > 1.2 * min(valid_loss):
        best = valid_loss.index(min(valid_loss))
        ratio = valid_loss[-1] / valid_loss[best]
        noise = "--input-noise, " * takes_noise
        said.append(
            f"The validation loss is lowest in epoch {epochs[best]:.0f} and {ratio:.2g} times as "
            f"large at the end: the model overfits. Try {noise}--weight-decay or a smaller "
            "--hidden-size."
        )
    elif len(loss) > 3 and 0 < loss[-1] < loss[-2]:
        fall = 1 - (loss[-1] / loss[-2]) ** (1 / (epochs[-1] - epochs[-2]))
        if fall > 0.1:
            said.append(
                f"The training loss still falls by {100 * fall:.0f} % in the last epoch: more "
                "epochs (--epochs) may help."
            )
    typical = sorted(norms)[len(norms) // 2] if norms else 0.0
    if typical > 0 and max(norms) > 100 * typical:
        said.append(
            f"The largest gradient, {max(norms):.3g}, is {max(norms) / typical:.2g} times the "
            "usual largest of an epoch: a lower lr or a smaller dt makes training smoother."
        )
    return tuple(said)
