"""Names that are imported lazily: public ones, and those of other installed packages.

Another package adds models, tasks and commands through entry points in one of the groups below.
"""

from __future__ import annotations

import ast
import functools
import importlib
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
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
"""The groups of models."""


@functools.cache
def _found(group: Group) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def names(group: Group) -> list[str]:
    """Return the names of a group in alphabetical order."""
    return sorted(_found(group))


def load(group: Group, name: str) -> Any:
    """Import the object behind a name of a group."""
    return _found(group)[name].load()


def exported_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose ``__init__`` only re-exports.

    The imports stand below ``if TYPE_CHECKING:`` so that editors and mypy follow them. Each runs
    when its name is first used, so a command that trains an LEM loads no graph network.
    """
    homes: dict[str, str] = {}

    def find(name: str) -> Any:
        module = sys.modules[package]
        if not homes:
            homes.update(_imports(Path(str(module.__file__)).read_text(encoding="utf-8")))
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(module, name, value)
        return value

    return find, lambda: list(sys.modules[package].__all__)


def _imports(source: str) -> dict[str, str]:
    """Return the module of every name that a source imports below ``if TYPE_CHECKING:``."""
    return {
        alias.name: str(line.module)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
