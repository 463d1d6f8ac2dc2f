"""Tables with one row per sequence, with steps as columns or lists as cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import message, require
from anharmonic.data.columns import numbered_kind
from anharmonic.data.sequences import Sequences, in_float32
from anharmonic.data.tables.cells import (
    Table,
    clear_times,
    have_zone,
    is_list,
    keys,
    known_labels,
    numbers,
    quoted,
)
from anharmonic.data.tables.dates import parse_clock, parse_dates


def read_wide(table: Table, roles: dict[str, str], values: Sequence[str]) -> Sequences:
    """Read sequences whose steps are columns; empty cells at the end of a row end the sequence.

    Numbered columns are sorted by number. Several names mean several channels: `a_0, a_1, b_0,
    b_1`. Other columns keep the order of the table.
    """
    advice = "a row per sequence: its values in columns, and a column with the target"
    require(bool(values), f"value columns in {table.where}", list(values), "at least one", advice)
    found = step_columns(values) if table.header else None
    channels = {"": list(values)}
    if found is not None and not found.others:
        found.check(table.where)
        channels = {prefix: list(steps.values()) for prefix, steps in found.channels.items()}
    elif table.header:
        check_steps_last(values, table.where)
    if len(next(iter(channels.values()))) < 2:
        came, advice = f"one, {values[0]!r}", "give every step a column, or a row (--layout long)"
        expected = f"sequences of {table.where} must have more steps than one"
        raise ValueError(message(expected, came, advice))
    columns = [np.stack([numbers(table, name) for name in of], 1) for of in channels.values()]
    x = np.stack(columns, axis=2)
    known = (~np.isnan(x)).any(axis=2)
    sizes = np.where(known, np.arange(1, x.shape[1] + 1), 0).max(axis=1)
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        came = f"none in {table.place(int(empty[0]))} ({len(empty)} such rows)"
        raise ValueError(message(f"every row of {table.where} must hold values", came, "remove it"))
    flat = x[np.arange(x.shape[1]) < sizes[:, None]]
    named = tuple(channels) if len(channels) > 1 else ()
    return _rows(table, roles, flat, np.concatenate([[0], np.cumsum(sizes)]), named)


def read_nested(table: Table, roles: dict[str, str], values: Sequence[str]) -> Sequences:
    """Read sequences whose steps are the entries of list cells.

    A cell is `[T]` (one channel) or `[T][F]`. Several columns are several channels of equal length
    in a row. A list target has one entry per step.
    """
    advice = "give --layout wide or long, or leave it out: lists are read from .parquet only"
    require(bool(values), f"columns with lists in {table.where}", 0, "at least one", advice)
    parts = [_cells(table, name) for name in values]
    sizes = [np.array([len(cell) for cell in cells]) for cells in parts]
    for name, other in zip(values[1:], sizes[1:], strict=True):
        differ = np.flatnonzero(other != sizes[0])
        if len(differ):
            row = int(differ[0])
            came = f"{sizes[0][row]} and {other[row]} in {table.place(row)}"
            expected = f"{values[0]!r} and {name!r} of {table.where} must be equally long"
            raise ValueError(message(expected, came, "cut or resample them"))
    x = np.concatenate([np.concatenate(cells) for cells in parts], axis=1)
    wide = [cells[0].shape[1] for cells in parts]
    named = tuple(
        name if count == 1 else f"{name}_{channel}"
        for name, count in zip(values, wide, strict=True)
        for channel in range(count)
    )
    return _rows(table, roles, x, np.concatenate([[0], np.cumsum(sizes[0])]), named)


def _cells(table: Table, name: str) -> list[NDArray[np.float64]]:
    """Return list cells as `[T, F]`."""
    made: list[NDArray[np.float64]] = []
    for row, cell in enumerate(table.column(name).to_pylist()):
        place = f"{table.place(row)}, column {name!r}"
        try:
            values = np.array(cell, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.empty(())
        if values.ndim == 1:
            values = values[:, None]
        width = made[0].shape[1] if made else values.shape[-1] if values.ndim else 1
        if values.ndim != 2 or values.shape[1] != width:
            came = "an empty cell" if cell is None else f"{str(cell)[:60]} in {place}"
            expected = f"column {name!r} of {table.where} must hold lists of numbers, or of rows "
            expected += f"of {width} numbers, one for every step"
            raise ValueError(message(expected, came, "convert it"))
        made.append(values)
    return made


def _rows(
    table: Table,
    roles: dict[str, str],
    x: NDArray[np.float64],
    offsets: NDArray[np.int64],
    channels: tuple[str, ...],
) -> Sequences:
    """Return sequences with the information from other columns."""
    y: NDArray[Any] | None = None
    per_step = "target" in roles and is_list(table.column(roles["target"]).type)
    if per_step:
        y = _per_step(table, roles["target"], offsets)
    elif "target" in roles:
        y = known_labels(table, roles["target"])
    groups = keys(table, roles["group"], "group") if "group" in roles else None
    return Sequences(
        table.where,
        in_float32(x, table.where, channels),
        offsets,
        y,
        per_step,
        groups=groups,
        times=clear_times(table, roles["time"]) if "time" in roles else None,
        utc="time" in roles and have_zone(table, roles["time"]),
        # Unnamed rows get the name of their subject or recording.
        ids=keys(table, roles["id"], "id") if "id" in roles else groups,
        channels=channels,
    )


def _per_step(table: Table, name: str, offsets: NDArray[np.int64]) -> NDArray[Any]:
    cells = table.column(name).to_pylist()
    for row, (cell, steps) in enumerate(zip(cells, np.diff(offsets), strict=True)):
        if len(cell or ()) != steps:
            expected = f"the target {name!r} of {table.where} must have {steps} entries, one for "
            came, advice = f"{len(cell or ())} in {table.place(row)}", "or one per sequence"
            raise ValueError(message(f"{expected}every step", came, f"give one per step {advice}"))
    flat: NDArray[Any] = np.array([value for cell in cells for value in cell])
    fits, advice = flat.dtype.kind in "biufU", "fill the missing ones"
    require(fits, f"target {name!r} of {table.where}", str(flat.dtype), "numbers or text", advice)
    return flat[:, None] if flat.ndim == 1 else flat


_NUMBERED = re.compile(r"(.*?)[ _.\[\]-]*(\d+)\]?")
_ALONE = re.compile(r"([+-]?\d+(?:\.\d+)?) ?(?:s|sec|ms|us|µs|ns|min|h|hz|nm)?", re.IGNORECASE)
_YEAR = re.compile(r"(\d{4}) \[YR\1\]")


@dataclass(frozen=True)
class StepColumns:
    """The columns of steps by what is before their number, then by number, in this order.

    Dated steps, or years, go on in newer tables.
    """

    channels: dict[str, dict[float, str]]
    others: list[str]
    dated: bool = False

    @property
    def names(self) -> list[str]:
        """All columns of steps, channel by channel."""
        return [name for steps in self.channels.values() for name in steps.values()]

    @property
    def count(self) -> int:
        """Steps of the longest channel."""
        return max(map(len, self.channels.values()))

    def check(self, where: str) -> None:
        """Refuse channels of unequal steps, steps that lack, and steps that may be channels."""
        first, *rest = self.channels
        steps, names = list(self.channels[first]), list(self.channels[first].values())
        for other in rest:
            if list(self.channels[other]) != steps:
                came = f"{len(steps)} of {first!r} and {len(self.channels[other])} of {other!r}"
                advice = "name those that are not steps with --ignore COLUMN ... (ignore=[...])"
                expected = f"columns of steps in {where} must have the same numbers in all channels"
                raise ValueError(message(expected, came, advice))
        if len(self.channels) > len(steps):
            self._check_order(where)
        gaps = np.diff(steps)
        if self.dated or any(step % 1 for step in steps) or len(set(gaps.tolist())) < 2:
            return
        lacking = sorted(set(range(int(steps[0]), int(steps[-1]))) - {int(s) for s in steps})
        here = names[0].rstrip("]")[: -len(str(int(steps[0])))]
        came = f"{names[0]!r} to {names[-1]!r} without {here}{lacking[0]}"
        advice = "add it with empty cells, or name columns that are not steps with --ignore"
        expected = f"columns of steps in {where} must be numbered without a gap"
        raise ValueError(message(expected, f"{came} ({len(lacking)} such steps)", advice))

    def _check_order(self, where: str) -> None:
        """Refuse channels that may be steps: v_0_0, v_0_1, v_1_0, v_1_1, v_2_0, v_2_1."""
        inner = step_columns(list(self.channels))
        if inner is None or inner.others or len(inner.channels) > 1:
            return
        (stem,) = inner.channels
        if numbered_kind(stem, inner.count) == "channel":
            return
        came = f"{quoted(self.names, 6)}, {inner.count} channels of {self.count} steps"
        advice = "write the step last, as in a_0, a_1, b_0, b_1"
        expected = f"columns of {where} with two numbers must be clear"
        raise ValueError(message(expected, came, advice))


def step_columns(names: Sequence[str]) -> StepColumns | None:
    """Find the columns of steps; None if there are none.

    Example:
        >>> step_columns(["label", "v0", "v10", "v1", "v2", "v3", "v4"]).names
        ['v0', 'v1', 'v2', 'v3', 'v4', 'v10']
        >>> step_columns(["a_0", "b_0", "a_1", "b_1"]).channels
        {'a': {0.0: 'a_0', 1.0: 'a_1'}, 'b': {0.0: 'b_0', 1.0: 'b_1'}}
        >>> step_columns(["CO2", "NO2", "temperature"])
    """
    dates = _dated(names)
    clocks = {} if dates else _clocked(names)
    found: dict[str, dict[float, str]] = {}
    years = bool(dates)  # clocks of a day do not go on
    for name in names:
        place = (dates or clocks).get(name) if dates or clocks else _number(name)
        if place is None:
            continue
        prefix, number = place
        if number in found.setdefault(prefix, {}):
            return None
        found[prefix][number] = name
        years = years or _YEAR.fullmatch(name.strip()) is not None
    if not dates and not clocks:
        found = {prefix: steps for prefix, steps in found.items() if _are_steps(sorted(steps))}
    if not found:
        return None
    largest = max(len(steps) for steps in found.values())
    ordered = {
        prefix: dict(sorted(steps.items()))
        for prefix, steps in found.items()
        if 2 * len(steps) > largest
    }
    if set(ordered) == {""}:
        years = years or all(1500 <= step <= 2300 and step % 1 == 0 for step in ordered[""])
    taken = {name for steps in ordered.values() for name in steps.values()}
    return StepColumns(ordered, [name for name in names if name not in taken], years)


def check_steps_last(names: Sequence[str], where: str) -> None:
    """Refuse columns such as t0_x, t0_y, t1_x, t1_y, which in their order would mix the channels.

    Raises:
        ValueError: If all columns have the step in front.
    """
    parts = [re.fullmatch(r"\D*(\d+)[ _.-]?(\D+)", name.strip()) for name in names]
    turned = [f"{part[2]}_{part[1]}" for part in parts if part is not None]
    found = step_columns(turned) if len(turned) == len(names) else None
    if found is not None and not found.others and len(found.channels) > 1:
        advice = f"write the step last, as in {turned[0]}"
        expected = f"columns of steps in {where} must end in the step"
        raise ValueError(message(expected, quoted(names, 6), advice))


def _dated(names: Sequence[str]) -> dict[str, tuple[str, float]]:
    """Names that are dates, if there are three or more."""
    could = [
        name for name in names if re.search(r"\d[-/.]\d", name) and _ALONE.fullmatch(name) is None
    ]
    try:
        dates = parse_dates(could) if len(could) > 2 else None
    except ValueError:
        dates = None
    if dates is None:
        return {}
    days = dates.astype("M8[s]").astype(np.int64)
    return {name: ("", float(day)) for name, day in zip(could, days, strict=True)}


def _clocked(names: Sequence[str]) -> dict[str, tuple[str, float]]:
    """Names that are times of day, such as 00:30, in days, if there are three or more."""
    could = [name for name in names if re.fullmatch(r"\s*\d{1,2}:\d\d(:\d\d)?\s*", name)]
    clock = parse_clock(could) if len(could) > 2 else None
    if clock is None:
        return {}
    return {name: ("", time / 86400) for name, time in zip(could, clock.tolist(), strict=True)}


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
