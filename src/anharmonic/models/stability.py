"""Telling the user of a constructor that the settings given can make states grow."""

from __future__ import annotations

import inspect
import warnings

from anharmonic import _checks


class StabilityWarning(UserWarning):
    """The settings given allow states that grow without bound."""


def warn_unstable(condition: str, values: str, advice: str) -> None:
    """Tells the caller of a constructor that a stability condition does not hold."""
    warnings.warn(
        _checks.message(f"for stable states {condition}", values, advice),
        StabilityWarning,
        stacklevel=levels_to_caller(),
    )


def levels_to_caller() -> int:
    """Counts the frames up to the first one outside this package's models."""
    frame = inspect.currentframe()
    level = 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("anharmonic.models"):
        frame = frame.f_back
        level += 1
    return level
