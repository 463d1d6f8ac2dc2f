"""Inference of column roles from names and cells; ambiguity is an error that names flags."""

from __future__ import annotations

import pyarrow as pa

from anharmonic._checks import require
from anharmonic.data.columns import NO_COLUMN, Columns, Layout, is_counter, plain, target_rank
from anharmonic.data.tables.cells import (
    Table,
    holds_text,
    is_calendar,
    is_list,
    may_be_dates,
    quoted,
)
from anharmonic.data.tables.facts import Facts
from anharmonic.data.tables.wide import StepColumns, step_columns

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

    # Targets.

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
                and (not self._numeric(name) or 0 < self._whole(name) <= _MOST_CLASSES)
            ]
            if could:
                advice = f"say which with target_column=... (--target-column {could[0]!r})"
                name = f"target column in {self.table.where}"
                require(len(could) == 1, name, could, "one column", advice)
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
            advice = "say what is what with target_column, time_column or id_column "
            advice += "(--target-column ... on the command line), or leave it out with --ignore"
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
        varied = [name for name in text if self.distinct(name) > 1]
        likely = (varied or text or free)[-1]
        flag = f"say which with target_column=... (--target-column {likely!r})"
        if text and (self.targets or layout != "nested"):
            came = f"text in the columns {quoted(text)}"
            self._refuse(f"one column of {where} must be the target", came, flag)
        if not self.table.header and layout == "wide" and self._class_at_an_end():
            return
        if self.targets:
            steps = step_columns(free) if layout == "wide" and self.table.header else None
            if steps is not None and len(steps.others) == 1:
                flag = f"say which with target_column=... (--target-column {steps.others[0]!r})"
            came = f"the columns {quoted(free)}"
            self._refuse(f"one column of {where} must be the target", came, flag)

    def _class_at_an_end(self) -> bool:
        first, last, rows = self.free[0], self.free[-1], len(self.table)

        def classes(name: str) -> int:
            count = self._whole(name)
            return 0 if count < 2 or (count == rows > 2) else count

        front, back = classes(first), classes(last)
        if front and back and front <= _MOST_CLASSES and back <= _MOST_CLASSES and rows > 4:
            came = f"few whole numbers in the first column and in the last, {first} and {last}"
            advice = f"say which with target_column=... (--target-column {first})"
            self._refuse(f"one column of {self.table.where} must be the target", came, advice)
        if front and not 0 < back < front:
            self._take("target", first)
            return True
        if back:
            self._take("target", last)
            return True
        return False

    # Values.

    def _long(self) -> Roles:
        if not self.given.forecast:
            self._guess_target("long")
        if "id" not in self.roles and "group" in self.roles:
            if self.distinct(self.roles["group"]) > 1:  # each recording has one subject
                self.roles["id"] = self.roles.pop("group")
        self._check_numbers_of_series()
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
                self._other_text(name, kind)
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

    def _other_text(self, name: str, kind: str) -> None:
        """Ignore uninformative text columns without a role, and refuse others."""
        alike = self._finer(self.roles["id"], name) if "id" in self.roles else ""
        if self.distinct(name) == 1 or alike == "same" or (alike and self.given.forecast):
            self._leave_out([name])
            return
        cells = enumerate(self.table.column(name).to_pylist())
        row, cell = next((row, cell) for row, cell in cells if cell)
        came = f"{str(cell)!r} in {self.table.place(row)}, column {name!r}"
        advice = f"leave it out with ignore=[{name!r}] (--ignore {name!r}), or say what it is with "
        advice += "--target-column, --id-column, --group-column or --time-column"
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
                self._other_text(name, "")
        if not self.given.forecast:
            self._guess_target("wide")
        self._leave_out([name for name in self.free if name not in steps.names])
        return self.roles, "wide", steps.names, self.ignored
