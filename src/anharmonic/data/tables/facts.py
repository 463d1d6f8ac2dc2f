"""What is known of a table while its roles are inferred: roles so far, and facts of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import message
from anharmonic.data.columns import INDEX, Columns, are_few, by_name
from anharmonic.data.tables.cells import (
    Table,
    holds_text,
    is_numeric,
    may_be_dates,
    numbers,
    times,
)


class Facts:
    """The columns of a table with a role, those to ignore, and the rest; facts are cached."""

    def __init__(self, table: Table, given: Columns, targets: bool) -> None:
        self.table, self.given, self.targets = table, given, targets
        self.ignored: list[str] = []
        self.index = [name for name in table.names if is_index(table, name)]
        names = [name for name in table.names if name not in self.index]
        if not names:  # only an index remains
            names, self.index = self.index, []
        searched = ("target", "id", "group")
        self.roles = by_name(table.names, given, table.where, targets, searched)
        self.free = [name for name in names if name not in self.roles.values()]
        self._clocks: dict[str, NDArray[Any]] = {}
        self._codes: dict[tuple[str, ...], NDArray[np.int64]] = {}

    def _kind(self, name: str) -> Any:
        return self.table.column(name).type

    def _numeric(self, name: str) -> bool:
        return is_numeric(self.table.column(name))

    def _is_text(self, name: str) -> bool:
        return holds_text(self.table, name) and not may_be_dates(self.table, name)

    def _clock(self, name: str) -> NDArray[Any]:
        if name not in self._clocks:
            self._clocks[name] = times(self.table, name)
        return self._clocks[name]

    def codes(self, *names: str) -> NDArray[np.int64]:
        """Return numbers that are equal for rows with equal cells in all these columns."""
        if names not in self._codes:
            if len(names) == 1:
                cells = self.table.column(names[0]).dictionary_encode(null_encoding="encode")
                made = cells.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            else:
                first, rest = self.codes(names[0]), self.codes(*names[1:])
                pairs = first * (int(rest.max(initial=0)) + 1) + rest
                made = np.unique(pairs, return_inverse=True)[1]
            self._codes[names] = made
        return self._codes[names]

    def distinct(self, *names: str) -> int:
        """Return the number of distinct cells, or rows of cells, of columns."""
        return len(np.unique(self.codes(*names)))

    def _whole(self, name: str) -> int:
        """Return the number of integers in a column, gaps left out; 0 if it has other values.

        A few other values among integers that come again are refused.
        """
        values = numbers(self.table, name) if self._numeric(name) else np.zeros(0)
        odd = np.flatnonzero(
            ~np.isnan(values) & (~np.isfinite(values) | (values != np.round(values)))
        )
        whole = values[np.isfinite(values) & (values == np.round(values))]
        count = len(np.unique(whole))
        if len(odd) and are_few(len(odd), len(whole)) and 1 < count <= len(whole) // 2:
            came = f"{values[odd[0]]} in {self.table.place(int(odd[0]))} ({len(odd)} such rows)"
            advice = "correct it, or name the roles with --target-column or --id-column, or "
            advice += f"leave the column out with --ignore {name!r}"
            expected = (
                f"column {name!r} of {self.table.where} must hold whole numbers alone, as in "
            )
            self._refuse(f"{expected}all other rows", came, advice)
        return 0 if len(odd) else count

    def _take(self, role: str, name: str) -> None:
        self.roles[role] = name
        self.free = [other for other in self.free if other != name]
        self.index = [other for other in self.index if other != name]

    def _leave_out(self, names: Sequence[str]) -> None:
        self.ignored += [name for name in names if name in self.free]
        self.free = [name for name in self.free if name not in names]

    def _refuse(self, must: str, came: str, advice: str) -> NoReturn:
        raise ValueError(message(must, came, advice))


def is_index(table: Table, name: str) -> bool:
    """Whether a column is a row index, as written by pandas."""
    if not INDEX.fullmatch(name) or not is_numeric(table.column(name)):
        return False
    counted = numbers(table, name) - np.arange(len(table))
    return bool(len(counted)) and bool((counted == counted[0]).all())
