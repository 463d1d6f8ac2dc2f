"""``anharmonic table ID --search``: search the settings of rows, resuming where it stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from anharmonic import train
from anharmonic._checks import require
from anharmonic.train import BestTrial, RunEnvironment, write_atomically
from anharmonic_papers.tables.base import Row, Table


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
