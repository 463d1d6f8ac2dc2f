"""Input columns besides the measured values: one value per recording, and categories."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anharmonic._checks import choice, message
from anharmonic.data.columns import Columns
from anharmonic.data.sequences import Sequences
from anharmonic.data.tables.cells import MISSING, Table, holds_text, numbers, quoted

MOST_CATEGORIES = 50
"""Largest number of categories of a column."""


@dataclass(frozen=True)
class Beside:
    """Inputs besides the measured values, with one row per row of the table.

    Attributes:
        names: Name of every channel; `column=category` for a category.
        values: `[rows, K]`; NaN for empty cells.
        static: Whether a channel has one value per recording, `[K]`.
        categories: The categories of every categorical column.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    static: NDArray[np.bool_]
    categories: tuple[tuple[str, tuple[str, ...]], ...]

    def added_to(self, part: Sequences) -> Sequences:
        """Return sequences, one per row, with these as additional channels, constant over steps."""
        width = part.x.shape[1]
        named = part.channels or tuple(
            "value" if width == 1 else f"value {place}" for place in range(1, width + 1)
        )
        steps = np.repeat(self._known(self.values), part.lengths, axis=0).astype(np.float32)
        x = np.concatenate([part.x, steps], axis=1)
        return replace(part, x=x, channels=(*named, *self.names))

    def settled(self, part: Sequences) -> Sequences:
        """Check and fill the last channels of sequences: one value per recording if static."""
        x = part.x.copy()
        first = x.shape[1] - len(self.names)
        begins = part.offsets[:-1]
        for place in np.flatnonzero(self.static):
            channel = x[:, first + place]
            gaps = np.isnan(channel)
            low = np.minimum.reduceat(np.where(gaps, np.inf, channel), begins)
            high = np.maximum.reduceat(np.where(gaps, -np.inf, channel), begins)
            wrong = np.flatnonzero(low < high)
            if len(wrong):
                at = int(wrong[0])
                column = self.names[place].partition("=")[0]
                recording = at if part.ids is None else part.ids[at]
                came = f"several values in recording {recording}"
                advice = f"leave {column!r} out of --static, or correct it"
                expected = f"static column {column!r} of {part.where} must not change"
                raise ValueError(message(expected, came, advice))
            x[:, first + place] = np.repeat(np.where(low > high, np.nan, low), part.lengths)
        x[:, first:] = self._known(x[:, first:])
        return replace(part, x=x)

    def _known(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values in which an empty cell has no category."""
        coded = np.array(["=" in name for name in self.names])
        return np.where(np.isnan(values) & coded, 0.0, values)


def beside(table: Table, given: Columns) -> Beside:
    """Make channels from static and categorical columns.

    A categorical column, or a static or known text column, becomes one channel per training
    category, which is 1 for cells of this category. Empty cells and new categories are 0 in all
    channels; categories that training did not have give a warning.
    """
    known = dict(given.categories)
    channels: list[tuple[str, NDArray[np.float64], bool]] = []
    categories: list[tuple[str, tuple[str, ...]]] = []
    for name in given.inputs:
        option = next(o for o in ("static", "categorical", "known") if name in getattr(given, o))
        if given.found and name not in table.names:
            expected = f"{table.where} must have the {option} column {name!r}, as in training"
            shown = [*table.names[:5], *(["..."] if len(table.names) > 5 else [])]
            raise ValueError(message(expected, f"the columns {', '.join(shown)}", "add it"))
        choice(f"{option} column of {table.where}", name, table.names)
        fixed = name in given.static
        is_new = not given.found and (name in given.categorical or holds_text(table, name))
        if not (name in known or is_new):
            channels.append((name, numbers(table, name), fixed))
            continue
        cells = _words(table, name)
        kinds = known[name] if given.found else _categories(table, name, cells)
        _warn_of_unknown(table, name, cells, kinds)
        for kind in kinds:
            values = [np.nan if cell is None else float(cell == kind) for cell in cells]
            channels.append((f"{name}={kind}", np.array(values), fixed))
        categories.append((name, kinds))
    return Beside(
        tuple(name for name, _, _ in channels),
        np.array([values for _, values, _ in channels]).reshape(len(channels), len(table)).T,
        np.array([fixed for *_, fixed in channels], dtype=bool),
        tuple(categories),
    )


def with_channels(table: Table, found: Beside) -> Table:
    """Return the table with these numeric columns in place of the original ones."""
    arrow = table.arrow
    for name, column in zip(found.names, found.values.T, strict=True):
        if name in arrow.column_names:
            arrow = arrow.drop_columns([name])
        arrow = arrow.append_column(name, pa.array(column))
    return replace(table, arrow=arrow)


def _words(table: Table, name: str) -> list[str | None]:
    """Return cells as words; None for empty ones."""
    column = table.column(name)
    if pa.types.is_floating(column.type):  # whole numbers with a gap, or none that are categories
        values = numbers(table, name)
        here = values[~np.isnan(values)]
        if (here % 1 != 0).any():
            came = f"{here[here % 1 != 0][0]} in column {name!r}"
            expected = f"categories of {table.where} must be text or whole numbers"
            raise ValueError(message(expected, came, "leave it a number, or name another column"))
        return [None if np.isnan(value) else str(int(value)) for value in values]
    cells = column.cast(pa.string()).to_pylist()
    words = [None if cell is None else cell.strip() for cell in cells]
    return [None if word is None or word in MISSING else word for word in words]


def _categories(table: Table, name: str, cells: list[str | None]) -> tuple[str, ...]:
    kinds = tuple(sorted({cell for cell in cells if cell is not None}))
    if not 0 < len(kinds) <= MOST_CATEGORIES:
        came = f"{len(kinds)} in column {name!r}"
        expected = f"categories of {table.where} must be between 1 and {MOST_CATEGORIES}"
        raise ValueError(message(expected, came, "join rare ones, or leave the column out"))
    return kinds


def _warn_of_unknown(
    table: Table, name: str, cells: list[str | None], kinds: tuple[str, ...]
) -> None:
    others = sorted({cell for cell in cells if cell is not None} - set(kinds))
    if others:
        text = (
            f"Column {name!r} of {table.where} holds {quoted(others, 5)}, which training did not. "
            "All its channels are 0 there."
        )
        warnings.warn(text, stacklevel=2)
