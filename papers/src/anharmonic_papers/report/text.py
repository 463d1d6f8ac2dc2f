"""Comparisons as text for the terminal and as Markdown."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from anharmonic import pages
from anharmonic.train import Result
from anharmonic_papers.report.compare import Line, Ours, missing
from anharmonic_papers.tables.base import Row, Table
from anharmonic_papers.tables.budget import steps_per_epoch

SOURCES = (
    "Reported numbers: coRNN arXiv 2010.00951, UnICORNN 2103.05487, LEM 2110.04744, neural "
    "oscillators 2305.08753, GraphCON 2202.02296, G² 2210.00513, and the theses of T. K. Rusch "
    "and F. Nestaas."
)
"""Footer of every report."""
BEST = "The printed number is the best of several trainings, whose mean is {}."
"""Remark on a row with ``retrained``."""
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


def duration(seconds: float) -> str:
    """Format a duration.

    Example:
        >>> duration(59.4), duration(60), duration(7325)
        ('59.4 s', '1 min 0 s', '2 h 2 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def count(parameters: int) -> str:
    """Format a number of parameters as the papers do.

    Example:
        >>> count(999), count(1000), count(1_000_000)
        ('999', '1.0k', '1.0M')
    """
    if parameters < 1000:
        return str(parameters)
    return f"{parameters / 1e3:.1f}k" if parameters < 1e6 else f"{parameters / 1e6:.1f}M"


def reported(row: Row) -> str:
    """Return the printed number with its spread; ``see notes`` for words, otherwise ``-``."""
    if not row.reported:
        return "see notes" if row.outcome else "-"
    return " ± ".join(filter(None, (row.reported, row.spread)))


def cells(line: Line) -> list[tuple[str, ...]]:
    """Return the cells of a line in the order of ``HEAD``; reduced runs have separate lines."""
    row, settings = line.row, str(line.row.settings) if line.row.run else ""
    rerun, theirs = " ± ".join(filter(None, (row.rerun, row.rerun_spread))), row.parameters or "-"
    first = (row.label, reported(row), line.state, rerun, line.seeds, theirs)
    out: list[tuple[str, ...]] = [(*first, *_costs(line.full), settings)]
    for ours in line.reduced:
        shown = (f"  {ours.budget}", "", f"[{ours.text}]", "", str(len(ours.results)), "")
        out.append((*shown, *_costs(ours), "reduced"))
    return out


def _costs(ours: Ours | None) -> tuple[str, str]:
    """Return our number of parameters and the training time."""
    if ours is None:
        return "", ""
    return count(ours.results[0].parameters), duration(ours.seconds)


def columns(lines: Iterable[Line]) -> list[int]:
    """Return the non-empty columns of ``HEAD``."""
    rows = [row for line in lines for row in cells(line)]
    return [i for i in range(len(HEAD)) if any(row[i] not in ("", "-") for row in rows)]


def groups(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """Return the lines by the group of their row, in order."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.row.group, []).append(line)
    return found


def remarks(table: Table, lines: Iterable[Line]) -> list[str]:
    """Return the remarks below a table: its note, the rows' outcomes and notes, reductions."""
    out = []
    lines = list(lines)
    for part in table.parts or (table,):
        name = f"{part.title}: " if table.parts else ""
        if part.baseline:
            value, meaning = part.baseline
            out.append(f"{name}Baseline, the trivial solution: {value:g} ({meaning}).")
        if part.note:
            out.append(f"{name}{part.note}")
    if table.parts and table.note:
        out.append(table.note)
    if any(line.reduced for line in lines):
        out.append(
            "Numbers in square brackets come from runs on a reduced budget. They are not "
            "comparable with the reported numbers and are not part of any mean."
        )
    out += _steps_until(table, lines)
    said: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        row = line.row
        outcome = f"Reported: {row.outcome}." * bool(row.outcome)
        best = BEST.format(row.retrained) * bool(row.retrained)
        words = " ".join(filter(None, (outcome, best, row.note)))
        if words:
            places = said.setdefault(words, {}).setdefault(row.label, [])
            places += [row.group] if row.group else []
    for words, names in said.items():
        who = (f"{name} ({', '.join(g)})" if g else name for name, g in names.items())
        out.append(f"{'; '.join(who)}: {words}")
    return out


def _steps_until(table: Table, lines: Iterable[Line]) -> list[str]:
    """State in one sentence after how many steps validation first fell below each threshold."""
    said = []
    for line in lines if table.thresholds else ():
        for ours in line.ours:
            place = ", ".join(filter(None, (line.row.label, line.row.group)))
            place += f" [{ours.budget}]" * bool(ours.budget)
            seeds = (f"seed {one.run.seed}: {_first_below(table, one)}" for one in ours.results)
            said.append(f"{place}, {'; '.join(seeds)}")
    names = " and ".join(f"{limit:g}" for limit in table.thresholds)
    sentence = f"Steps until {table.metric} in validation was below {names}. {'. '.join(said)}."
    return [sentence] if said else []


def _first_below(table: Table, result: Result) -> str:
    each = steps_per_epoch(result.run)
    curve = list(zip(result.curve["epoch"], result.curve["valid"], strict=True))
    first = [
        next((n * each for n, value in curve if value * table.scale < limit), None)
        for limit in table.thresholds
    ]
    if first[0] is None:
        return f"not in {result.run.epochs * each:,}"
    return ", ".join("never" if steps is None else f"{steps:,}" for steps in first)


def provenance(lines: Iterable[Line]) -> list[str]:
    """Return hardware, versions and commits behind the numbers, each once."""
    results = [result for line in lines for ours in line.ours for result in ours.results]
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
    commits = sorted({_short(r.commit) for r in results})
    dates = sorted(r.started[:10] for r in results)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    out = [f"Ran on: {'; '.join(places)}.", f"Versions: {'; '.join(versions)}.", f"Date: {when}."]
    return [*out, f"Commit: {', '.join(commits)}."]


def _short(commit: str | None) -> str:
    """Return the start of a commit, and whether the code had changes that were not committed."""
    if not commit:
        return "unknown"
    return commit[:12] + "-dirty" * commit.endswith("-dirty")


def heading(table: Table) -> str:
    """Return metric, unit and direction in one line; only the source if groups have their own."""
    source = f"Source: {table.source}."
    return source if table.parts else f"{_measure(table)}. {source}"


def subheading(table: Table, group: str) -> str:
    """Return the heading of a group of rows: its name, with the metric if it has its own."""
    return f"{group}: {_measure(table.part(group))}" if table.parts else group


def _measure(table: Table) -> str:
    unit = f" ({table.unit})" if table.unit else ""
    return f"{table.metric}{unit}, {table.direction} is better"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown.

    Example:
        >>> print(markdown_table(["model", "error"], [["LEM", "0.2"]]))
        | model | error |
        | --- | --- |
        | LEM | 0.2 |
    """
    lines = [head, ["---"] * len(head), *rows]
    cells = ([cell.strip().replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def terminal(table: Table, lines: Sequence[Line], results: Path | None = None) -> str:
    """Return the comparison as plain text; ``results`` as in ``command``."""
    shown = columns(lines)
    parts: list[Any] = [f"{table.id}: {table.title}", heading(table)]
    budgets: dict[str, int] = {}  # listed below the table, too long for a column
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
        parts += _fitting(head, rows)
    said = [f"[{number}] {budget[:1].upper()}{budget[1:]}." for budget, number in budgets.items()]
    parts += ["", pages.bullets([*said, *remarks(table, lines), *provenance(lines)])]
    commands = missing(table, lines, results)
    if commands:
        parts.append("To run what is missing:")
        parts += [pages.unwrapped(f"  {command}") for command in commands]
    return pages.text(*parts)


def _fitting(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Any]:
    """Return rows as a table, or as one paragraph each where a table would break words."""
    sizes = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    word = max(len(word) for row in rows for word in row[0].split(" ")) if rows else 0
    if word + sum(sizes[1:]) + 2 * len(sizes) <= pages.width():
        return [pages.grid(head, rows, strong=("ours",), fixed=head[1:])]
    lines = []
    for label, *values in rows:
        named = [f"{name} {value}" for name, value in zip(head[1:], values, strict=True) if value]
        lines.append(f"{label.strip()}: {', '.join(named)}")
    return [pages.bullets(lines)]


def markdown(table: Table, lines: Sequence[Line], results: Path | None = None) -> str:
    """Return the comparison as a Markdown section; ``results`` as in ``command``."""
    shown = columns(lines)
    out = [f"## {table.title}", "", f"`{table.id}` · {heading(table)}", ""]
    rows: list[Sequence[str]] = []
    left_out = []
    for name, members in groups(lines).items():
        kept = [line for line in members if line.ours or line.row.value is not None]
        left = [line.row.label for line in members if line not in kept]
        left_out += [", ".join(left) + f" ({name})" * bool(name)] if left else []
        head = (f"**{subheading(table, name)}**", *[""] * (len(HEAD) - 1))
        rows += [head] if name and kept else []
        rows += [c for line in kept for c in cells(line)]
    out += [
        markdown_table([HEAD[i] for i in shown], [[row[i] for i in shown] for row in rows]),
        "",
        *([f"- Left out, without any number: {'; '.join(left_out)}."] * bool(left_out)),
    ]
    out += [*(f"- {remark}" for remark in remarks(table, lines))]
    out += [f"- {said}" for said in provenance(lines)]
    commands = missing(table, lines, results)
    if commands:
        out += ["", "To run what is missing:", "", "```", *commands, "```"]
    return "\n".join(out) + "\n"
