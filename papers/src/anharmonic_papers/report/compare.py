"""The papers' tables beside ours, computed from result lines only.

``compare`` joins a table with results; ``terminal`` and ``markdown`` print what it gives, and
``page.html`` makes one self-contained page of it. A run on a reduced budget never enters the mean
of the full runs: it stands in a line of its own that says so.
"""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anharmonic import pages
from anharmonic.train import Result, Run
from anharmonic_papers.report.thresholds import steps_until
from anharmonic_papers.tables.base import Row, Table
from anharmonic_papers.tables.budget import full_runs_of, reduction

ABSENT = "not in this package yet"
NOT_RUN = "not run"
SOURCES = (
    "Reported numbers: coRNN arXiv 2010.00951, UnICORNN 2103.05487, LEM 2110.04744, neural "
    "oscillators 2305.08753, GraphCON 2202.02296, G² 2210.00513, and the theses of T. K. Rusch "
    "and F. Nestaas."
)
"""The foot of every report."""
HEAD = (
    "model",
    "reported",
    "ours",
    "their code, run by us",
    "seeds",
    "params (rep.)",
    "params (ours)",
    "time",
    "settings",
)


@dataclass(frozen=True)
class Ours:
    """Our runs of one row on one budget: one result per seed.

    Args:
        results: The results, at least one, in the order of their seeds.
        scale: Our metric times this is the printed number.
        form: Format of our numbers.
        budget: What was reduced, in words; empty for full runs.
        measure: What of a result is compared, see ``Table.measure``.
        quartiles: Whether seeds are summed up by median and quartiles.
    """

    results: tuple[Result, ...]
    scale: float = 1.0
    form: str = ".2f"
    budget: str = ""
    measure: str = "test"
    quartiles: bool = False

    @property
    def values(self) -> list[float]:
        """The measured values in the table's unit."""
        return [measured(r, self.measure) * self.scale for r in self.results]

    @property
    def mean(self) -> float:
        """Their mean; with ``quartiles`` their median."""
        return (statistics.median if self.quartiles else statistics.fmean)(self.values)

    @property
    def interval(self) -> tuple[float, float]:
        """One deviation either side (or the quartiles) from three seeds on, else the range."""
        if len(self.values) < 3:
            return min(self.values), max(self.values)
        if self.quartiles:
            low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
            return low, high
        deviation = statistics.stdev(self.values)
        return self.mean - deviation, self.mean + deviation

    @property
    def text(self) -> str:
        """``mean ± deviation`` from three seeds on, with two the range, with one itself.

        With ``quartiles`` median and quartiles from three seeds on.
        """
        mean = format(self.mean, self.form)
        if len(self.values) == 1:
            return mean
        if len(self.values) == 2 or self.quartiles:
            low, high = (format(v, self.form) for v in self.interval)
            return f"{mean} ({low} to {high})"
        return f"{mean} ± {format(statistics.stdev(self.values), self.form)}"

    @property
    def seconds(self) -> float:
        """Mean training time of one seed."""
        return statistics.fmean(r.seconds for r in self.results)


def measured(result: Result, measure: str) -> float:
    """One number of a result.

    Args:
        result: The result.
        measure: "test", "valid", or a name in its curve: the value at the epoch of its weights.
    """
    if measure in ("test", "valid"):
        return float(getattr(result, measure))
    at = result.curve["epoch"].index(result.best_epoch)
    return float(result.curve[measure][at])


@dataclass(frozen=True)
class Line:
    """A row of a table and what we have of it."""

    row: Row
    full: Ours | None
    reduced: tuple[Ours, ...]

    @property
    def state(self) -> str:
        """Our number in words where there is no full run: not here, not run."""
        if self.row.run is None:
            return ABSENT
        return NOT_RUN if self.full is None else self.full.text

    @property
    def missing(self) -> tuple[int, ...]:
        """The row's seeds that have no full result yet."""
        if self.row.run is None:
            return ()
        done = {r.run.seed for r in self.full.results} if self.full else set()
        return tuple(seed for seed in self.row.seeds if seed not in done)

    @property
    def seeds(self) -> str:
        """How many seeds ran, and of how many if some are missing: ``"2 of 3"``."""
        if self.full is None:
            return ""
        if not self.missing:
            return str(len(self.full.results))
        wanted = len(self.row.seeds)
        done = wanted - len(self.missing)
        more = len(self.full.results) - done
        return f"{done} of {wanted}" + (f" + {more} other{'s' * (more > 1)}" if more else "")


