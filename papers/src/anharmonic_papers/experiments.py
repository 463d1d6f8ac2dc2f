"""Every experiment of the papers by name, with why ours falls short."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    Args:
        id: Its name, that of its table or figure.
        data: The data that must be downloaded for it first.
        why: Why our numbers are below the reported, on a smaller budget or missing.
    """

    id: str
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
