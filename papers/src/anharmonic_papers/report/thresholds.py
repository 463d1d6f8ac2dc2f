"""After how many optimiser steps the validation value was good enough, by row and seed."""

from __future__ import annotations

from collections.abc import Iterable

from anharmonic.data import make_task
from anharmonic.train import Result
from anharmonic_papers.tables.base import Row, Table


def steps_until(table: Table, results: Iterable[tuple[Row, Result]]) -> list[str]:
    """After how many steps validation first was below each threshold, in one sentence.

    Args:
        table: The table; nothing is said if it has no thresholds.
        results: Results, full or reduced, each with its row.
    """
    if not table.thresholds:
        return []
    said = [f"{_place(row)}, seed {one.run.seed}: {_found(table, one)}" for row, one in results]
    if not said:
        return []
    names = " and ".join(f"{limit:g}" for limit in table.thresholds)
    return [f"Steps until {table.metric} in validation was below {names}: {'; '.join(said)}."]


def _place(row: Row) -> str:
    return f"{row.label}, {row.group}" if row.group else row.label


def _found(table: Table, result: Result) -> str:
    each = steps_per_epoch(result)
    curve = list(zip(result.curve["epoch"], result.curve["valid"], strict=True))
    first = [
        next((n * each for n, value in curve if value * table.scale < limit), None)
        for limit in table.thresholds
    ]
    if first[0] is None:
        return f"not in {result.run.epochs * each:,}"
    return ", ".join("never" if steps is None else f"{steps:,}" for steps in first)


def steps_per_epoch(result: Result) -> int:
    """How many optimiser steps an epoch of a run has.

    Args:
        result: The run's result.
    """
    run = result.run
    task = make_task(run.task, run.task_options)
    return int(getattr(task, "steps_per_epoch", 0)) or -(-task.sizes["train"] // run.batch_size)
