"""``anharmonic table ID``: runs the rows of a table, resuming where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from anharmonic._checks import message
from anharmonic.cli.main import one_line
from anharmonic.cli.options import field_options, parse

if TYPE_CHECKING:
    from anharmonic.experiments.base import Row, Table
    from anharmonic.training.run import Place, Run

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
    """Where it runs (changes no number)."""

    results: Path | None = None
    """File of result lines. Default: results/ID.jsonl. Runs found in any .jsonl file beside it
    are not repeated."""
    out: Path = Path("runs")
    """Folder in which each run gets its own folder."""
    data_dir: Path | None = None
    """Folder of the data sets. Default: ANHARMONIC_DATA, else a per-user cache."""
    threads: int | None = None
    """CPU threads of PyTorch."""
    device: Literal["cpu", "cuda", "auto"] = "cpu"
    """Device kind; "auto" takes a GPU where there is one."""
    progress: bool = True
    """Whether progress is shown, on standard error."""


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic table``.

    Returns:
        0, or 1 if a row failed.

    Raises:
        ValueError: If a name or an option is wrong.
    """
    from anharmonic.experiments.base import Budget
    from anharmonic.experiments.registry import expand, list_tables

    first = next((i for i, w in enumerate(words) if w.startswith("-")), len(words))
    ids, flags = words[:first], words[first:]
    if not ids and not set(flags) & {"-h", "--help"}:
        raise ValueError(
            message(
                f"{PROG} takes the names of tables first",
                " ".join(words) or "nothing",
                f"for example {PROG} demo; known are {', '.join(['demo', *list_tables()])}",
            )
        )
    groups = {
        "what": field_options(What),
        "budget": field_options(Budget),
        "where": field_options(Where),
    }
    values = parse(
        flags, groups, f"{PROG} ID [ID ...]", "Runs the rows of tables of the documents."
    )
    budget = Budget(**{o.name: values[o.name] for o in groups["budget"]})
    chosen = [(table, table.reduced(budget)) for table in expand(ids)]
    failed = [failure for full, table in chosen for failure in _run_table(full, table, values)]
    for text in failed:
        print(f"failed: {text}")
    return 1 if failed else 0


def _run_table(full: Table, table: Table, values: dict[str, Any]) -> list[str]:
    """Runs what is missing of one table and prints the comparison; says what failed."""
    from anharmonic.experiments.report import compare, terminal
    from anharmonic.training.run import Place

    path: Path = values["results"] or Path("results") / f"{table.id}.jsonl"
    rows = _rows(table, values["rows"])
    seeds = values["seeds"] or None
    done = {r.hash for r in read_folder(path)}
    todo = [(row, run) for row in rows for run in row.runs(seeds) if run.hash not in done]
    if values["dry_run"]:
        _list(table, rows, {run.hash for _, run in todo}, seeds)
        return []
    place = Place(
        device=values["device"],
        threads=values["threads"],
        data_dir=values["data_dir"],
        out=values["out"],
        results=path,
        progress=values["progress"],
    )
    failed = []
    for number, (row, run) in enumerate(todo, start=1):
        print(f"[{number}/{len(todo)}] {table.id}: {row.id}, seed {run.seed}", flush=True)
        try:
            _fit(run, place)
        except Exception as error:
            failed.append(f"{table.id}: {row.id}, seed {run.seed}: {one_line(error)}")
            print(f"    failed: {one_line(error)}", flush=True)
    print()
    print(terminal(full, compare(full, read_folder(path))))
    print()
    return failed


def _fit(run: Run, place: Place) -> None:
    from anharmonic.training.fit import fit

    result = fit(run, place)
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
    for row in rows:
        for run in row.runs(seeds):
            state = "would run" if run.hash in todo else "has a result"
            options = " ".join(
                f"{k}={v}" for k, v in {**run.task_options, **run.model_options}.items()
            )
            print(
                f"  {row.id.ljust(width)}  seed {run.seed}  {state}  {run.model} "
                f"epochs={run.epochs} batch_size={run.batch_size} lr={run.lr:g} {options}"
                f"{'  (reduced budget)' if run.reduced else ''}"
            )


def read_folder(path: Path) -> list[Any]:
    """All results of the ``.jsonl`` files beside a results file, that file's last.

    Args:
        path: The results file; it need not exist.
    """
    from anharmonic.training.results import read

    others = sorted(p for p in path.parent.glob("*.jsonl") if p.name != path.name)
    return [result for file in (*others, path) for result in read(file)]
