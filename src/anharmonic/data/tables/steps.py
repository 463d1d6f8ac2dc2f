"""Columns that are the steps of a row: numbered, dated, or named after a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anharmonic._checks import message
from anharmonic.data.tables.dates import TwoMeaningsError, parse_dates

_NUMBERED = re.compile(r"(.*?)[ _.\[\]-]*(\d+)\]?")
_ALONE = re.compile(r"([+-]?\d+(?:\.\d+)?) ?(?:s|sec|ms|us|µs|ns|min|h|hz|nm)?", re.IGNORECASE)
_YEAR = re.compile(r"(\d{4}) \[YR\1\]")


@dataclass(frozen=True)
class StepColumns:
    """The columns of steps, in the order of their numbers.

    Attributes:
        channels: The columns of every channel by what is before the number.
        numbers: The numbers of every channel, which should be the same.
        others: Columns that are no steps.
        dated: Whether the steps are dates or years, which go on in newer tables.
    """

    channels: dict[str, list[str]]
    numbers: dict[str, tuple[float, ...]]
    others: list[str]
    dated: bool = False

    @property
    def names(self) -> list[str]:
        """All columns of steps, channel by channel."""
        return [name for of in self.channels.values() for name in of]

    @property
    def count(self) -> int:
        """Steps of the longest channel."""
        return max(len(of) for of in self.channels.values())

    def check(self, where: str) -> None:
        """Refuses channels of unequal steps, and steps that lack.

        Raises:
            ValueError: If there are any; names them.
        """
        first, *rest = self.numbers
        for other in rest:
            if self.numbers[other] != self.numbers[first]:
                came = (
                    f"{len(self.numbers[first])} of {first!r} and {len(self.numbers[other])} of "
                    f"{other!r}"
                )
                advice = "name those that are no steps with ignore=[...] (--ignore COLUMN...)"
                expected = f"columns of steps in {where} must have the same numbers in all channels"
                raise ValueError(message(expected, came, advice))
        steps = self.numbers[first]
        gaps = np.diff(steps)
        if self.dated or any(step % 1 for step in steps) or len(set(gaps.tolist())) < 2:
            return
        lacking = sorted(set(range(int(steps[0]), int(steps[-1]))) - {int(s) for s in steps})
        name = self.channels[first][0]
        here = name.rstrip("]")[: -len(str(int(steps[0])))] if name else ""
        came = f"{name!r} to {self.channels[first][-1]!r} without {here}{lacking[0]}"
        advice = "add it with empty cells, or name what is no step with --ignore"
        expected = f"columns of steps in {where} must be numbered without a gap"
        raise ValueError(message(expected, f"{came} ({len(lacking)} such steps)", advice))


def step_columns(names: Sequence[str]) -> StepColumns | None:
    """Finds the columns of steps; None if there are none.

    Example:
        >>> step_columns(["label", "v0", "v10", "v1", "v2", "v3", "v4"]).names
        ['v0', 'v1', 'v2', 'v3', 'v4', 'v10']
        >>> step_columns(["a_0", "b_0", "a_1", "b_1"]).channels
        {'a': ['a_0', 'a_1'], 'b': ['b_0', 'b_1']}
        >>> step_columns(["CO2", "NO2", "temperature"])
    """
    dates = _dated(names)
    found: dict[str, dict[float, str]] = {}
    years = bool(dates)
    for name in names:
        place = dates.get(name) if dates else _number(name)
        if place is None:
            continue
        prefix, number = place
        if number in found.setdefault(prefix, {}):
            return None
        found[prefix][number] = name
        years = years or _YEAR.fullmatch(name.strip()) is not None
    if not dates:
        found = {prefix: steps for prefix, steps in found.items() if _are_steps(sorted(steps))}
    if not found:
        return None
    largest = max(len(steps) for steps in found.values())
    found = {prefix: steps for prefix, steps in found.items() if 2 * len(steps) > largest}
    ordered = {prefix: dict(sorted(steps.items())) for prefix, steps in found.items()}
    taken = {name for steps in ordered.values() for name in steps.values()}
    if set(ordered) == {""}:
        years = years or all(1500 <= step <= 2300 and step % 1 == 0 for step in ordered[""])
    return StepColumns(
        {prefix: list(steps.values()) for prefix, steps in ordered.items()},
        {prefix: tuple(steps) for prefix, steps in ordered.items()},
        [name for name in names if name not in taken],
        years,
    )


def _dated(names: Sequence[str]) -> dict[str, tuple[str, float]]:
    """Names that are dates, if there are three or more."""
    could = [
        name for name in names if re.search(r"\d[-/.]\d", name) and _ALONE.fullmatch(name) is None
    ]
    try:
        dates = parse_dates(could) if len(could) > 2 else None
    except (TwoMeaningsError, ValueError):
        dates = None
    if dates is None:
        return {}
    days = dates[0].astype("M8[s]").astype(np.int64)
    return {name: ("", float(day)) for name, day in zip(could, days, strict=True)}


def _number(name: str) -> tuple[str, float] | None:
    name = name.strip()
    if found := _YEAR.fullmatch(name) or _ALONE.fullmatch(name):
        return "", float(found[1])
    if found := _NUMBERED.fullmatch(name):
        return found[1], float(found[2])
    return None


def _are_steps(numbers: list[float]) -> bool:
    """Whether numbers follow each other: a few may lack."""
    if len(numbers) < 3:
        return numbers in ([0.0, 1.0], [1.0, 2.0])
    if any(number % 1 for number in numbers):
        return True
    even = len(set(np.diff(numbers).tolist())) == 1
    return even or numbers[-1] - numbers[0] <= 2 * (len(numbers) - 1)
