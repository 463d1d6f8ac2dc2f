"""Number of optimiser steps until the validation value passes a threshold, by row and seed."""

from __future__ import annotations

from collections.abc import Iterable

from anharmonic.train import Result
from anharmonic_papers.tables.base import Row, Table
from anharmonic_papers.tables.budget import steps_per_epoch


def steps_until(table: Table, results: Iterable[tuple[Row, str, Result]]) -> list[str]:
    """State in one sentence after how many steps validation first fell below each threshold.

    Args:
        table: The table; without thresholds the result is empty.
        results: Results, each with its row and a description of its budget, empty for a full run.
    """
    if not table.thresholds:
        return []
    said = [
        f"{_place(row)}{f' [{budget}]' * bool(budget)}, seed {one.run.seed}: {_found(table, one)}"
        for row, budget, one in results
    ]
    if not said:
        return []
    names = " and ".join(f"{limit:g}" for limit in table.thresholds)
    return [f"Steps until {table.metric} in validation was below {names}: {'; '.join(said)}."]


def _place(row: Row) -> str:
    return f"{row.label}, {row.group}" if row.group else row.label


def _found(table: Table, result: Result) -> str:
    each = steps_per_epoch(result.run)
    curve = list(zip(result.curve["epoch"], result.curve["valid"], strict=True))
    first = [
        next((n * each for n, value in curve if value * table.scale < limit), None)
        for limit in table.thresholds
    ]
    if first[0] is None:
        return f"not in {result.run.epochs * each:,}"
    return ", ".join("never" if steps is None else f"{steps:,}" for steps in first)
