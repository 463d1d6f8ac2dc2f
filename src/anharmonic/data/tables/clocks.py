"""Which column holds times."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from anharmonic.data.names import (
    calendar_part,
    is_time,
    may_be_series,
    may_be_time,
    target_rank,
)
from anharmonic.data.tables.cells import (
    is_list,
    may_be_dates,
    numbers,
    quoted,
)
from anharmonic.data.tables.facts import Facts, rises_evenly
from anharmonic.data.tables.steps import StepColumns


class Clocks(Facts):
    """Finds the column of times."""

    def _find_time(self, steps: StepColumns | None) -> None:
        """The column of times: named so, dates, or numbers that rise and may be times by name."""
        if not self.table.header:
            return
        numbered = set(steps.names) if steps is not None else set()
        could: list[tuple[int, str]] = []
        for name in [*self.index, *self.free]:
            if name in numbered and not is_time(name):
                continue
            rank = self._time_rank(name, name == self.free[0] if self.free else False)
            if rank is not None:
                could.append((rank, name))
        could = self._unique_first(could)
        if not could:
            return
        best = min(rank for rank, _ in could)
        first, *rest = [name for rank, name in could if rank == best]
        for other in rest:
            if not self._same_order(first, other):
                came = quoted([first, *rest])
                advice = f"say which with time_column=... (--time-column {first!r})"
                self._refuse(f"time column in {self.table.where} must be one column", came, advice)
        self._take("time", first)
        self._leave_out(rest)
        # A counter beside the times is no measurement.
        self._leave_out([n for rank, n in could if rank > best and rank == 2])

    def _time_rank(self, name: str, in_front: bool) -> int | None:
        if is_list(self._kind(name)):
            return None
        kind = may_be_dates(self.table, name)
        if kind == "date":
            return 0 if is_time(name) else 1
        if kind == "clock":
            return 0 if is_time(name) or may_be_time(name) else 1
        if not self._numeric(name):
            # Not a time, but meant as one: the error names the cell.
            cells = map(str, self.table.column(name).to_pylist())
            meant = is_time(name) and any(re.search(r"\d", cell) for cell in cells)
            return 0 if meant else None
        if name in self.index:
            return None
        if is_time(name):
            return 0
        values = numbers(self.table, name)
        if not np.isfinite(values).all():
            return None
        if may_be_time(name):
            return 2 if self._counts(name, values) else None
        return 3 if in_front and rises_evenly(values) else None

    def _counts(self, name: str, values: NDArray[np.float64]) -> bool:
        """Whether numbers rise in every series, or are years or numbers of rows in any order."""
        series = [self.roles[role] for role in ("id", "group") if role in self.roles]
        others = [other for other in self.free if other != name and self._may_name_series(other)]
        tried = [tuple(series)] if series else []
        tried += [(other,) for other in (*series, *others)] + [()]
        few = others[:6]
        tried += [(a, b) for i, a in enumerate(few) for b in few[i + 1 :]]
        dates = self._clock(name).dtype.kind == "M"
        for names in tried:
            codes = self.codes(*names) if names else np.zeros(len(values), np.int64)
            order = np.argsort(codes, kind="stable")
            same = np.diff(codes[order]) == 0
            if names and not same.any():
                continue
            if (np.diff(values[order])[same] > 0).all() and len(values) > 1:
                return True
            order = np.lexsort((values, codes))
            gaps = np.diff(values[order])[np.diff(codes[order]) == 0]
            year = calendar_part(name) == "year" and values.min() > 1500 and values.max() < 2300
            if (gaps > 0).all() and len(gaps) and (dates or year or (gaps == 1).all()):
                return True
        return False

    def _may_name_series(self, name: str) -> bool:
        if is_list(self._kind(name)) or self.distinct(name) in (1, len(self.table)):
            return False
        if self._is_text(name):
            rank = target_rank(name)
            return rank is None or rank == 3
        named = may_be_series(name) or name.strip().lower().endswith("_id")
        return named and self._whole(name) > 0 and target_rank(name) is None

    def _unique_first(self, could: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """Without those that come again where another one does not."""
        if len(could) < 2 or "id" in self.roles:
            return could
        once = [(rank, name) for rank, name in could if self.distinct(name) == len(self.table)]
        return once or could

    def _same_order(self, first: str, second: str) -> bool:
        a, b = self._clock(first), self._clock(second)
        if len(np.unique(a)) < len(a) or len(np.unique(b)) < len(b):
            return False
        return bool((np.argsort(a) == np.argsort(b)).all())
