"""``anharmonic search ID``: searches the settings of a table's rows, going on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from anharmonic import train
from anharmonic._checks import message
from anharmonic.cli import fields_of, run_command
from anharmonic.train import BestTrial, RunEnvironment, write_atomically
from anharmonic_papers.tables.base import Row, Table
from anharmonic_papers.tables.registry import table as find

PROG = "anharmonic search"
Environment = Annotated[
    RunEnvironment, fields_of(RunEnvironment, file=None, results=None, out=Path("runs"))
]


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic search``.

    Returns:
        The exit code.
    """
    return run_command(search, words, PROG)


def search(
    table: Positional[str],
    environment: Environment,
    rows: tuple[str, ...] = (),
    trials: int = 20,
    seeds: tuple[int, ...] = (0,),
    studies: Path = Path("searches"),
) -> int:
    """Searches the settings of a table's rows, judged by validation.

    Args:
        table: Name of the table; `anharmonic list tables` shows all.
        environment: Where the trials are trained.
        rows: Only these rows, by the names that `anharmonic table ID --dry-run` shows. Default: all
            that have ranges.
        trials: Trials per row, those done before included.
        seeds: The seeds, and splits, whose mean validation metric judges a trial.
        studies: Folder of the journals, of every trial's result, and of ID.json with the best.

    Raises:
        ValueError: If a name or an option is wrong.
    """
    whole = find(table)
    environment = replace(environment, out=studies / "runs", results=studies / f"{table}.jsonl")
    for row in _rows(whole, rows):
        assert row.run is not None
        journal = studies / whole.id / f"{row.id}.journal"
        best = train.search(
            row.run, row.search, trials, environment, journal, seeds=seeds, split=row.split
        )
        _write(studies / f"{whole.id}.json", row, best, seeds)
        print(f"{row.id}: validation {best.valid:.6g} after {best.trials} trials", flush=True)
        print("    " + " ".join(f"{k}={v}" for k, v in best.values.items()), flush=True)
    return 0


def _rows(table: Table, names: Sequence[str]) -> list[Row]:
    able = [row for row in table.rows if row.search]
    rows = [table.row(name) for name in names] or able
    if not able or any(not row.search for row in rows):
        known = ", ".join(row.id for row in able) or "none: its settings are all printed"
        raise ValueError(
            message(
                f"a row of {table.id} with ranges is one of {known}",
                ", ".join(names) or "none",
                "choose one of these; settings of other rows are printed or published",
            )
        )
    return rows


def _write(path: Path, row: Row, best: BestTrial, seeds: Sequence[int]) -> None:
    """Adds a row's best trial to a file."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    content[row.id] = {
        "values": best.values,
        "valid": float(f"{best.valid:.6g}"),
        "trials": best.trials,
        "seeds": list(seeds),
    }
    write_atomically(path, json.dumps(content, indent=1, sort_keys=True) + "\n")
