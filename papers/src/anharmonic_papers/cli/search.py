"""``anharmonic search ID``: searches the settings of a table's rows, going on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anharmonic._checks import message
from anharmonic.cli import field_options, parse, short_usage

if TYPE_CHECKING:
    from anharmonic.train import BestTrial, RunEnvironment
    from anharmonic_papers.tables.base import Row, Table

PROG = "anharmonic search"


@dataclass(frozen=True)
class Search:
    """What to search."""

    rows: tuple[str, ...] = ()
    """Only these rows, by the names that `anharmonic table ID --dry-run` shows. Default: all that
    have ranges."""
    trials: int = 20
    """Trials per row, those done before included."""
    seeds: tuple[int, ...] = (0,)
    """The seeds, and splits, whose mean validation metric judges a trial."""
    studies: Path = Path("searches")
    """Folder of the journals, of every trial's result, and of ID.json with what was chosen."""


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic search``.

    Returns:
        The exit code.

    Raises:
        ValueError: If a name or an option is wrong.
    """
    from anharmonic.train import RunEnvironment
    from anharmonic_papers.tables.registry import table

    if not words:
        return short_usage(f"usage: {PROG} ID [OPTIONS]", f"see {PROG} --help")
    ids = [word for word in words[:1] if not word.startswith("-")]
    groups = {
        "search": field_options(Search),
        "environment": field_options(RunEnvironment, ("file", "results", "out")),
    }
    values = parse(words[len(ids) :], groups, PROG, "Searches the settings of rows.", "ID")
    if not ids:
        raise ValueError(message(f"{PROG} takes the name of a table first", words[0], "name one"))
    folder: Path = values["studies"]
    environment = RunEnvironment(
        out=folder / "runs",
        results=folder / f"{ids[0]}.jsonl",
        **{o.name: values[o.name] for o in groups["environment"]},
    )
    found = table(ids[0])
    for row in _rows(found, values["rows"]):
        chosen = _search(found, row, values, environment)
        _keep(folder / f"{found.id}.json", row, chosen, values["seeds"])
        print(f"{row.id}: validation {chosen.valid:.6g} after {chosen.trials} trials", flush=True)
        print("    " + " ".join(f"{k}={v}" for k, v in chosen.values.items()), flush=True)
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


def _search(
    table: Table, row: Row, values: dict[str, Any], environment: RunEnvironment
) -> BestTrial:
    from anharmonic import train

    assert row.run is not None
    journal: Path = values["studies"] / table.id / f"{row.id}.journal"
    return train.search(
        row.run,
        row.search,
        values["trials"],
        environment,
        journal,
        seeds=values["seeds"],
        split=row.split,
    )


def _keep(path: Path, row: Row, chosen: BestTrial, seeds: Sequence[int]) -> None:
    from anharmonic.train import write_atomically

    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    kept[row.id] = {
        "values": chosen.values,
        "valid": float(f"{chosen.valid:.6g}"),
        "trials": chosen.trials,
        "seeds": list(seeds),
    }
    write_atomically(path, json.dumps(kept, indent=1, sort_keys=True) + "\n")
