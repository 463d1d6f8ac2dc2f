"""Options of tasks and models: known names, JSON values, and frozen defaults.

The hash of a run leaves out options with default values, so a default is part of the name of old
runs. ``frozen_defaults.json`` lists the defaults of this package's tasks and models. A run that
leaves an option out means the frozen default, even if the constructor's default changes. Tasks and
models of other packages have the defaults of their constructors.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
from collections.abc import Mapping
from importlib import resources
from typing import Any, Literal, get_args

from anharmonic import _checks
from anharmonic.data.base import Task
from anharmonic.data.own import SequencesTask
from anharmonic.data.registry import OWN_DATA, PATH_ARGUMENTS, task_class, task_parameters
from anharmonic.nn.registry import constructor_arguments, list_models, model_class, model_kind

HIDDEN_SIZE = 64
"""Default width of a model; `recipe` writes it into the run."""
# A `Run` without a width has meant this since the first release, and frozen_defaults.json lists it
# for its models. Names of results depend on it.
_HIDDEN_SIZE_OF_A_BARE_RUN = 128
# Set by the task or by `RunEnvironment`, not by the user.
_NOT_MODEL_OPTIONS = frozenset(
    {"self", "input_size", "output_size", "level", "target", "batch_first", "device", "dtype"}
)


def check_task_options(task: str, given: Any) -> dict[str, Any]:
    """Check the names of a task's options and that their values are JSON.

    Example:
        >>> check_task_options("adding", {"length": 10})
        {'length': 10}
    """
    return _options("task_options", given, task_option_parameters(task))


def check_digest(task: str, options: Mapping[str, Any]) -> None:
    """Check that the options of a task on the user's data identify the data."""
    _checks.require(
        task not in OWN_DATA or isinstance(options.get("sha256"), str),
        f'task_options of the task "{task}"',
        sorted(options),
        'a mapping that holds "sha256"',
        "take it from anharmonic.data.file_digest(path): the run is one with its data",
    )


def check_model_options(model: str, given: Any) -> dict[str, Any]:
    """Check a model's options for known names and JSON values, and add `hidden_size`.

    A model fitted in one pass has no such width.

    The model itself checks the values when it is built, before data are read.

    Example:
        >>> check_model_options("LEM", {"dt": 1})
        {'dt': 1.0, 'hidden_size': 128}
    """
    options = _options("model_options", given, model_option_parameters(model))
    if model_kind(model) != "fitted":
        default = _defaults("model", model).get("hidden_size", _HIDDEN_SIZE_OF_A_BARE_RUN)
        options.setdefault("hidden_size", default)
    return options


def check_readout(task: str, task_readout: str | None, readout: str) -> None:
    """Refuse a readout that the task's targets exclude.

    Args:
        task: Name of the task.
        task_readout: The task's "last" or "all"; None if only the data determine it.
        readout: The run's.

    Raises:
        ValueError: If the task has a target at every step and `readout` is not "last".
    """
    fits, advice = task_readout != "all" or readout == "last", "leave --readout out"
    expected = '"last", because its targets are per step'
    _checks.require(fits, f"readout on task {task!r}", readout, expected, advice)


def check_kinds(task: str, model: str) -> None:
    """Refuse a model on a task of another kind, such as a sequence model on graphs."""
    kind = task_class(task).kind
    known = list_models(kind) + (list_models("fitted") if kind == "sequence" else [])
    expected = "one for " + ("tables of numbers" if kind == "tabular" else f"{kind}s")
    advice = f"choose one of {', '.join(known)}"
    _checks.require(model in known, f"the model of task {task!r}", model, expected, advice)


def check_fitted_task(model: str, task: Task) -> None:
    """Refuse a task that does not suit a model fitted in one pass.

    Example:
        >>> from anharmonic.data import make_task
        >>> check_fitted_task("Resonators", make_task("digits"))
    """
    came, advice = "", "train another model"
    needed = "numbers as inputs, and one class or number per sequence"
    if task.kind != "sequence" or task.readout != "last" or task.tokens:
        came = f"{'a vocabulary, ' * task.tokens}{task.output}"
        if task.name == "file" and task.readout == "all":
            advice += ", such as LEM; if every sequence should have one target, --labels sequence"
            advice += " tells where it does not"
    elif task.target == "labels" or task.quantiles:
        came = task.output
    elif getattr(getattr(task, "preprocessing", None), "elapsed", None) == "step":
        came, advice = "--elapsed step", "say --elapsed channel (elapsed='channel')"
    elif not isinstance(task, SequencesTask) and task.splits().train is None:
        came = f"{task.name}, which makes its training data afresh in every epoch"
        needed += " in fixed training data"
    if came:
        raise ValueError(_checks.message(f"the task of {model} must have {needed}", came, advice))


