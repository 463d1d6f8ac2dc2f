"""``anharmonic table ID``: runs the rows of a table, resuming where it stopped."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anharmonic._checks import message
from anharmonic.cli import distinct, field_options, is_debugging, one_line, parse, short_usage
from anharmonic_papers.report.places import results_folder

if TYPE_CHECKING:
    from anharmonic.train import Run, RunEnvironment
    from anharmonic_papers.tables.base import Row, Table
    from anharmonic_papers.tables.budget import Budget

PROG = "anharmonic table"


@dataclass(frozen=True)
class What:
    """What to run."""

    rows: tuple[str, ...] = ()
    """Only these rows, by the names that --dry-run shows. Default: all."""
    seeds: tuple[int, ...] = ()
    """These seeds instead of each row's own."""
    dry_run: bool = False
    """Only list what would run."""


@dataclass(frozen=True)
class Where:
    """Where its results go."""

    results: Path | None = None
    """File of result lines; runs found in it are not repeated. Default: results/ID.jsonl, and
    then runs found in any .jsonl file of results/ are not repeated."""


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic table``.

    Returns:
        0, or 1 if a row failed.

    Raises:
        ValueError: If a name or an option is wrong.
    """
    from anharmonic.train import RunEnvironment
    from anharmonic_papers.figures.registry import tables_and_figures
    from anharmonic_papers.tables import list_tables
    from anharmonic_papers.tables.budget import Budget

    known = ", ".join(list_tables())
    if not words:
        return short_usage(
            f"usage: {PROG} ID [ID ...] [OPTIONS]",
            f"for example: {PROG} demo",
            f"known are {known}; see {PROG} --help",
        )
    first = next((i for i, w in enumerate(words) if w.startswith("-")), len(words))
    ids, flags = words[:first], words[first:]
    if not ids and not set(flags) & {"-h", "--help"}:
        raise ValueError(
            message(
                f"{PROG} takes the names of tables first",
                " ".join(words) or "nothing",
                f"for example {PROG} demo; known are {known}",
            )
        )
    groups = {
        "run": field_options(What) + field_options(Where),
        "budget": field_options(Budget),
        "environment": field_options(RunEnvironment, ("file", "results")),
    }
    values = parse(flags, groups, PROG, "Runs the rows of tables of the documents.", "ID [ID ...]")
    budget = Budget(**{o.name: values[o.name] for o in groups["budget"]})
    distinct("--seeds", values["seeds"])
    environment = RunEnvironment(**{o.name: values[o.name] for o in groups["environment"]})
    tables, figures = tables_and_figures(ids)
    if figures:
        drawn = " ".join(figure.id for figure in figures)
        raise ValueError(
            message(f"{PROG} takes tables", f"figures, {drawn}", f"run `anharmonic figure {drawn}`")
        )
    chosen = [(table, table.reduced(budget)) for table in tables]
    for table, _ in chosen:
        for text in _without_effect(_rows(table, values["rows"]), budget):
            print(f"{table.id}: {text}")
    failed = [
        failure
        for full, table in chosen
        for failure in _run_table(full, table, values, environment)
    ]
    for text in failed:
        print(f"failed: {text}")
    return 1 if failed else 0


def _without_effect(rows: Sequence[Row], budget: Budget) -> list[str]:
    """One line for each bound of the budget that leaves some of the rows as they are."""
    from anharmonic_papers.tables.budget import unused_bounds

    found: dict[str, list[str]] = {}
    for row in rows:
        for name in unused_bounds(row.run, budget) if row.run is not None else ():
            found.setdefault(name, []).append(row.id)
    return [
        f"--{name.replace('_', '-')} {budget.bounds()[name]} has no effect on {', '.join(ids)}"
        for name, ids in found.items()
    ]


def _run_table(
    full: Table, table: Table, values: dict[str, Any], environment: RunEnvironment
) -> list[str]:
    """Runs what is missing of one table and prints the comparison; says what failed."""
    from anharmonic_papers.report.compare import compare, terminal

    path: Path = values["results"] or results_folder() / f"{table.id}.jsonl"
    environment = replace(environment, results=path)
    rows = _rows(table, values["rows"])
    seeds = values["seeds"] or None
    done = {r.hash for r in results_so_far(path)}
    wanted = {run.hash: (row, run) for row in rows[::-1] for run in [*row.runs(seeds)][::-1]}
    todo = [pair for name, pair in reversed(wanted.items()) if name not in done]
    if values["dry_run"]:
        _list(table, rows, {run.hash for _, run in todo}, seeds)
        return []
    failed = []
    for number, (row, run) in enumerate(todo, start=1):
        print(f"[{number}/{len(todo)}] {table.id}: {row.id}, seed {run.seed}", flush=True)
        try:
            _fit(run, environment)
        except Exception as error:
            failed.append(f"{table.id}: {row.id}, seed {run.seed}: {one_line(error)}")
            print(f"    failed: {one_line(error)}", flush=True)
            if is_debugging():
                traceback.print_exc()
    print()
    print(terminal(full, compare(full, results_so_far(path))))
    print()
    return failed


def _fit(run: Run, environment: RunEnvironment) -> None:
    from anharmonic import train

    result = train.fit(run, environment)
    print(
        f"    test {result.metric} {result.test:.6g}, {result.parameters} parameters, "
        f"{result.seconds:.1f} s",
        flush=True,
    )


def _rows(table: Table, names: Sequence[str]) -> list[Row]:
    """The rows named, or all that can run."""
    if not names:
        return [row for row in table.rows if row.run is not None]
    rows = [table.row(name) for name in names]
    for row in rows:
        if row.run is None:
            runnable = ", ".join(r.id for r in table.rows if r.run is not None)
            raise ValueError(
                message(
                    f"a row of {table.id} that can run is one of {runnable}",
                    f"{row.id!r}, a model that is not in this package yet",
                    "choose one of these",
                )
            )
    return rows


def _list(table: Table, rows: Sequence[Row], todo: set[str], seeds: tuple[int, ...] | None) -> None:
    print(f"{table.id}: {table.title}")
    width = max((len(row.id) for row in rows), default=0)
    listed: set[str] = set()  # rows of several parts may be of one run
    for row in rows:
        for run in row.runs(seeds):
            if run.hash in listed:
                continue
            listed.add(run.hash)
            state = "would run" if run.hash in todo else "has a result"
            options = " ".join(
                f"{k}={v}" for k, v in {**run.task_options, **run.model_options}.items()
            )
            print(
                f"  {row.id.ljust(width)}  seed {run.seed}  {state}  {run.model} "
                f"epochs={run.epochs} batch_size={run.batch_size} lr={run.lr:g} {options}"
                f"{'  (reduced budget)' if run.reduced else ''}"
            )


def results_so_far(path: Path) -> list[Any]:
    """The results of a file, after those of its siblings if it is in the default folder.

    Args:
        path: The results file; it need not exist.
    """
    from anharmonic.train import read_results

    others: list[Path] = []
    if path.parent.resolve() == results_folder().resolve():
        others = sorted(p for p in path.parent.glob("*.jsonl") if p.name != path.name)
    return [result for file in (*others, path) for result in read_results(file)]
