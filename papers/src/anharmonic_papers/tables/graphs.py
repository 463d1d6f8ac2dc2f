"""Runs on graphs that several tables share, the ranges they are searched in, and what was chosen.

Few settings of the graph experiments are published. ``anharmonic search`` draws them at random from
the documents' ranges (those of G², for every model), judged by validation; equal seeds give every
row the same candidates. What was chosen is written to ``searches/ID.json`` and copied from there to
``chosen.json``, which the tables read; rows that were not searched say so. There a row may take
another's settings, ``{"as": ROW}``, where a search of its own takes too long.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from anharmonic._checks import listed
from anharmonic.train import Range, Run, with_settings
from anharmonic_papers.tables.base import Row, Table

TEN = tuple(range(10))
"""Seeds, and splits, of the ten fixed splits."""

_COMMON = {
    "lr": Range(1e-4, 1e-2, log=True),
    "hidden_size": Range(choices=(32, 64, 128, 256)),
    "num_layers": Range(choices=(1, 2, 4, 8)),
    "input_dropout": Range(0.0, 0.9),
    "output_dropout": Range(0.0, 0.9),
    "weight_decay": Range(1e-8, 1e-2, log=True),
}
SPACES: dict[str, dict[str, Range]] = {
    "PlainGNN": _COMMON,
    "GCNII": _COMMON,
    "GraphCON": _COMMON,
    "GradientGating": {
        **_COMMON,
        "p": Range(1.0, 5.0),
        "separate_gate": Range(choices=(False, True)),
    },
}
"""What a search draws from, by model: the documents' ranges for G²; numbers of layers are ours."""

SEARCH_NOTE = (
    "Settings: random search, {trials} trials for this row, judged by validation on {splits} of "
    "those reported."
)
LIKE_NOTE = "Settings: those that the search for {row} chose; none of its own."
UNSEARCHED = "Settings: our defaults, not searched yet."


def node_run(task: str, model: str, conv: str = "", **options: Any) -> Run:
    """A run on the nodes of one graph: 200 steps at most, the best validated weights are tested.

    Args:
        task: The task.
        model: The network.
        conv: The convolution's name; empty for a network that has none to choose.
        **options: Fields of the run and options of the model, by name.
    """
    start = Run(task, model, epochs=200, lr=3e-3, weight_decay=1e-4)
    given = {"conv": conv} if conv else {}
    return with_settings(start, {**given, **options})


def depth_run(model: str, layers: int, **options: Any) -> Run:
    """A run with GCN on the public split of Cora; the same settings at every depth.

    Args:
        model: The network.
        layers: Layers of its block.
        **options: Further options of the model.
    """
    settings = {
        "hidden_size": 64,
        "lr": 1e-2,
        "weight_decay": 5e-4,
        "input_dropout": 0.5,
        "output_dropout": 0.5,
    }
    run = node_run("cora", model, "GCN", num_layers=layers, **settings, **options)
    return replace(run, task_options={"normalise_features": True})


@cache
def chosen() -> Mapping[str, Mapping[str, Any]]:
    """What searches chose, by table and row."""
    text = files("anharmonic_papers.tables").joinpath("chosen.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, Any]] = json.loads(text)
    return found


def tuned(table: Table) -> Table:
    """The table with the settings that its search chose, as far as it was run.

    Args:
        table: The table; rows with ``search`` are looked at.
    """
    found = chosen().get(table.id, {})
    rows: list[Row] = []
    for row in table.rows:
        entry = found.get(row.id)
        if entry is not None and row.run is not None and row.search:
            if "as" in entry:
                note, entry = LIKE_NOTE.format(row=entry["as"]), found[entry["as"]]
            else:
                seeds = [str(seed) for seed in entry["seeds"]]
                splits = f"split{'s' * (len(seeds) > 1)} {listed(seeds)}"
                note = SEARCH_NOTE.format(trials=entry["trials"], splits=splits)
            run = with_settings(row.run, entry["values"])
            row = replace(row, run=run, note=" ".join(filter(None, (note, row.note))))
        elif row.run is not None and row.search:
            row = replace(row, note=" ".join(filter(None, (UNSEARCHED, row.note))))
        rows.append(row)
    return replace(table, rows=tuple(rows))
