"""Models, tasks and commands that other installed packages add through entry points.

A package names them in its ``pyproject.toml`` under one of the groups below; nothing of it is
imported before a name is used.
"""

from __future__ import annotations

import functools
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

Group = Literal[
    "anharmonic.sequence_models",
    "anharmonic.graph_models",
    "anharmonic.tabular_models",
    "anharmonic.tasks",
    "anharmonic.commands",
    "anharmonic.lists",
]

MODELS: tuple[Group, ...] = (
    "anharmonic.sequence_models",
    "anharmonic.graph_models",
    "anharmonic.tabular_models",
)
"""The groups whose names stand for models."""


@functools.cache
def _found(group: Group) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def names(group: Group) -> list[str]:
    """The names of a group, in alphabetical order.

    Args:
        group: The entry points' group.

    Example:
        >>> isinstance(names("anharmonic.tasks"), list)
        True
    """
    return sorted(_found(group))


def load(group: Group, name: str) -> Any:
    """Imports what a name of a group stands for.

    Args:
        group: The entry points' group.
        name: One of ``names(group)``.
    """
    return _found(group)[name].load()
