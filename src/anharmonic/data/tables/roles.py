"""Inference of column roles from names and cells; ambiguity is an error that names flags."""

from __future__ import annotations

import re
from itertools import combinations
from typing import NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anharmonic._checks import require
from anharmonic.data.columns import (
    MONTHS,
    NO_COLUMN,
    ROWS,
    Columns,
    Layout,
    are_few,
    calendar_part,
    is_counter,
    is_time,
    may_be_series,
    may_be_time,
    numbered_kind,
    plain,
    target_rank,
)
from anharmonic.data.tables.beside import MOST_CATEGORIES
from anharmonic.data.tables.cells import (
    Table,
    are_mostly_dates,
    holds_text,
    is_calendar,
    is_list,
    may_be_dates,
    numbers,
    quoted,
)
from anharmonic.data.tables.facts import Facts
from anharmonic.data.tables.wide import StepColumns, check_steps_last, step_columns

_SURE_OF_STEPS = 50
# A column named like a time is in doubt if so large a share of so many steps increases.
_SURE_OF_TIMES, _MOST_RISE = 20, 0.95
_LAYOUTS = "say which with layout='long' or 'wide' (--layout long: a row is a step of a recording; "
_LAYOUTS += "--layout wide: a row is a sequence)"
# A numeric column with fewer distinct values may hold classes.
_MOST_CLASSES = 20

Roles = tuple[dict[str, str], Layout, list[str], list[str]]
"""The columns with a role, the layout, the value columns, and the ignored ones."""


def understand(table: Table, given: Columns, targets: bool) -> Roles:
    """Infer the roles of a table's columns; errors name the flags that decide."""
    for name in table.names:
        kind = table.arrow.column(name).type
        came, expected = f"{str(kind)[:60]} in column {name!r}", "numbers, text, dates or lists"
        fits = not (pa.types.is_struct(kind) or pa.types.is_map(kind) or pa.types.is_union(kind))
        advice = f"write its parts as columns, or leave it out with --ignore {name!r}"
        require(fits, f"columns of {table.where}", came, expected, advice)
    return _Understanding(table, given, targets).reached()


