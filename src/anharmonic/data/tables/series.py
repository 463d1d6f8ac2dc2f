"""Which column says of which series a row is."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from anharmonic.data.names import (
    may_be_series,
    numbered_kind,
    target_rank,
)
from anharmonic.data.tables.cells import (
    may_be_dates,
    quoted,
)
from anharmonic.data.tables.clocks import Clocks
from anharmonic.data.tables.steps import StepColumns


class Series(Clocks):
    """Finds the columns of ids and groups."""

    def _find_series(self, steps: StepColumns | None) -> None:
        """The column that says which series a row is of."""
        if self.given.id is not None or not self.table.header:
            return
        by_id = [
            n
            for n in self.free
            if n.strip().lower().endswith("_id") and self._kind_of_key(n) and target_rank(n) is None
        ]
        time = self.roles.get("time")
        if "id" in self.roles:
            self._name_group(by_id, steps)
            return
        if len(by_id) > 1 and not self.given.forecast:
            self._several_ids(by_id)
        rows = len(self.table)
        wide = steps is not None and self._kind_of(steps) != "channel"
        if by_id and not self.given.forecast:
            again = self.distinct(by_id[0]) < rows
            role = "group" if again and wide and time is None else "id"
            if role in self.roles:
                self._several_ids([self.roles[role], *by_id])
            self._take(role, by_id[0])
            return
        could = [name for name in self.free if self._may_name_series(name)]
        group = self.roles.get("group")
        if time is not None and self.distinct(time) < rows:
            self._series_of_times(time, group, could)
        elif steps is not None and (steps.dated or self._kind_of(steps) == "step"):
            return  # a row per sequence
        elif time is None or may_be_dates(self.table, time) == "":
            self._series_in_blocks(could, steps, time)

    def _kind_of(self, steps: StepColumns) -> str:
        kinds = {numbered_kind(prefix, steps.count) for prefix in steps.channels}
        return kinds.pop() if len(kinds) == 1 else ""

    def _kind_of_key(self, name: str) -> bool:
        return not self._numeric(name) or self._whole(name) > 0

    def _name_group(self, by_id: list[str], steps: StepColumns | None) -> None:
        if not by_id or self.given.forecast:
            return
        if len(by_id) > 1 or "group" in self.roles:
            self._several_ids([*by_id])
        self._take("group", by_id[0])

    def _several_ids(self, names: list[str]) -> NoReturn:
        advice = f"say which with --id-column {names[0]!r} or --group-column, and leave out the "
        advice += "others with --ignore"
        expected = f"one column of {self.table.where} whose name ends in _id must be enough"
        self._refuse(expected, f"the columns {quoted(names)}", advice)

    def _series_of_times(self, time: str, group: str | None, could: list[str]) -> None:
        """What makes times that come again unique."""
        rows = len(self.table)

        def unique(*names: str) -> bool:
            return self.distinct(*names, time) == rows

        if group is not None and unique(group) and self.distinct(group) < rows:
            del self.roles["group"]
            self.roles["id"] = group
            return
        alone = [name for name in could if unique(name)]
        if alone:
            first, *rest = alone
            differ = [name for name in rest if self._finer(first, name) != "same"]
            named = [name for name in alone if may_be_series(name)]
            if differ and len(named) == 1:
                first, differ = named[0], []
            if differ:
                self._doubtful_series(alone)
            self._take("id", first)
            same = [n for n in self.free if n in could and self._finer(first, n) == "same"]
            self._leave_out([n for n in same if self.given.forecast or not self._numeric(n)])
            return
        if group is not None and not could:
            return
        pairs = [(a, b) for i, a in enumerate(could) for b in could[i + 1 :] if unique(a, b)]
        if group is not None:
            pairs = [(group, b) for b in could if unique(group, b)]
        if len(pairs) == 1:
            if group is None:
                self._take("group", pairs[0][0])
            self._take("id", pairs[0][1])
        elif len(pairs) > 1:
            self._doubtful_series(could)

    def _finer(self, first: str, second: str) -> str:
        """Say "same" if two columns divide rows alike, "coarser" if the second is coarser."""
        both = self.distinct(first, second)
        if both == self.distinct(first):
            return "same" if both == self.distinct(second) else "coarser"
        return ""

    def _doubtful_series(self, names: list[str]) -> NoReturn:
        came = f"the columns {quoted(names)}, any of which could"
        advice = f"say which with --id-column {names[0]!r}, and leave out the others with --ignore"
        self._refuse(f"one column of {self.table.where} must name the series", came, advice)

    def _series_in_blocks(
        self, could: list[str], steps: StepColumns | None, time: str | None
    ) -> None:
        """A named column whose cells stay the same for some rows, where no times come again."""
        blocks = []
        for name in could:
            codes = self.codes(name)
            changes = int((np.diff(codes) != 0).sum()) + 1
            together = changes == self.distinct(name) and 2 * changes <= len(self.table)
            text = self.given.forecast and time is None and self._is_text(name)
            if (may_be_series(name) and together) or text:
                blocks.append(name)
        if len(blocks) > 1:
            first, *rest = blocks
            if any(self._finer(first, name) != "same" for name in rest):
                self._doubtful_series(blocks)
            blocks = [first]
            self._leave_out(rest)
        if blocks:
            self._take("id", blocks[0])