def compare(table: Table, results: Iterable[Result]) -> list[Line]:
    """Joins the rows of a table with results.

    A result belongs to a row if their runs differ in nothing but the seed (and the number of the
    split, see ``Row.split``); a result marked ``reduced`` if it has no more of anything that a
    budget may reduce (see ``budget.full_runs_of``). Of several results of one run the last counts.

    Args:
        table: The table at full budget.
        results: Result lines; those of other tables are passed over.

    Returns:
        One line per row, in the table's order.
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
        part = table.part(row.group)
        ordered = tuple(sorted(found, key=lambda r: r.run.seed))
        run = ordered[0].run
        budget = f"reduced budget: {reduction(run, row.run)}" if run.reduced and row.run else ""
        return Ours(ordered, part.scale, part.form, budget, part.measure, part.quartiles)

    lines = []
    for row in table.rows:
        key = row.run.hash if row.run else ""
        mine = ours(row, full[key]) if key in full else None
        small = tuple(ours(row, found) for found in reduced.get(key, {}).values())
        lines.append(Line(row, mine, small))
    return lines


def has_results(lines: Iterable[Line]) -> bool:
    """Whether any line has a run of ours, full or reduced.

    Example:
        >>> from anharmonic_papers.tables.registry import table
        >>> has_results(compare(table("demo"), []))
        False
    """
    return any(line.full or line.reduced for line in lines)


def command(
    table: Table,
    rows: Sequence[Row] = (),
    seeds: Sequence[int] = (),
    results: Path | None = None,
) -> str:
    """The command line that runs a table, or some rows and seeds of it.

    Args:
        table: The table.
        rows: The rows; all if none is given.
        seeds: The seeds; each row's own if none is given.
        results: The file of results that the command adds to, or the folder of such files; None
            for where ``anharmonic table`` writes by itself.

    Example:
        >>> from anharmonic_papers.tables.base import Row, Table
        >>> rows = (Row("LSTM"), Row("LEM"))
        >>> command(Table("demo", "", "", "", "", rows), rows, seeds=(1, 2))
        'anharmonic table demo --rows lstm lem --seeds 1 2'
    """
    words = ["anharmonic", "table", table.id]
    words += ["--rows", *(row.id for row in rows)] if rows else []
    words += ["--seeds", *map(str, seeds)] if seeds else []
    if results is not None:
        words += ["--results", str(results / f"{table.id}.jsonl" if results.is_dir() else results)]
    return shlex.join(words)


def duration(seconds: float) -> str:
    """A time for people.

    Example:
        >>> duration(7.31), duration(125), duration(7325)
        ('7.3 s', '2 min 5 s', '2 h 2 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def count(parameters: int) -> str:
    """A number of parameters as the papers print it.

    Example:
        >>> count(67900), count(1234), count(4773938)
        ('67.9k', '1.2k', '4.8M')
    """
    if parameters < 1000:
        return str(parameters)
    return f"{parameters / 1e3:.1f}k" if parameters < 1e6 else f"{parameters / 1e6:.1f}M"


def reported(row: Row) -> str:
    """The printed number with its spread; ``see notes`` where there are words, else ``-``."""
    if not row.reported:
        return "see notes" if row.outcome else "-"
    return _with_spread(row.reported, row.spread)


def _with_spread(value: str, spread: str) -> str:
    return f"{value} ± {spread}" if spread else value


def cells(line: Line) -> list[tuple[str, ...]]:
    """The cells of a line, in the order of ``HEAD``; reduced runs follow in lines of their own."""
    row = line.row
    settings: str = row.settings if row.run else ""
    theirs = row.parameters or "-"
    rerun = _with_spread(row.rerun, row.rerun_spread)
    out: list[tuple[str, ...]]
    if line.full is None:
        out = [(row.label, reported(row), line.state, rerun, "", theirs, "", "", settings)]
    else:
        ours = line.full
        out = [
            (
                row.label,
                reported(row),
                ours.text,
                rerun,
                line.seeds,
                theirs,
                count(ours.results[0].parameters),
                duration(ours.seconds),
                settings,
            )
        ]
    for ours in line.reduced:
        out.append(
            (
                f"  {ours.budget}",
                "",
                f"[{ours.text}]",
                "",
                str(len(ours.results)),
                "",
                count(ours.results[0].parameters),
                duration(ours.seconds),
                "reduced",
            )
        )
    return out


def columns(lines: Iterable[Line]) -> list[int]:
    """Which columns of ``HEAD`` hold anything."""
    rows = [row for line in lines for row in cells(line)]
    return [i for i in range(len(HEAD)) if any(row[i] not in ("", "-") for row in rows)]


def groups(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """The lines by the group of their row, in order."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.row.group, []).append(line)
    return found


def remarks(table: Table, lines: Iterable[Line]) -> list[str]:
    """Everything said below a table: its note, the rows' outcomes and notes, what was reduced."""
    out = []
    lines = list(lines)
    for part in table.parts or (table,):
        name = f"{part.title}: " if table.parts else ""
        if part.baseline:
            value, meaning = part.baseline
            out.append(f"{name}Trivial solution: {value:g} ({meaning}).")
        if part.note:
            out.append(f"{name}{part.note}")
    if table.parts and table.note:
        out.append(table.note)
    if any(line.reduced for line in lines):
        out.append(
            "Numbers in brackets come from runs on a reduced budget. They are not comparable with "
            "the reported ones and enter no mean."
        )
    some = [(ln.row, ours) for ln in lines for ours in (ln.full, *ln.reduced) if ours]
    ran = [(row, ours.budget, one) for row, ours in some for one in ours.results]
    out += steps_until(table, ran)
    said: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        row = line.row
        words = " ".join(filter(None, (f"Reported: {row.outcome}." * bool(row.outcome), row.note)))
        if words:
            places = said.setdefault(words, {}).setdefault(row.label, [])
            places += [row.group] if row.group else []
    for words, names in said.items():
        who = (f"{name} ({', '.join(g)})" if g else name for name, g in names.items())
        out.append(f"{'; '.join(who)}: {words}")
    return out


def missing(table: Table, lines: Iterable[Line], results: Path | None = None) -> list[str]:
    """The commands that run what has no full result yet: rows, or some seeds of a row.

    Args:
        table: The table.
        lines: What ``compare`` gave.
        results: As in ``command``.
    """
    first: dict[Run, Line] = {}  # rows of several parts may be of one run
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


def provenance(lines: Iterable[Line]) -> list[str]:
    """Hardware, versions and commits behind the numbers, each said once."""
    results = [r for ln in lines for o in (ln.full, *ln.reduced) if o for r in o.results]
    if not results:
        return []
    places = sorted(
        {
            f"{r.hardware} ({r.device}"
            + (f" x {r.devices}" if r.devices > 1 else "")
            + f", {r.threads} thread{'s' * (r.threads > 1)})"
            for r in results
        }
    )
    versions = sorted({", ".join(f"{k} {v}" for k, v in r.versions.items()) for r in results})
    commits = sorted({str(r.commit)[:12] for r in results if r.commit})
    dates = sorted(r.started[:10] for r in results)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    out = [f"Ran on: {'; '.join(places)}.", f"Versions: {'; '.join(versions)}.", f"Date: {when}."]
    return [*out, f"Commit: {', '.join(commits)}."] if commits else out


def heading(table: Table) -> str:
    """Metric, unit and direction in one line; the source alone if the groups have their own."""
    source = f"Source: {table.source}."
    return source if table.parts else f"{_measure(table)}. {source}"


def subheading(table: Table, group: str) -> str:
    """The heading of a group of rows: its name, with the metric if it has its own."""
    return f"{group}: {_measure(table.part(group))}" if table.parts else group


def _measure(table: Table) -> str:
    unit = f" ({table.unit})" if table.unit else ""
    return f"{table.metric}{unit}, {table.direction} is better"


def terminal(table: Table, lines: Sequence[Line], results: Path | None = None) -> str:
    """The comparison as plain text.

    Args:
        table: The table.
        lines: What ``compare`` gave.
        results: As in ``command``.
    """
    shown = columns(lines)
    parts: list[Any] = [f"{table.id}: {table.title}", heading(table)]
    budgets: dict[str, int] = {}  # said below: they are too long for a column
    for name, members in groups(lines).items():
        rows = []
        for line in members:
            first, *others = cells(line)
            rows.append([first[i] for i in shown])
            for ours, row in zip(line.reduced, others, strict=True):
                number = budgets.setdefault(ours.budget, len(budgets) + 1)
                rows.append([(f"  [{number}]", *row[1:])[i] for i in shown])
        parts += ["", *([f"[{subheading(table, name)}]"] if name else [])]
        head = [HEAD[i] for i in shown]
        parts.append(pages.grid(head, rows, strong=("ours",), fixed=("reported", "ours")))
    said = [f"[{number}] {budget[:1].upper()}{budget[1:]}." for budget, number in budgets.items()]
    parts += ["", pages.bullets([*said, *remarks(table, lines), *provenance(lines)])]
    commands = missing(table, lines, results)
    if commands:
        parts.append("To run what is missing:")
        parts += [pages.unwrapped(f"  {command}") for command in commands]
    return pages.text(*parts)


def markdown(table: Table, lines: Sequence[Line], results: Path | None = None) -> str:
    """The comparison as a Markdown section.

    Args:
        table: The table.
        lines: What ``compare`` gave.
        results: As in ``command``.
    """
    shown = columns(lines)

    def text(row: Sequence[str]) -> str:
        return "| " + " | ".join(row[i].strip().replace("|", "\\|") for i in shown) + " |"

    out = [f"## {table.title}", "", f"`{table.id}` · {heading(table)}", ""]
    out += [text(HEAD), text(["---"] * len(HEAD))]
    left_out = []
    for name, members in groups(lines).items():
        told = [line for line in members if line.full or line.reduced or line.row.value is not None]
        left = [line.row.label for line in members if line not in told]
        left_out += [", ".join(left) + f" ({name})" * bool(name)] if left else []
        head = [f"**{subheading(table, name)}**"] + [""] * (len(HEAD) - 1)
        out += [text(head)] if name and told else []
        out += [text(c) for line in told for c in cells(line)]
    out += [
        "",
        *([f"- Without a number, reported or ours: {'; '.join(left_out)}."] * bool(left_out)),
    ]
    out += [*(f"- {remark}" for remark in remarks(table, lines))]
    out += [f"- {said}" for said in provenance(lines)]
    commands = missing(table, lines, results)
    if commands:
        out += ["", "To run what is missing:", "", "```", *commands, "```"]
    return "\n".join(out) + "\n"
