"""``anharmonic table ID``: run the rows of a table or search their settings, resuming both."""

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from anharmonic import train
from anharmonic._checks import distinct, flag, require
from anharmonic.cli import command_of, fields_of, is_debugging, one_line, run_command
from anharmonic.train import (
    BestTrial,
    Result,
    RunEnvironment,
    fit_rows,
    read_results,
    without_results,
    write_atomically,
)
from anharmonic_papers.figures.registry import tables_and_figures
from anharmonic_papers.report.compare import compare, results_folder
from anharmonic_papers.report.text import terminal
from anharmonic_papers.tables import list_tables
from anharmonic_papers.tables.base import Row, Table
from anharmonic_papers.tables.budget import Budget, unused_bounds

PROG = "anharmonic table"
Environment = Annotated[
    RunEnvironment, fields_of(RunEnvironment, file=None, results=None, start_from=None)
]


@dataclass(frozen=True)
class Search:
    """Whether settings are searched, and how.

    Args:
        search: Search settings instead of running rows. Only rows with ranges are searched. The
            mean validation score over --seeds, which also choose splits, ranks the trials.
        trials: Trials per row of a search, including those done before.
        studies: Folder of a search: its databases, the result of every trial, and ID.json with the
            best ones.
    """

    search: bool = False
    trials: int = 20
    studies: Path = Path("searches")


def run(words: Sequence[str]) -> int:
    """Run the command with the arguments after ``anharmonic table``; return the exit code."""
    return run_command(run_tables, words, PROG)


def run_tables(
    ids: Positional[tuple[str, ...]],
    budget: Budget,
    environment: Environment,
    search: Search = Search(),
    jobs: int = 1,
    rows: tuple[str, ...] | None = None,
    seeds: tuple[int, ...] | None = None,
    dry_run: bool = False,
    results: Path | None = None,
) -> int:
    """Run the rows of tables of the papers.

    Args:
        ids: Names of tables, such as demo. `anharmonic list tables` shows all.
        budget: Upper bounds of a reduced run.
        environment: Where rows are trained.
        search: Whether settings are searched instead.
        jobs: Number of rows to run at once, each in its own process. Without --threads they share
            the cores.
        rows: Run only these rows. --dry-run shows their names. Default: all.
        seeds: Seeds to use instead of each row's own.
        dry_run: List what would run, and stop. With --rows, print the command that trains each.
        results: File of result lines. Runs in it are not repeated. Default: ID.jsonl in
            papers/results of a checkout, else in results. By default runs in any .jsonl file of
            that folder are not repeated.

    Returns:
        0, or 1 if a row failed.

    Raises:
        ValueError: If a name or an option is wrong.
    """
    known = ", ".join(list_tables())
    require(bool(ids), f"IDs of {PROG}", "nothing", "names of tables", f"known are {known}")
    for name, values in {"--rows": rows, "--seeds": seeds}.items():
        require(values != (), name, "nothing", "given with values", f"leave out {name} for all")
    rows, seeds = rows or (), seeds or ()
    distinct("seeds", seeds)
    tables, figures = tables_and_figures(ids)
    drawn = " ".join(figure.id for figure in figures)
    require(not figures, PROG, drawn, "given tables", f"run `anharmonic figure {drawn}`")
    unused = search != Search() and not search.search
    require(not unused, "--trials and --studies", "no --search", "with it", "add --search")
    if search.search:
        others = {"--dry-run": dry_run, "--jobs": jobs != 1, "--results": results is not None}
        extra = ", ".join(name for name, is_set in others.items() if is_set)
        require(not extra, "--search", extra, f"without {', '.join(others)}", f"leave out {extra}")
        for table in tables:
            search_rows(table.reduced(budget), rows, search, environment, seeds or (0,))
        return 0
    pairs = [(table, table.reduced(budget)) for table in tables]
    for table in tables:
        for text in _without_effect(_rows(table, rows), budget):
            print(f"{table.id}: {text}")
        for row in _rows(table, rows):
            for run in row.runs(seeds) if row.split and seeds else ():
                run.make_task(environment)  # refuses a split that is not there
    failed = []
    for full, table in pairs:
        path = results or results_folder() / f"{table.id}.jsonl"
        named = [
            train.Row(f"{table.id}: {row.id}, seed {run.seed}", run)
            for row in _rows(table, rows)
            for run in row.runs(seeds or None)
        ]
        missing = without_results(named, results_so_far(path))
        if dry_run:
            todo = {row.run.hash for row in missing}
            _list(table, _rows(table, rows), todo, seeds or None, commands=bool(rows))
            continue
        failed += fit_rows(
            missing,
            replace(environment, results=path),
            jobs,
            say=functools.partial(print, flush=True),
            describe=one_line,
            debug=is_debugging(),
        )
        print(f"\n{terminal(full, compare(full, results_so_far(path)), results)}\n")
    for text in failed:
        print(f"failed: {text}")
    return 1 if failed else 0


