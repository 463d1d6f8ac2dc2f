"""Tables of the papers: rows of reported numbers, and the runs that reproduce them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Literal

from anharmonic._checks import choice, flag, require
from anharmonic.train import Range, Run, with_seed
from anharmonic_papers.tables.budget import BUDGET, Budget, shrink

Settings = Literal["paper", "published code", "ours"]


@dataclass(frozen=True)
class Row:
    """One row of a table: the reported number and, if we have the model, our run.

    Args:
        label: The model as printed.
        group: The part of the table, for example ``"T = 500"``; may be empty.
        reported: The number as printed, in the table's unit; may be empty.
        spread: The standard deviation as printed.
        retrained: Where the printed number is the best of several trainings, their mean and
            standard deviation as printed elsewhere, for example ``"96.10 ± 1.20"``. Ours is
            compared with the mean.
        rerun: The result of the published code when we ran it on the same data and splits.
        rerun_spread: The standard deviation of ``rerun``.
        outcome: The paper's statement in words (for curves without numbers).
        parameters: The printed parameter count, for example ``"68k"``.
        run: The run; ``None`` for a baseline that this package does not have.
        seeds: The default seeds.
        split: The task's option that numbers its splits; seed 3 then uses split 3. Empty for a
            single split.
        search: The ranges of ``table ID --search`` for this row; may be empty.
        settings: The source of the run's settings. ``"ours"`` means that paper and published code
            do not state them.
        note: Remarks for readers.

    Example:
        >>> Row("LSTM", group="T = 500").id
        't-500-lstm'
    """

    label: str
    group: str = ""
    _: KW_ONLY
    reported: str = ""
    spread: str = ""
    retrained: str = ""
    rerun: str = ""
    rerun_spread: str = ""
    outcome: str = ""
    parameters: str = ""
    run: Run | None = None
    seeds: tuple[int, ...] = (0,)
    split: str = ""
    search: Mapping[str, Range] = field(default_factory=dict)
    settings: Settings = "paper"
    note: str = ""

    @property
    def id(self) -> str:
        """Name of the row on the command line, unique in its table."""
        words = f"{self.group} {self.label}".lower().replace("²", "2")
        return re.sub(r"[^a-z0-9.]+", "-", words).strip("-.")

    @property
    def compared(self) -> tuple[str, str]:
        """The printed number and deviation with which ours is compared; may be empty."""
        mean, _, deviation = self.retrained.partition(" ± ")
        return (mean, deviation) if mean else (self.reported, self.spread)

    @property
    def value(self) -> float | None:
        """The printed number as a number."""
        return float(self.reported) if self.reported else None

    def runs(self, seeds: tuple[int, ...] | None = None) -> Iterator[Run]:
        """Return one run per seed (and split); none for a row without a run."""
        if self.run is not None:
            for seed in self.seeds if seeds is None else seeds:
                yield with_seed(self.run, seed, self.split)


@dataclass(frozen=True)
class Table:
    """One table of a paper as data.

    Args:
        id: Its name on the command line.
        title: What it compares.
        source: Paper and table number.
        metric: Name of the metric as printed.
        rows: The rows in the order of the paper.
        unit: The unit of the printed numbers, for example ``"%"`` or ``"x 1e-2"``.
        scale: Factor from our metric to the printed number.
        form: Format of our numbers, for example ``".2f"``.
        direction: Whether a higher or a lower number is better.
        baseline: Value and description of the baseline.
        note: Remarks for readers.
        parts: The tables that this one joins (see ``join``); the title of a part is the group of
            its rows.
        measure: The compared value of a result: its "test" or "valid" metric, or a name in its
            curve ("nfe", "adjoint_score") at the epoch of the chosen weights.
        quartiles: Whether to summarise seeds by median and quartiles instead of mean and deviation.
        thresholds: For learning curves, values of the metric in the table's unit. The report lists
            the number of steps until validation falls below each.
    """

    id: str
    title: str
    source: str
    metric: str
    rows: tuple[Row, ...]
    unit: str = ""
    scale: float = 1.0
    form: str = ".2f"
    direction: Literal["higher", "lower"] = "higher"
    baseline: tuple[float, str] | None = None
    note: str = ""
    parts: tuple[Table, ...] = ()
    measure: str = "test"
    quartiles: bool = False
    thresholds: tuple[float, ...] = ()

    def part(self, group: str) -> Table:
        """Return the table that defines the metric of a group of rows: its part, or itself."""
        return next((part for part in self.parts if part.title == group), self)

    def row(self, name: str) -> Row:
        """Return the row of that name; an error suggests the nearest."""
        return {row.id: row for row in self.rows}[choice("row", name, [r.id for r in self.rows])]

    def reduced(self, budget: Budget) -> Table:
        """Return the table on a smaller budget, with smaller runs marked ``reduced``.

        A bound that no task of the table knows is refused.
        """
        tasks = {row.run.task for row in self.rows if row.run is not None}
        for name in budget.bounds():
            known = [t for t in BUDGET if name in BUDGET[t]]
            require(
                name == "epochs" or not tasks.isdisjoint(known),
                f"the task of table {self.id} with {flag(name)}", ", ".join(sorted(tasks)),
                f"one that lets it be chosen ({', '.join(known)})", f"leave out {flag(name)}",
            )  # fmt: skip
        rows = (r if r.run is None else replace(r, run=shrink(r.run, budget)) for r in self.rows)
        return replace(self, rows=tuple(rows))


def join(id: str, title: str, source: str, parts: tuple[Table, ...], note: str = "") -> Table:
    """Join tables, each with its own metric; their titles become the groups of their rows."""
    rows = tuple(replace(row, group=part.title) for part in parts for row in part.rows)
    return Table(id, title, source, "", rows, note=note, parts=parts)