class _Understanding(Facts):
    """Infers roles in order: time, target, series, layout, values."""

    def reached(self) -> Roles:
        self._leave_out_influx()
        self._drop_forecast_labels()
        numeric = [n for n in self.free if not self._is_text(n)]
        steps = step_columns(numeric) if self.table.header else None
        if steps is not None and all(is_list(self._kind(name)) for name in steps.names):
            steps = None
        if searched := self.given.time is None:
            self._find_time(steps)
        self._find_target_by_name()
        self._find_series(steps)
        layout = self._layout(steps, searched)
        if layout == "nested":
            self._guess_target(layout)
            self._leave_out([name for name in self.free if not is_list(self._kind(name))])
            return self.roles, layout, self.free, self.ignored
        if layout == "wide":
            return self._wide(steps)
        return self._long()

    def _leave_out_influx(self) -> None:
        """Leave out what InfluxDB adds to a query's rows; refuse several fields in one column."""
        names = {*self.table.names}
        if not {"result", "table"} <= names or not {"_time", "_start"} & names:
            return
        self._leave_out(["result", "table", "_start", "_stop"])
        fields = self.distinct("_field") if {"_field", "_value"} <= {*self.free} else 0
        if fields > 1:
            came = f"{fields} fields in one column, '_value'"
            advice = 'end the Flux query with pivot(rowKey: ["_time"], columnKey: ["_field"], '
            advice += 'valueColumn: "_value"), or make each a series with --id-column _field'
            self._refuse(f"{self.table.where} must have a column for each field", came, advice)

    # ---- which column holds times ---------------------------------------------------------------
    def _find_time(self, steps: StepColumns | None) -> None:
        """Find the time column by name, by dates, or by increasing numbers with a suitable name."""
        if not self.table.header:
            return
        numbered = set(steps.names) if steps is not None else set()
        could: list[tuple[int, str]] = []
        for name in [*self.index, *self.free]:
            if name in numbered and not is_time(name):
                continue
            rank = self._time_rank(name)
            if rank is not None:
                could.append((rank, name))
        if any(may_be_dates(self.table, name) == "date" for _, name in could):
            could = [one for one in could if not self._is_temperature(one[1])]
        could = self._unique_first(could)
        if not could:
            self._check_nearly_times(numbered)
            return
        best = min(rank for rank, _ in could)
        first, *rest = [name for rank, name in could if rank == best]
        if not all(self._same_order(first, other) for other in rest):
            came = quoted([first, *rest])
            advice = f"say which with --time-column {first!r} (time_column=...)"
            self._refuse(f"time column in {self.table.where} must be one column", came, advice)
        self._take("time", first)
        self._leave_out(rest)
        # A counter beside the times is not a measurement.
        self._leave_out([name for rank, name in could if best < rank == 2])

    def _check_nearly_times(self, numbered: set[str]) -> None:
        """Refuse a column named like a time whose numbers increase in all but a few rows."""
        series = [self.roles[role] for role in ("id", "group") if role in self.roles]
        codes = self.codes(*series) if series else np.zeros(len(self.table), np.int64)
        order = np.argsort(codes, kind="stable")
        same = np.diff(codes[order]) == 0
        for name in self.free:
            if name in numbered or not (may_be_time(name) and self._numeric(name)):
                continue
            rises = np.diff(numbers(self.table, name)[order])[same] > 0
            if len(rises) >= _SURE_OF_TIMES and rises.mean() >= _MOST_RISE:
                places = order[1:][same][~rises]
                came = f"{name!r} not above the row before in {self.table.place(int(places[0]))} "
                came += f"({len(places)} such rows)"
                advice = f"sort the rows, or write --time-column {name!r}, or --time-column none "
                advice += "if it is a measurement (time_column=...)"
                self._refuse(f"times in {self.table.where} must increase", came, advice)

    def _time_rank(self, name: str) -> int | None:
        if is_list(self._kind(name)):
            return None
        kind = may_be_dates(self.table, name)
        if kind == "date":
            return 0 if is_time(name) else 1
        if kind == "clock":
            return 0 if is_time(name) or may_be_time(name) else 1
        if not self._numeric(name):
            # Meant as a time but invalid; the error names the cell.
            cells = map(str, self.table.column(name).to_pylist())
            meant = is_time(name) and any(re.search(r"\d", cell) for cell in cells)
            meant = meant or (may_be_time(name) and are_mostly_dates(self.table, name))
            return 0 if meant else None
        if name in self.index:
            return None
        if is_time(name):
            return 0
        if may_be_time(name):
            return 2 if self._is_counting(name) else None
        values = numbers(self.table, name)
        rises = rises_evenly(values) and (values % 1 != 0).any()
        return 3 if name in self.free[:1] and rises else None

    def _is_temperature(self, name: str) -> bool:
        """Whether numbers in a column T fall as times do not."""
        return plain(name) == "t" and self._numeric(name) and not self._is_counting(name)

    def _is_counting(self, name: str) -> bool:
        values = numbers(self.table, name)
        return bool(np.isfinite(values).all()) and self._counts(name, values)

    def _counts(self, name: str, values: NDArray[np.float64]) -> bool:
        """Whether numbers increase in every series, or are years or row numbers in any order."""
        series = [self.roles[role] for role in ("id", "group") if role in self.roles]
        others = [other for other in self.free if other != name and self._may_name_series(other)]
        tried = [tuple(series)] if series else []
        tried += [(other,) for other in (*series, *others)] + [()]
        tried += combinations(others[:6], 2)
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
        """Drop columns with repeated values if another column has none."""
        if len(could) < 2 or "id" in self.roles:
            return could
        once = [(rank, name) for rank, name in could if self.distinct(name) == len(self.table)]
        return once or could

    def _same_order(self, first: str, second: str) -> bool:
        a, b = self._clock(first), self._clock(second)
        if len(np.unique(a)) < len(a) or len(np.unique(b)) < len(b):
            return False
        return bool((np.argsort(a) == np.argsort(b)).all())

    # ---- which column is the target ------------------------------------------------------------

    def _drop_forecast_labels(self) -> None:
        """For forecasts, do not infer a numeric target from its name, unless it labels steps."""
        if not self.given.forecast:
            return
        name = self.roles.get("target")
        if name is not None and self._numeric(name) and not self._marks(name):
            del self.roles["target"]
            self.free = [n for n in self.table.names if n == name or n in self.free]
        if "target" not in self.roles:
            marks = [n for n in self.free if target_rank(n) == 2 and self._marks(n)]
            if marks:
                self._take("target", marks[0])
                self._leave_out(marks[1:])

    def _marks(self, name: str) -> bool:
        """Whether a column may hold classes: text, or few whole numbers that are not named y."""
        named = plain(name) not in ("target", "y", "outcome")
        return not self._numeric(name) or (named and 0 < self._whole(name) <= _MOST_CLASSES)

    def _find_target_by_name(self) -> None:
        if self.given.forecast or "target" in self.roles or self.given.target is not None:
            return
        for rank in (2, 3):
            could = [
                name
                for name in self.free
                if target_rank(name) == rank
                and not may_be_dates(self.table, name)
                and self._marks(name)
            ]
            if len(could) > 1:
                self._doubtful_target(f"the columns {quoted(could)}", could[0])
            if could:
                self._take("target", could[0])
                return

    def _guess_target(self, layout: Layout) -> None:
        """Infer an unnamed target: the only text column, or integer classes beside a series."""
        free = self.free
        if "target" in self.roles or self.given.target is not None or not free:
            return
        text = [name for name in free if holds_text(self.table, name)]
        where, rows = self.table.where, len(self.table)
        if len(text) == 1:
            distinct = self.distinct(text[0])
            again = not (2 < distinct == rows or (rows > 9 and distinct > 0.8 * rows))
            came = f"{distinct} different ones in the {rows} rows of {text[0]!r}"
            advice = "say what is what with --target-column, --time-column or --id-column "
            advice += "(target_column=... in Python), or leave it out with --ignore"
            if self.targets and not again:
                self._refuse(f"targets of {where} must come again in several rows", came, advice)
            inner = not self.table.header and text[0] not in (free[0], free[-1])
            if inner:
                came = f"text in column {text[0]}, between numbers"
                advice = "give the columns names, or say what is what with --target-column, "
                advice += "--id-column and --layout"
                self._refuse(f"columns of {where} must be clear", came, advice)
            self._take("target", text[0])
            return
        if text and (self.targets or layout != "nested"):
            varied = [name for name in text if self.distinct(name) > 1]
            self._doubtful_target(f"text in the columns {quoted(text)}", (varied or text)[-1])
        if not self.table.header and layout == "wide" and self._class_at_an_end():
            return
        if self.targets:
            steps = step_columns(free) if layout == "wide" and self.table.header else None
            others = [] if steps is None else steps.others
            likely = others[0] if len(others) == 1 else free[-1]
            self._doubtful_target(f"the columns {quoted(free)}", likely)

    def _doubtful_target(self, came: str, likely: str) -> NoReturn:
        advice = f"say which with --target-column {likely!r} (target_column=...)"
        self._refuse(f"one column of {self.table.where} must be the target", came, advice)

    def _class_at_an_end(self) -> bool:
        first, last, rows = self.free[0], self.free[-1], len(self.table)

        def classes(name: str) -> int:
            gaps = self.table.column(name).null_count  # many end short sequences
            count = self._whole(name) if are_few(gaps, rows) else 0
            return 0 if count < 2 or (count == rows > 2) else count

        front, back = classes(first), classes(last)
        if front and back and front <= _MOST_CLASSES and back <= _MOST_CLASSES and rows > 4:
            came = f"few whole numbers in the first column and in the last, {first} and {last}"
            self._doubtful_target(came, first)
        if front and not 0 < back < front:
            self._take("target", first)
            return True
        if back:
            self._take("target", last)
            return True
        return False

    # ---- which column says of which series a row is ---------------------------------------------
    def _find_series(self, steps: StepColumns | None) -> None:
        """Find the column that identifies a row's series."""
        if self.given.id is not None or not self.table.header:
            return
        rows, time = len(self.table), self.roles.get("time")
        wide = steps is not None and self._kind_of(steps) != "channel"
        by_id = [
            n
            for n in self.free
            if n.strip().lower().endswith("_id")
            and (not self._numeric(n) or self._whole(n) > 0)
            and target_rank(n) is None
        ]
        if by_id and not self.given.forecast:
            starts = wide and time is None and self.distinct(by_id[0]) < rows
            role = "group" if "id" in self.roles or starts else "id"
            could = [*by_id, *([self.roles[role]] if role in self.roles else [])]
            if len(could) > 1:
                self._doubtful_series(could)
            self._take(role, by_id[0])
            return
        if "id" in self.roles:
            return
        could = [name for name in self.free if self._may_name_series(name)]
        group = self.roles.get("group")
        if time is not None and self.distinct(time) < rows:
            self._series_of_times(time, group, could)
        elif steps is not None and (steps.dated or self._kind_of(steps) == "step"):
            return  # a row per sequence
        elif time is None or self.given.forecast or may_be_dates(self.table, time) == "":
            self._series_in_blocks(could, time)

    def _kind_of(self, steps: StepColumns) -> str:
        kinds = {numbered_kind(prefix, steps.count) for prefix in steps.channels}
        return kinds.pop() if len(kinds) == 1 else ""

    def _doubtful_series(self, names: list[str]) -> NoReturn:
        expected = f"one column of {self.table.where} must name the series"
        advice = f"say which with --id-column {names[0]!r} or --group-column, and leave out the "
        advice += "others with --ignore"
        self._refuse(expected, f"the columns {quoted(names)}, any of which could", advice)

    def _series_of_times(self, time: str, group: str | None, could: list[str]) -> None:
        """Find the column that makes repeated times unique."""
        rows = len(self.table)

        def unique(*names: str) -> bool:
            return self.distinct(*names, time) == rows

        if group is not None and unique(group) and self.distinct(group) < rows:
            self.roles["id"] = group
            return
        alone = [name for name in could if unique(name)]
        if alone:
            first, *rest = alone
            named = [name for name in alone if may_be_series(name)]
            if any(self._finer(first, name) != "same" for name in rest):
                if len(named) != 1:
                    self._doubtful_series(alone)
                first = named[0]
            self._take("id", first)
            same = [n for n in self.free if n in could and self._finer(first, n) == "same"]
            self._leave_out([n for n in same if self.given.forecast or not self._numeric(n)])
            return
        tried = combinations(could, 2) if group is None else ((group, name) for name in could)
        pairs = [pair for pair in tried if unique(*pair)]
        if len(pairs) == 1:
            if group is None:
                self._take("group", pairs[0][0])
            self._take("id", pairs[0][1])
        elif len(pairs) > 1:
            self._doubtful_series(could)

    def _finer(self, first: str, second: str) -> str:
        """Return "same" if two columns group rows equally, "coarser" if the second is coarser."""
        both = self.distinct(first, second)
        if both == self.distinct(first):
            return "same" if both == self.distinct(second) else "coarser"
        return ""

    def _series_in_blocks(self, could: list[str], time: str | None) -> None:
        """Find a named column that is constant over blocks of rows, if no times repeat."""
        blocks = []
        for name in could:
            text = self.given.forecast and self._is_text(name)
            if text and time is not None:
                text = self._in_blocks(name) and self._starts_again(name, time)
            if (may_be_series(name) and self._in_blocks(name)) or text:
                blocks.append(name)
        if any(self._finer(blocks[0], name) != "same" for name in blocks[1:]):
            self._doubtful_series(blocks)
        self._leave_out(blocks[1:])
        if blocks:
            self._take("id", blocks[0])

    def _in_blocks(self, name: str) -> bool:
        """Whether each value of a column fills one block of rows."""
        changes = int((np.diff(self.codes(name)) != 0).sum()) + 1
        return changes == self.distinct(name) and 2 * changes <= len(self.table)

    def _starts_again(self, name: str, time: str) -> bool:
        """Whether times fall just where the values of a column change."""
        clock, changes = self._clock(time), np.diff(self.codes(name)) != 0
        return bool(((clock[1:] < clock[:-1]) == changes).all())

    # ---- whether a row is a step or a sequence --------------------------------------------------
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
        if steps is not None and not {*steps.names} & {*self.roles.values(), *self.ignored}:
            return self._numbered(steps, again)
        time = self.roles.get("time")
        rows = time is not None and plain(time) in ROWS and self._numeric(time)
        rows = rows and bool((np.diff(numbers(self.table, str(time))) == 1).all())
        if rows and not again and not self.given.windows and time_searched:
            came = f"named values and {time!r}, which may number independent rows"
            self._doubt("rows", came, f"{_LAYOUTS}, or --time-column {time!r}")
        if again or (known is None and (time is not None or self.given.windows)):
            return "long"
        if not self.free:  # the caller reports it
            return "wide"
        check_steps_last(self.free, self.table.where)
        came = f"named values, {quoted(self.free)}, and nothing that says what follows what"
        if known is not None:
            came = f"{known!r} with another name in every row, and values without numbers"
        advice = f"{_LAYOUTS}, name the column of times with --time-column (time_column)"
        self._doubt("rows", came, f"{advice} or that of recordings with --id-column")

    def _doubt(self, what: str, came: str, advice: str) -> NoReturn:
        expected = f"{what} of {self.table.where} must be clear: steps of sequences, or sequences"
        self._refuse(expected, came, advice)

    def _layout_without_names(self) -> Layout:
        if len(self.free) == 1:
            return "long"
        first = self.free[0]
        values = numbers(self.table, first) if self._numeric(first) else np.zeros(1)
        if rises_evenly(values) and (values % 1 != 0).any():
            came = "numbers in the first column that rise like times"
            self._doubt("rows", came, f"{_LAYOUTS}, and which are times with --time-column 1")
        if self.given.forecast:
            self._doubt("rows", f"{len(self.free)} columns without names", _LAYOUTS)
        return "wide"

    def _numbered(self, steps: StepColumns, again: bool) -> Layout:
        """Classify numbered columns as steps or as channels."""
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
            if kind != "channel":
                return "wide"
            if self.given.windows and not self.given.forecast:
                return "long"
            self._doubt("columns", f"{shown} and no times", _LAYOUTS)
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

    # ---- which columns are values ---------------------------------------------------------------

    def _long(self) -> Roles:
        if not self.given.forecast:
            self._guess_target("long")
        if "id" not in self.roles and "group" in self.roles:
            if self.distinct(self.roles["group"]) > 1:  # each recording has one subject
                self.roles["id"] = self.roles["group"]
        self._check_numbers_of_series()
        self._check_unnamed_times()
        time = self.roles.get("time")
        self._leave_out([n for n in self.free if time is not None and is_counter(n)])
        dated = time is not None and self._clock(time).dtype.kind == "M"
        if self.given.forecast and (dated or time is None):
            numeric = [n for n in self.free if self._numeric(n)]
            parts = [n for n in numeric if is_calendar(self.table, n)]
            self._leave_out(parts if len(parts) < len(self.free) else [])
        for name in list(self.free):
            if self._numeric(name):
                continue
            kind = may_be_dates(self.table, name)
            if kind and self.given.time == NO_COLUMN:
                self._leave_out([name])
            elif kind or self._is_text(name):
                self._other_text(name)
        return self.roles, "long", self.free, self.ignored

    def _check_numbers_of_series(self) -> None:
        """Check that numbers of series beside the id are not used as measurements."""
        known, rows = self.roles.get("id"), len(self.table)
        for name in list(self.free):
            named = plain(name) == "id" and self.distinct(name) < rows
            if self._is_text(name) or not (named or self._may_name_series(name)):
                continue
            if known is not None and self._finer(known, name):
                self._leave_out([name])
                continue
            came = f"{name!r}, whole numbers that come again"
            advice = f"say --id-column {name!r} if it names series, or leave it out with --ignore"
            self._refuse(f"values of {self.table.where} must be measurements", came, advice)

    def _check_unnamed_times(self) -> None:
        """Refuse a first column without a name that rises evenly, which may hold times."""
        if self.table.header or self.given.time is not None or len(self.free) < 2:
            return
        first = self.free[0]
        if not self._numeric(first):
            return
        series = self.codes(self.roles["id"]) if "id" in self.roles else np.zeros(len(self.table))
        ends = np.flatnonzero(np.diff(series)) + 1
        if all(rises_evenly(one) for one in np.split(numbers(self.table, first), ends)):
            came = "numbers in the first column that rise evenly, and no names"
            advice = f"say --time-column {first} if they are times, or --time-column none"
            self._refuse(f"times in {self.table.where} must be clear", came, advice)

    def _other_text(self, name: str) -> None:
        """Ignore uninformative text columns without a role, and refuse others."""
        alike = self._finer(self.roles["id"], name) if "id" in self.roles else ""
        if self.distinct(name) == 1 or alike == "same" or (alike and self.given.forecast):
            self._leave_out([name])
            return
        cells = enumerate(self.table.column(name).to_pylist())
        row, cell = next((row, cell) for row, cell in cells if cell)
        came = f"{str(cell)!r} in {self.table.place(row)}, column {name!r}"
        advice = f"leave it out with --ignore {name!r} (ignore=[{name!r}]), or say what it is with "
        if self._is_text(name) and self.distinct(name) <= MOST_CATEGORIES:
            advice = f"make every value a channel with --categorical {name!r}, {advice}"
        keys = [self.roles[role] for role in ("id", "time") if role in self.roles]
        rows = len(self.table)
        if "time" in self.roles and self.distinct(*keys) < rows == self.distinct(name, *keys):
            advice = f"if it names channels, make each a column, as with pandas' pivot, {advice}"
        if alike == "coarser" and "group" not in self.roles:
            advice = (
                f"if each {name} must be in one part only, say --group-column {name!r}, {advice}"
            )
        if "id" not in self.roles and (may_be_series(name) or self._in_blocks(name)):
            advice = f"if it names the series, say --id-column {name!r} (id_column), {advice}"
        advice += "--target-column, --id-column, --group-column or --time-column"
        if re.fullmatch(r"[+-]?\d[\d.,' ]*", str(cell).strip()):
            advice = "write numbers with a point and without marks between thousands"
        self._refuse(f"values in {self.table.where} must be numbers", came, advice)

    def _wide(self, steps: StepColumns | None) -> Roles:
        if steps is None or (self.given.layout == "wide" and not {*steps.names} <= {*self.free}):
            self._guess_target("wide")
            return self.roles, "wide", self.free, self.ignored
        steps.check(self.table.where)
        rows = len(self.table)
        text = [n for n in self.free if n not in steps.names and not self._numeric(n)]
        once = [name for name in text if self.distinct(name) == rows]
        wanted = self.targets and not self.given.forecast
        spare = rows > 3 and ("target" in self.roles or len(text) > 1)
        if once and "id" not in self.roles and (spare or not wanted):
            self._take("id", once[0])
            text.remove(once[0])
        if wanted and "target" in self.roles:
            for name in text:
                self._other_text(name)
        if not self.given.forecast:
            self._guess_target("wide")
        self._leave_out([name for name in self.free if name not in steps.names])
        return self.roles, "wide", steps.names, self.ignored


def rises_evenly(values: NDArray[np.float64]) -> bool:
    """Whether numbers increase by a constant step, like times."""
    if len(values) < 5:
        return False
    gaps = np.diff(values)
    return bool((gaps > 0).all() and np.abs(gaps - gaps.mean()).max() <= 0.01 * gaps.mean())
