"""Whether a row is a step or a sequence."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from anharmonic.data.columns import Layout
from anharmonic.data.names import (
    MONTHS,
    ROWS,
    plain,
)
from anharmonic.data.tables.cells import (
    is_list,
    numbers,
    quoted,
)
from anharmonic.data.tables.facts import rises_evenly
from anharmonic.data.tables.series import Series
from anharmonic.data.tables.steps import StepColumns

_SURE_OF_STEPS = 50
_LAYOUTS = "say which with layout='long' or 'wide' (--layout long: a row is a step of a recording; "
_LAYOUTS += "--layout wide: a row is a sequence)"


class Layouts(Series):
    """Finds the layout of a table."""

    def _layout(self, steps: StepColumns | None, time_searched: bool) -> Layout:
        if self.given.layout != "auto":
            return self.given.layout
        if any(is_list(self._kind(name)) for name in self.free):
            return "nested"
        if not self.table.header:
            return self._layout_without_names()
        months = [n for n in self.free if n.strip().lower()[:3] in MONTHS]
        if len(months) > 2:
            came = f"columns named after months, {quoted(months)}"
            self._doubt("columns", came, _LAYOUTS)
        known = self.roles.get("id")
        again = known is not None and self.distinct(known) < len(self.table)
        if steps is not None:
            left = set(self.roles.values()) | set(self.ignored)
            steps = None if set(steps.names) & left else steps
        if steps is not None:
            return self._numbered(steps, again)
        time = self.roles.get("time")
        rows = time is not None and plain(time) in ROWS and self._numeric(time)
        rows = rows and bool((np.diff(numbers(self.table, str(time))) == 1).all())
        if rows and not again and not self.given.windows and time_searched:
            came = f"named values and {time!r}, which may number independent rows"
            self._doubt("rows", came, f"{_LAYOUTS}, or --time-column {time!r}")
        if again or (time is not None and known is None):
            return "long"
        if known is None and self.given.windows:
            return "long"
        if not self.free:  # which is said by who reads
            return "wide"
        came = f"named values, {quoted(self.free)}, and nothing that says what follows what"
        if known is not None:
            came = f"{known!r} with another name in every row, and values without numbers"
        advice = f"{_LAYOUTS}, name the column of times with time_column (--time-column)"
        self._doubt("rows", came, f"{advice} or that of recordings with --id-column")

    def _doubt(self, what: str, came: str, advice: str) -> NoReturn:
        expected = f"{what} of {self.table.where} must be clear: steps of sequences, or sequences"
        self._refuse(expected, came, advice)

    def _layout_without_names(self) -> Layout:
        if len(self.free) == 1:
            return "long"
        first = self.free[0]
        if self._numeric(first):
            if rises_evenly(numbers(self.table, first)):
                came = "numbers in the first column that rise like times"
                self._doubt("rows", came, f"{_LAYOUTS}, and which are times with --time-column 1")
        if self.given.forecast:
            self._doubt("rows", f"{len(self.free)} columns without names", _LAYOUTS)
        return "wide"

    def _numbered(self, steps: StepColumns, again: bool) -> Layout:
        """Where columns are numbered: steps, or channels whose names have numbers."""
        kind = self._kind_of(steps)
        many = steps.count >= _SURE_OF_STEPS and kind != "channel"
        shown = quoted(steps.names, 6)
        time = self.roles.get("time")
        if again:
            if kind == "channel" or (kind != "step" and time is not None and not many):
                return "long"
            came = f"numbered columns {shown} and {self.roles['id']!r}, which comes again"
            self._doubt("rows", came, f"{_LAYOUTS}, or call it --group-column")
        if kind == "feature":
            came = f"{shown}, which may be features that do not follow each other"
            self._doubt("columns", came, _LAYOUTS)
        if time is None:
            if self.given.windows and not self.given.forecast and kind == "channel":
                return "long"
            if kind == "channel":
                self._doubt("columns", f"{shown} and no times", _LAYOUTS)
            return "wide"
        if plain(time) in ("sample", "samples", "no", "nr", "row", "i", "n", "number", "obs"):
            if self._numeric(time) and kind == "step" and self.distinct(time) == len(self.table):
                del self.roles["time"]
                self.ignored.append(time)
                return "wide"
        clock = self._clock(time)
        gaps = np.diff(clock)
        none = gaps[:1] * 0
        rising = bool(len(gaps)) and bool((gaps >= none).all() and (gaps > none).any())
        if not rising and not self.given.forecast:
            return "wide"
        beside = any(self._numeric(n) and n in self.free for n in steps.others)
        if kind == "channel" or (self.given.forecast and (kind != "step" or beside)):
            return "long"
        came = f"numbered columns {shown} and times that rise, {time!r}"
        self._doubt("rows", came, _LAYOUTS)