def without_defaults(task: str, model: str, values: dict[str, Any]) -> dict[str, Any]:
    """Remove options that have their default value, except `hidden_size`.

    Example:
        >>> options = {"task_options": {"length": 9}, "model_options": {"dt": 1.0}}
        >>> without_defaults("adding", "LEM", options)
        {'task_options': {'length': 9}, 'model_options': {}}
    """

    def changed(options: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
        # Compared as JSON, where 1 is neither True nor 1.0.
        return {
            name: value
            for name, value in options.items()
            if name == "hidden_size"
            or name not in defaults
            or json.dumps(value, sort_keys=True) != json.dumps(defaults[name], sort_keys=True)
        }

    return values | {
        "task_options": changed(values["task_options"], _defaults("task", task)),
        "model_options": changed(values["model_options"], _defaults("model", model)),
    }


def frozen_defaults(kind: Literal["task", "model"], name: str) -> dict[str, Any]:
    """Return the frozen defaults of a task or model; empty for those of other packages.

    Example:
        >>> frozen_defaults("model", "LEM")["dt"]
        1.0
    """
    return dict(_frozen()[kind].get(name, {}))


# Cached, because importing a package's tables makes hundreds of runs.
@functools.cache
def model_option_parameters(model: str) -> Mapping[str, inspect.Parameter]:
    """Return the constructor parameters of a model that a run may set, by name.

    Parameters that a class passes on as ``**options`` are those of its base class.
    """
    found = constructor_arguments(model_class(model), eval_str=True)
    return {name: p for name, p in found.items() if name not in _NOT_MODEL_OPTIONS}


@functools.cache
def task_option_parameters(task: str) -> Mapping[str, inspect.Parameter]:
    """Return the constructor parameters of a task that a run may set, by name."""
    return {name: p for name, p in task_parameters(task).items() if name not in PATH_ARGUMENTS}


@functools.cache
def _frozen() -> dict[str, dict[str, dict[str, Any]]]:
    text = resources.files("anharmonic.train").joinpath("frozen_defaults.json").read_text("utf-8")
    frozen: dict[str, dict[str, dict[str, Any]]] = json.loads(text)
    return frozen


@functools.cache
def _defaults(kind: Literal["task", "model"], name: str) -> Mapping[str, Any]:
    """Return the constructor's defaults as JSON values, overridden by the frozen ones."""
    known = task_option_parameters(name) if kind == "task" else model_option_parameters(name)
    return {
        name: _as_float(_json_value(name, parameter.default), parameter)
        for name, parameter in known.items()
        if parameter.default is not parameter.empty
    } | frozen_defaults(kind, name)


def _options(name: str, given: Any, known: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise _checks.wrong_type(name, "a mapping of option names to JSON values", given)
    options = {}
    for key, value in given.items():
        _checks.require(bool(known), name, key, "empty here", "leave it out")
        _checks.choice(f"a key of {name}", key, known)
        options[key] = _as_float(_json_value(f"{name}[{key!r}]", value), known[key])
    return options


def _as_float(value: Any, parameter: inspect.Parameter) -> Any:
    """Convert integers of a float option to floats, in lists too.

    1 and 1.0 are equal for the constructor, so they must give the same run.
    """
    kinds = _plain_types(parameter.annotation)
    if float not in kinds or int in kinds:
        return value
    if isinstance(value, list):
        return [_as_float(entry, parameter) for entry in value]
    return float(value) if type(value) is int else value


def _plain_types(annotation: Any) -> set[Any]:
    parts = get_args(annotation)
    return {annotation} if not parts else {t for part in parts for t in _plain_types(part)}


def _json_value(name: str, value: Any) -> Any:
    value = _checks.as_python(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_json_value(name, entry) for entry in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _json_value(name, entry) for key, entry in value.items()}
    expected = "a JSON value (finite number, text, true, false, null, list, object)"
    raise _checks.wrong_type(name, expected, value)
