"""All experiments of the papers by name, with reasons for lower results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    Args:
        id: Name of its table or figure.
        data: The data that we lack; such an experiment has no table.
        why: Reason why our numbers are below the reported ones, on a smaller budget or missing.
    """

    id: str
    data: str = ""
    why: str = ""


@cache
def experiments() -> tuple[Experiment, ...]:
    """Return all experiments in the order of the papers."""
    path = Path(__file__).with_name("experiments.yaml")
    return tuple(Experiment(**entry) for entry in yaml.safe_load(path.read_text("utf-8")))
