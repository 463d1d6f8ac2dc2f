"""``anharmonic list``: names with one line each; tasks by themselves in full."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from anharmonic._checks import choice, message

if TYPE_CHECKING:
    from anharmonic.experiments.base import Table
    from anharmonic.experiments.figures import Figure

KINDS = ("models", "tasks", "tables", "figures")
WIDTH = 100


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic list``: nothing or kinds.

    Returns:
        The exit code.

    Raises:
        ValueError: If a word is no kind.
    """
    if set(words) & {"-h", "--help"}:
        print("usage: anharmonic list [models] [tasks] [tables] [figures]")
        print("`anharmonic list tasks` says sizes, input, target, metric, source and licence.")
        return 0
    if [word.lower() for word in words] == ["tasks"]:
        print("\n".join(_tasks_in_full()))
        return 0
    kinds = [choice("what to list", word.lower(), KINDS) for word in words] or KINDS
    blocks = []
    for kind in kinds:
        title = [f"{kind}:"] if len(kinds) > 1 else []
        blocks.append("\n".join(title + _lines(_SOURCES[kind]())))
    print("\n\n".join(blocks))
    return 0


def _models() -> list[tuple[str, str]]:
    from anharmonic.models.registry import list_models, model_class

    names = [*list_models(), *list_models("graph"), *list_models("tabular")]
    return [(name, _first_line(model_class(name))) for name in names]


def _tasks() -> list[tuple[str, str]]:
    from anharmonic.tasks.registry import list_tasks, task_class

    return [(name, _first_line(task_class(name))) for name in list_tasks()]


def _tasks_in_full() -> list[str]:
    from anharmonic.tasks.registry import describe_tasks

    out = []
    for task in describe_tasks():
        names = {"train": "training", "valid": "validation", "test": "test"}
        counts = [f"{task.sizes[k]} {name}" for k, name in names.items() if k in task.sizes]
        sizes = f"{', '.join(counts)} {task.samples}; " if counts else ""
        for place, line in enumerate(
            (
                f"{task.name}: {task.summary.replace('`', '')}",
                f"{sizes}input {task.input}; target {task.target}; metric {task.metric}",
                f"source: {task.source}; licence: {task.licence}",
            )
        ):
            first, rest = ("", "    ") if place == 0 else ("    ", "      ")
            out.append(
                textwrap.fill(
                    line,
                    WIDTH,
                    initial_indent=first,
                    subsequent_indent=rest,
                    break_on_hyphens=False,
                )
            )
    return out


def _tables() -> list[tuple[str, str]]:
    from anharmonic.experiments.registry import list_tables, table

    return [_said(table(name)) for name in list_tables()]


def _figures() -> list[tuple[str, str]]:
    from anharmonic.experiments.registry import figure, list_figures

    return [_said(figure(name)) for name in list_figures()]


def _said(entry: Table | Figure) -> tuple[str, str]:
    return entry.id, f"{entry.title}. Source: {entry.source}."


_SOURCES = {"models": _models, "tasks": _tasks, "tables": _tables, "figures": _figures}


def _first_line(cls: type) -> str:
    text = inspect.getdoc(cls)
    if not text:
        raise ValueError(message(f"{cls.__name__} must have a docstring", "none", "write one"))
    return text.split("\n", 1)[0].replace("``", "")


def _lines(entries: Iterable[tuple[str, str]]) -> list[str]:
    entries = list(entries)
    width = max(len(name) for name, _ in entries)
    return [f"  {name.ljust(width)}  {text}" for name, text in entries]
