"""A table with a row per step: columns for the sequence, the time, the values and the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import message, require
from anharmonic.data.sequences import Sequences
from anharmonic.data.tables.cells import Table, keys, known_labels, labels, numbers, times


def read_long(table: Table, roles: dict[str, str], values: Sequence[str]) -> Sequences:
    """Sequences whose steps are rows, in the order of their time column, else of the table.

    Without a column of ids the table is one sequence. A target is one per sequence if it is the
    same in all rows of every sequence, where it is given, else one per step.

    Raises:
        ValueError: If cells are missing or of a wrong kind, times are given twice, or a group
            changes within a sequence.
    """
    advice = "a row per step: columns with an id, the time, the values and the target"
    require(bool(values), f"value columns in {table.where}", list(values), "at least one", advice)
    require(len(table) > 0, f"rows in {table.where}", 0, "at least one", "check how it was written")
    names = keys(table, roles["id"], "id") if "id" in roles else np.zeros(len(table), np.int64)
    _, firsts, codes = np.unique(names, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(firsts))[codes]  # numbered as they first come
    clock = times(table, roles["time"]) if "time" in roles else None
    order = np.argsort(codes, kind="stable") if clock is None else np.lexsort((clock, codes))
    steps = _Steps(table, order, codes[order], names)
    columns = [numbers(table, name)[order] for name in values]
    with np.errstate(over="ignore"):  # too large a number becomes infinite and is refused later
        x = np.stack(columns, axis=1).astype(np.float32)
    y, per_step = _targets(steps, roles["target"]) if "target" in roles else (None, False)
    elapsed, interval = (None, None) if clock is None else _sampling(steps, clock[order])
    return Sequences(
        table.where,
        x,
        steps.offsets,
        y,
        per_step,
        elapsed=elapsed,
        groups=_groups(steps, roles["group"]) if "group" in roles else None,
        times=None if clock is None else clock[order][steps.offsets[:-1]],
        channels=tuple(values),
        interval=interval,
        ids=names[order][steps.offsets[:-1]] if "id" in roles else None,
    )


@dataclass(frozen=True)
class _Steps:
    """Rows in the order of sequences and times."""

    table: Table
    order: NDArray[np.int64]
    codes: NDArray[np.int64]
    names: NDArray[Any]

    @property
    def offsets(self) -> NDArray[np.int64]:
        counts = np.bincount(self.codes)
        return np.concatenate([[0], np.cumsum(counts)])

    def place(self, step: int) -> str:
        """A step in words."""
        row = int(self.order[step])
        return f"{self.table.place(row)}, id {self.names[row]}"


def _targets(steps: _Steps, name: str) -> tuple[NDArray[Any], bool]:
    """One target per sequence where it never changes, else one per step, `[sum of lengths, 1]`."""
    values, known = labels(steps.table, name)
    values, known = values[steps.order], known[steps.order]
    given, codes = values[known], steps.codes[known]
    changes = (codes[1:] == codes[:-1]) & (given[1:] != given[:-1])
    first = np.searchsorted(codes, np.arange(steps.codes[-1] + 1))
    if not changes.any():
        lacking = np.setdiff1d(np.arange(steps.codes[-1] + 1), codes)
        if len(lacking):
            came = f"none in {steps.place(int(steps.offsets[lacking[0]]))}"
            expected = f"every sequence of {steps.table.where} must have a target in {name!r}"
            raise ValueError(message(expected, came, "fill it in, or remove this sequence"))
        return given[first], False
    return known_labels(steps.table, name)[steps.order][:, None], True


def _groups(steps: _Steps, name: str) -> NDArray[Any]:
    values = keys(steps.table, name, "group")[steps.order]
    changes = (steps.codes[1:] == steps.codes[:-1]) & (values[1:] != values[:-1])
    if changes.any():
        step = int(np.flatnonzero(changes)[0])
        came = f"{values[step]} and {values[step + 1]} ({steps.place(step + 1)})"
        expected = f"a sequence of {steps.table.where} must be of one group in {name!r}"
        raise ValueError(message(expected, came, "give each its own id, or name another column"))
    return values[steps.offsets[:-1]]


def _sampling(
    steps: _Steps, clock: NDArray[Any]
) -> tuple[NDArray[np.float32] | None, float | None]:
    """Time since the sample before, None where samples are equally spaced; and the usual step.

    Dates are counted in seconds.
    """
    same = steps.codes[1:] == steps.codes[:-1]
    gaps = np.diff(clock)
    spans = gaps / np.timedelta64(1, "s") if clock.dtype.kind == "M" else gaps
    twice = np.flatnonzero(same & (spans == 0))
    if len(twice):
        came = f"{clock[twice[0]]} twice ({steps.place(int(twice[0]) + 1)}; {len(twice)} such rows)"
        expected = f"a sequence of {steps.table.where} must have one row for every time"
        advice = "remove the rows that repeat one, or name the column of sequences with id_column"
        raise ValueError(message(expected, came, f"{advice} (--id-column)"))
    inner = spans[same]
    if not len(inner):
        return None, None
    usual = float(np.median(inner))
    if (np.abs(inner - usual) <= 0.01 * usual).all():
        return None, usual
    elapsed = np.zeros(len(clock), np.float32)
    elapsed[1:][same] = inner
    return elapsed, usual
