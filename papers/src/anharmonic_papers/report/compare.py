"""Comparison of the papers' tables with ours, from result lines only.

``compare`` joins a table with results; ``text`` and ``page`` show the result. A run on a reduced
budget never enters the mean of the full runs. It gets its own line, marked as reduced.
"""

import shlex
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from anharmonic._checks import require
from anharmonic.train import Result, Run
from anharmonic_papers.tables.base import Row, Table
from anharmonic_papers.tables.budget import full_runs_of, reduction

ABSENT = "not in this package yet"
NOT_RUN = "not run"


@dataclass(frozen=True)
class Ours:
    """Our runs of one row on one budget: one result per seed.

    Args:
        results: The results, at least one, in the order of their seeds.
        part: The table, or its part, whose measure is compared.
        budget: Description of the reductions; empty for full runs.
    """

    results: tuple[Result, ...]
    part: Table
    budget: str = ""

    @property
    def values(self) -> list[float]:
        """The measured values in the table's unit."""
        return [measured(r, self.part.measure) * self.part.scale for r in self.results]

    @property
    def mean(self) -> float:
        """Mean of the values; with ``Table.quartiles`` their median."""
        return (statistics.median if self.part.quartiles else statistics.fmean)(self.values)

    @property
    def interval(self) -> tuple[float, float]:
        """One deviation on each side (or quartiles) from three seeds on, otherwise the range."""
        if len(self.values) < 3:
            return min(self.values), max(self.values)
        if self.part.quartiles:
            low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
            return low, high
        deviation = statistics.stdev(self.values)
        return self.mean - deviation, self.mean + deviation

    @property
    def text(self) -> str:
        """``mean ± deviation`` from three seeds on, with two the range, with one itself.

        With ``Table.quartiles`` median and quartiles from three seeds on.
        """
        mean = format(self.mean, self.part.form)
        if len(self.values) == 1:
            return mean
        if len(self.values) == 2 or self.part.quartiles:
            low, high = (format(v, self.part.form) for v in self.interval)
            return f"{mean} ({low} to {high})"
        return f"{mean} ± {format(statistics.stdev(self.values), self.part.form)}"

    @property
    def seconds(self) -> float:
        """Mean training time of one seed."""
        return statistics.fmean(r.seconds for r in self.results)


def measured(result: Result, measure: str) -> float:
    """Return one number of a result.

    It is "test", "valid", or a name in the curve: the value at the epoch of the weights.
    """
    if measure in ("test", "valid"):
        return float(getattr(result, measure))
    epochs = result.curve["epoch"]
    require(
        measure in result.curve and result.best_epoch in epochs,
        f"the curve of the result with hash {result.hash}", sorted(result.curve),
        f"one with {measure!r} at epoch {result.best_epoch}", "delete its line and run it again",
    )  # fmt: skip
    return float(result.curve[measure][epochs.index(result.best_epoch)])


@dataclass(frozen=True)
class Line:
    """A row of a table with our results."""

    row: Row
    full: Ours | None
    reduced: tuple[Ours, ...]

    @property
    def ours(self) -> tuple[Ours, ...]:
        """Our runs, those on the full budget first; empty if none ran."""
        return (self.full, *self.reduced) if self.full else self.reduced

    @property
    def state(self) -> str:
        """Text in place of our number without a full run: not here, not run."""
        if self.row.run is None:
            return ABSENT
        return NOT_RUN if self.full is None else self.full.text

    @property
    def missing(self) -> tuple[int, ...]:
        """The row's seeds without a full result."""
        if self.row.run is None:
            return ()
        done = {r.run.seed for r in self.full.results} if self.full else set()
        return tuple(seed for seed in self.row.seeds if seed not in done)

    @property
    def seeds(self) -> str:
        """Number of finished seeds, such as ``"2 of 3"`` if some are missing."""
        if self.full is None:
            return ""
        if not self.missing:
            return str(len(self.full.results))
        wanted = len(self.row.seeds)
        done = wanted - len(self.missing)
        more = len(self.full.results) - done
        return f"{done} of {wanted}" + (f" + {more} other{'s' * (more > 1)}" if more else "")


def compare(table: Table, results: Iterable[Result]) -> list[Line]:
    """Join the rows of a table at full budget with results; those of other tables are ignored.

    A result belongs to a row if their runs differ only in the seed (and the split number, see
    ``Row.split``). A result marked ``reduced`` belongs to a row if it is no larger in any size that
    a budget may reduce (see ``budget.full_runs_of``). Of several results of one run the last
    counts.
    """
    runs = list(dict.fromkeys(row.run for row in table.rows if row.run is not None))
    kinds = {(run.task, run.model) for run in runs}
    latest = {r.run.hash: r for r in results if (r.run.task, r.run.model) in kinds}
    splits = {row.split for row in table.rows if row.split}
    full: dict[str, list[Result]] = {}
    reduced: dict[str, dict[str, list[Result]]] = {}
    for result in latest.values():
        kept = {k: v for k, v in result.run.task_options.items() if k not in splits}
        one = replace(result.run, seed=0, task_options=kept)
        key = one.hash
        if result.run.reduced:
            for owner in full_runs_of(one, runs):
                reduced.setdefault(owner.hash, {}).setdefault(key, []).append(result)
        else:
            full.setdefault(key, []).append(result)

    def ours(row: Row, found: Sequence[Result]) -> Ours:
        ordered = tuple(sorted(found, key=lambda r: r.run.seed))
        run = ordered[0].run
        budget = f"reduced budget: {reduction(run, row.run)}" if run.reduced and row.run else ""
        return Ours(ordered, table.part(row.group), budget)

    lines = []
    for row in table.rows:
        key = row.run.hash if row.run else ""
        mine = ours(row, full[key]) if key in full else None
        small = tuple(ours(row, found) for found in reduced.get(key, {}).values())
        lines.append(Line(row, mine, small))
    return lines


def command(
    table: Table,
    rows: Sequence[Row] = (),
    seeds: Sequence[int] = (),
    results: Path | None = None,
) -> str:
    """Return the command line that runs a table, or some rows and seeds of it.

    ``results`` is the file to append to, or a folder of such files; None for the default of
    ``anharmonic table``.
    """
    words = ["anharmonic", "table", table.id]
    words += ["--rows", *(row.id for row in rows)] if rows else []
    words += ["--seeds", *map(str, seeds)] if seeds else []
    if results is not None:
        words += ["--results", str(results / f"{table.id}.jsonl" if results.is_dir() else results)]
    return shlex.join(words)


def missing(table: Table, lines: Iterable[Line], results: Path | None = None) -> list[str]:
    """Return the commands for missing full results: rows, or some seeds of a row."""
    first: dict[Run, Line] = {}  # rows of several parts may share a run
    for line in lines:
        if line.row.run is not None:
            first.setdefault(line.row.run, line)
    lines = list(first.values())
    if all(line.full is None for line in lines):
        return [command(table, results=results)] if lines else []
    absent: dict[tuple[int, ...], list[Row]] = {}
    for line in lines:
        if line.missing:
            seeds = () if line.missing == line.row.seeds else line.missing
            absent.setdefault(seeds, []).append(line.row)
    return [command(table, rows, seeds, results) for seeds, rows in absent.items()]


def results_folder() -> Path:
    """Return `papers/results` where the working directory is a checkout, else `results`."""
    checkout = Path("papers/results")
    return checkout if checkout.is_dir() else Path("results")
