"""``anharmonic list``: names with one line each; ``list tasks`` shows tasks in full."""

from __future__ import annotations

import inspect
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence

from anharmonic import _plugins
from anharmonic._checks import choice, message, missing_papers

USAGE = "usage: anharmonic list [models] [tasks] [tables] [figures]"
WIDEST = 100
"""Largest line length of ``list tasks``, for readability."""


def run(words: Sequence[str]) -> int:
    """Run ``anharmonic list`` with these arguments and return the exit code."""
    if set(words) & {"-h", "--help"}:
        print(USAGE)
        print("`anharmonic list tasks` says sizes, input, target, metric, source and licence.")
        return 0
    if [word.lower() for word in words] == ["tasks"]:
        print("\n".join(_tasks_in_full()))
        return 0
    sources = _sources()
    for word in words:
        if word.lower() in _PAPERS and word.lower() not in sources:
            raise missing_papers(f"list {word}")
    kinds = [choice("what to list", word.lower(), sources) for word in words] or list(sources)
    blocks = []
    for kind in kinds:
        title = [f"{kind}:"] if len(kinds) > 1 else []
        blocks.append("\n".join(title + _lines(sources[kind]())))
    print("\n\n".join(blocks))
    return 0


def _models() -> list[tuple[str, str]]:
    from anharmonic.nn.registry import MODEL_KINDS, list_models, model_class

    names = [name for kind in MODEL_KINDS for name in list_models(kind)]
    return [(name, _first_line(model_class(name))) for name in names]


def _tasks() -> list[tuple[str, str]]:
    from anharmonic.data.registry import list_tasks, task_class

    return [(name, _first_line(task_class(name))) for name in list_tasks()]


def _tasks_in_full() -> list[str]:
    from anharmonic.data.registry import describe_tasks

    out = []
    width = min(_columns() or WIDEST, WIDEST)
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
                    width,
                    initial_indent=first,
                    subsequent_indent=rest,
                    break_on_hyphens=False,
                )
            )
    return out


_SOURCES: dict[str, Callable[[], list[tuple[str, str]]]] = {"models": _models, "tasks": _tasks}


_PAPERS = ("tables", "figures")
"""Kinds that the package anharmonic-papers adds."""


def _sources() -> dict[str, Callable[[], list[tuple[str, str]]]]:
    """Return the kinds: models, tasks, and those of other installed packages."""
    added = {
        name: _plugins.load("anharmonic.lists", name) for name in _plugins.names("anharmonic.lists")
    }
    return _SOURCES | dict(reversed(added.items()))


def _first_line(cls: type) -> str:
    text = inspect.getdoc(cls)
    if not text:
        raise ValueError(message(f"{cls.__name__} must have a docstring", "none", "write one"))
    return text.split("\n", 1)[0].replace("``", "")


def _columns() -> int | None:
    """Return the terminal's width; None for a pipe, which gets one line per name."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _lines(entries: Iterable[tuple[str, str]]) -> list[str]:
    entries = list(entries)
    indent = 2 + max(len(name) for name, _ in entries) + 2
    columns = _columns()
    width = max(columns - indent, 20) if columns else sys.maxsize
    lines = []
    for name, text in entries:
        wrapped = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
        lines.append(f"  {name}".ljust(indent) + f"\n{' ' * indent}".join(wrapped))
    return lines
