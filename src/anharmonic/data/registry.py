"""Tasks by name."""

from __future__ import annotations

import functools
import inspect
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anharmonic import _plugins
from anharmonic._checks import choice, require
from anharmonic.data.base import Task, counted

_OWN = {
    "adding": "anharmonic.data.synthetic:AddingProblem",
    "digits": "anharmonic.data.digits:Digits",
    "cora": "anharmonic.data.graphs.cora:Cora",
    "file": "anharmonic.data.own:FileTask",
    "graph": "anharmonic.data.graphs.own:GraphFileTask",
    "shards": "anharmonic.data.shards:ShardsTask",
}
OWN_DATA = ("file", "graph", "shards")
"""Tasks on a user's file."""
SHARDS_INDEX = "shards.json"
"""Name of the file that lists the shards of a data set; see `write_shards`."""
# Arguments of a constructor besides options: paths, which do not change results.
PATH_ARGUMENTS = ("data_dir", "path")


def list_tasks() -> list[str]:
    """List the names of tasks: those of this package, then those of other installed packages.

    Example:
        >>> "adding" in list_tasks()
        True
    """
    return [*_OWN, *_plugins.names("anharmonic.tasks")]


def task_class(name: str) -> type[Task]:
    """Return the class of a task.

    Raises:
        ValueError: If the name is unknown; the message suggests the nearest.

    Example:
        >>> task_class("adding").__name__
        'AddingProblem'
    """
    choice("task", name, list_tasks())
    found: type[Task]
    if name in _OWN:
        found = pkgutil.resolve_name(_OWN[name])
    else:
        found = _plugins.load("anharmonic.tasks", name)
    return found


@functools.cache
def task_parameters(name: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a task's constructor, including paths."""
    kind = task_class(name)
    sources = (kind,) if kind.options_class is None else (kind, kind.options_class)
    found = [inspect.signature(source, eval_str=True).parameters for source in sources]
    named = {key: p for parameters in found for key, p in parameters.items()}
    return {key: p for key, p in named.items() if p.kind is not p.VAR_KEYWORD}


def task_options(name: str) -> dict[str, Any]:
    """Return the options of a task and their defaults (JSON values).

    Raises:
        ValueError: If the name is unknown.

    Example:
        >>> task_options("digits")
        {'split_seed': 1234}
    """
    return {k: p.default for k, p in task_parameters(name).items() if k not in PATH_ARGUMENTS}


def make_task(
    name: str,
    options: Mapping[str, Any] | None = None,
    data_dir: Path | None = None,
    file: Path | None = None,
    progress: bool = True,
) -> Task:
    """Make a task from its name and options. Only a user's own file is read.

    Args:
        name: One of `list_tasks()`.
        options: The task's options by name; see `task_options`.
        data_dir: The folder with `sequence/` and `graph/`; None for `ANHARMONIC_DATA` or a per-user
            cache.
        file: The user's data, for the tasks "file" and "graph" only.
        progress: Whether to show a progress bar for downloads.

    Raises:
        ValueError: If the name or an option is unknown, a value is out of range, or `file` is
            missing or not applicable.

    Example:
        >>> make_task("adding", {"length": 100}).length
        100
    """
    kind = task_class(name)
    given = dict(options or {})
    parameters = task_parameters(name)
    for key in given:
        known = [option for option in parameters if option not in PATH_ARGUMENTS]
        choice(f"option of task {name!r}", key, known)
    if "data_dir" in parameters:
        given["data_dir"] = data_dir
    if "path" in parameters:
        advice = "pass the path of your file to fit as RunEnvironment(file=...)"
        require(file is not None, "file", file, f"given for the task {name!r}", advice)
        given["path"] = file
    else:
        advice = "use the task 'file', 'graph' for one graph, or 'shards', for your own data"
        require(file is None, "file", str(file), f"None for the task {name!r}", advice)
    task = kind(**given)
    task.progress = progress
    return task


@dataclass(frozen=True)
class TaskInfo:
    """Description of a task, available without reading its data; words and, if known, sizes."""

    name: str
    summary: str
    sizes: dict[str, int]
    samples: str
    input: str
    target: str
    metric: str
    source: str
    licence: str


def describe_tasks() -> list[TaskInfo]:
    """Describe every task with its default options, without reading data."""
    return [_describe(name) for name in list_tasks()]


def _describe(name: str) -> TaskInfo:
    kind = task_class(name)
    summary = (inspect.getdoc(kind) or "").split("\n", 1)[0]
    if name in OWN_DATA:
        return TaskInfo(
            name=name,
            summary=summary,
            sizes={},
            samples="nodes" if kind.kind == "graph" else "sequences",
            input="as in the file",
            target="classes or values, as in the file"
            + ", or the values of the next steps" * (name == "file"),
            metric="accuracy or rmse",
            source="your .npz file" if kind.kind == "graph" else "your file",
            licence=kind.licence,
        )
    task = kind()
    per = {"sequence": "step", "graph": "node", "tabular": "row"}[task.kind]
    sample = {"last": "sequence", "all": "sequence"}.get(task.readout, task.readout)
    return TaskInfo(
        name=name,
        summary=summary,
        sizes=dict(task.sizes),
        samples=f"{sample}s",
        input=f"one of {task.input_size} words or characters per step"
        if task.tokens
        else f"{counted(task.input_size, 'number')} per {per}",
        target=task.output,
        metric=task.metric,
        source=task.source,
        licence=task.licence,
    )
