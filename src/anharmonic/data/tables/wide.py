"""A table with a row per sequence: its columns are the steps, or its cells are lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import message, require
from anharmonic.data.sequences import Sequences
from anharmonic.data.tables.cells import Table, is_list, keys, known_labels, numbers, times
from anharmonic.data.tables.steps import step_columns


def read_wide(table: Table, roles: dict[str, str], values: Sequence[str]) -> Sequences:
    """Sequences whose steps are columns; empty cells at the end of a row end the sequence.

    Numbered columns are taken in the order of their numbers; those of several names are as many
    channels: `a_0, a_1, b_0, b_1`. Other columns are taken in the order of the table.

    Raises:
        ValueError: If a cell is no number, a row has no values, or there is only one step.
    """
    advice = "a row per sequence: its values in columns, and a column with the target"
    require(bool(values), f"value columns in {table.where}", list(values), "at least one", advice)
    found = step_columns(values) if table.header else None
    channels = {"": list(values)}
    if found is not None and not found.others:
        found.check(table.where)
        channels = found.channels
    steps = len(next(iter(channels.values())))
    came, advice = f"one, {values[0]!r}", "give every step a column, or a row (--layout long)"
    expected = f"sequences of {table.where} must have more steps than"
    if steps < 2:
        raise ValueError(message(f"{expected} one", came, advice))
    columns = [np.stack([numbers(table, name) for name in of], 1) for of in channels.values()]
    x = np.stack(columns, axis=2)
    known = (~np.isnan(x)).sum(axis=2) > 0
    sizes = np.where(known, np.arange(1, x.shape[1] + 1), 0).max(axis=1)
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        came = f"none in {table.place(int(empty[0]))} ({len(empty)} such rows)"
        raise ValueError(message(f"every row of {table.where} must hold values", came, "remove it"))
    flat = x[np.arange(x.shape[1]) < sizes[:, None]]
    named = tuple(channels) if len(channels) > 1 else ()
    return _rows(table, roles, flat, np.concatenate([[0], np.cumsum(sizes)]), named)


def read_nested(table: Table, roles: dict[str, str], values: Sequence[str]) -> Sequences:
    """Sequences whose steps are the entries of list cells.

    A cell is `[T]` (one channel) or `[T][F]`; several columns are as many channels, of equal
    lengths in a row. A target that is a list is one per step, a time that is one gives `elapsed`.

    Raises:
        ValueError: If cells do not fit together or hold no numbers.
    """
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
    """List cells as `[T, F]`."""
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
        came = "an empty cell" if cell is None else f"{str(cell)[:60]} in {place}"
        fits = values.ndim == 2 and values.shape[1] == width
        expected = f"lists of numbers, or of rows of {width} numbers, one for every step"
        if not fits:
            expected = f"column {name!r} of {table.where} must hold {expected}"
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
    """Sequences with what other columns say of each."""
    y: NDArray[Any] | None = None
    per_step = "target" in roles and is_list(table.column(roles["target"]).type)
    if per_step:
        y = _per_step(table, roles["target"], offsets)
    elif "target" in roles:
        y = known_labels(table, roles["target"])
    groups = keys(table, roles["group"], "group") if "group" in roles else None
    with np.errstate(over="ignore"):  # too large a number becomes infinite and is refused later
        single = np.ascontiguousarray(x, dtype=np.float32)
    return Sequences(
        table.where,
        single,
        offsets,
        y,
        per_step,
        groups=groups,
        times=times(table, roles["time"]) if "time" in roles else None,
        # Rows that have no name of their own are called as their subject or recording.
        ids=keys(table, roles["id"], "id") if "id" in roles else groups,
        channels=channels,
    )


def _per_step(table: Table, name: str, offsets: NDArray[np.int64]) -> NDArray[Any]:
    cells = table.column(name).to_pylist()
    for row, (cell, steps) in enumerate(zip(cells, np.diff(offsets), strict=True)):
        size = 0 if cell is None else len(cell)
        expected = f"{steps} entries, one for every step"
        came = f"{size} in {table.place(row)}"
        if size != steps:
            expected = f"the target {name!r} of {table.where} must have {expected}"
            raise ValueError(message(expected, came, "give one per step or one per sequence"))
    flat: NDArray[Any] = np.array([value for cell in cells for value in cell])
    known = flat.dtype.kind in "biufU"
    advice = "fill the missing ones"
    require(known, f"target {name!r} of {table.where}", str(flat.dtype), "numbers or text", advice)
    return flat[:, None] if flat.ndim == 1 else flat
