"""Every experiment of the papers by name, those without a table or a figure here, too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    Args:
        id: Its name, that of its table or figure where there is one.
        title: What it compares; empty where the table or the figure says so.
        source: Paper and place; likewise.
        data: The data that it needs and that are not at hand.
        why: Why our numbers are below the reported, on a smaller budget or missing.
    """

    id: str
    title: str = ""
    source: str = ""
    data: str = ""
    why: str = ""


@cache
def experiments() -> tuple[Experiment, ...]:
    """All experiments, in the order of the papers.

    Example:
        >>> len(experiments()), experiments()[0].id
        (70, 'cornn-adding')
    """
    path = Path(__file__).with_name("experiments.yaml")
    return tuple(Experiment(**entry) for entry in yaml.safe_load(path.read_text("utf-8")))


def absent(known: set[str]) -> list[tuple[str, str]]:
    """Names of experiments that have no table or figure, each with what `anharmonic list` says.

    Args:
        known: Names of the tables and figures.
    """
    return [
        (one.id, f"{one.title}. Not here yet{f': needs {one.data}' if one.data else ''}. "
         f"Source: {one.source}.")
        for one in experiments()
        if one.id not in known
    ]  # fmt: skip