def _without_effect(rows: Sequence[Row], budget: Budget) -> list[str]:
    """Return one line for each bound of the budget that has no effect on some of the rows."""
    unused: dict[str, list[str]] = {}
    for row in rows:
        for name in unused_bounds(row.run, budget) if row.run is not None else ():
            unused.setdefault(name, []).append(row.id)
    return [
        f"{flag(name)} {budget.bounds()[name]} has no effect on {', '.join(ids)}"
        for name, ids in unused.items()
    ]


def _rows(table: Table, names: Sequence[str]) -> Sequence[Row]:
    """Return the named rows, or all rows that can run."""
    able = [row for row in table.rows if row.run is not None]
    why = "the models of other rows are not in this package"
    return chosen_rows(table, names, able, "that can run", why)


def _list(
    table: Table,
    rows: Sequence[Row],
    todo: set[str],
    seeds: tuple[int, ...] | None,
    commands: bool,
) -> None:
    print(f"{table.id}: {table.title}")
    width = max((len(row.id) for row in rows), default=0)
    listed: set[str] = set()  # rows of several parts may be of one run
    for row in rows:
        for run in row.runs(seeds):
            if run.hash in listed:
                continue
            listed.add(run.hash)
            state = "would run" if run.hash in todo else "has a result"
            options = {**run.task_options, **run.model_options}.items()
            print(
                f"  {row.id.ljust(width)}  seed {run.seed}  {state}  {run.model} "
                f"epochs={run.epochs} batch_size={run.batch_size} lr={run.lr:g} "
                f"{' '.join(f'{name}={value}' for name, value in options)}"
                f"{'  (reduced budget)' if run.reduced else ''}"
            )
            if commands:
                print(f"    {command_of(run)}")
    if not commands:
        print("Add --rows ROW for the command that trains a row, with all its settings.")


def results_so_far(path: Path) -> list[Result]:
    """Read the results of a file, after those of the other files if it is in the default folder."""
    others: list[Path] = []
    if path.parent.resolve() == results_folder().resolve():
        others = sorted(p for p in path.parent.glob("*.jsonl") if p.name != path.name)
    return [result for file in (*others, path) for result in read_results(file)]


def search_rows(
    table: Table,
    rows: Sequence[str],
    how: Search,
    environment: RunEnvironment,
    seeds: Sequence[int] = (0,),
) -> None:
    """Search the settings of a table's rows, by default of all that have ranges."""
    studies = how.studies
    environment = replace(environment, out=studies / "runs", results=studies / f"{table.id}.jsonl")
    able = [row for row in table.rows if row.search]
    why = "settings of other rows are printed or published"
    for row in chosen_rows(table, rows, able, "with ranges", why):
        assert row.run is not None
        study = studies / table.id / f"{row.id}.db"
        best = train.search(
            row.run, row.search, how.trials, environment, study, seeds=seeds, split=row.split
        )
        _write(studies / f"{table.id}.json", row, best, seeds)
        print(f"{row.id}: validation {best.valid:.6g} after {best.trials} trials", flush=True)
        print("    " + " ".join(f"{k}={v}" for k, v in best.values.items()), flush=True)


def chosen_rows(
    table: Table, names: Sequence[str], able: Sequence[Row], what: str, why: str
) -> Sequence[Row]:
    """Return the named rows, or all that are able; others are refused with the reason."""
    rows = [table.row(name) for name in names] or able
    other = [row.id for row in rows if row not in able] if able else names
    known = ", ".join(row.id for row in able) or "none"
    require(
        bool(able) and not other, f"a row of {table.id} {what}", ", ".join(other),
        f"one of {known}", why,
    )  # fmt: skip
    return rows


def _write(path: Path, row: Row, best: BestTrial, seeds: Sequence[int]) -> None:
    """Add a row's best trial to a file."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    content[row.id] = {
        "values": best.values,
        "valid": float(f"{best.valid:.6g}"),
        "trials": best.trials,
        "seeds": list(seeds),
    }
    write_atomically(path, json.dumps(content, indent=1, sort_keys=True) + "\n")
