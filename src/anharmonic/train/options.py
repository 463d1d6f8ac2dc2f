"""Options of tasks and models: known names, JSON values, one form for one meaning."""

from __future__ import annotations

import inspect
import json
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any, NoReturn

import torch

from anharmonic import _checks
from anharmonic.data.registry import PATH_ARGUMENTS, task_class
from anharmonic.nn.graph.convolutions import NodewiseLinear
from anharmonic.nn.registry import list_models, model_class, model_kind

_DEFAULT_HIDDEN_SIZE = 128
# Set by the task or by `RunEnvironment`, not by the user of a run.
_NOT_MODEL_OPTIONS = frozenset(
    {"self", "input_size", "output_size", "level", "batch_first", "device", "dtype"}
)


def check_task_options(task: str, given: Any) -> dict[str, Any]:
    """Checks the names of a task's options and that their values are JSON.

    Raises:
        TypeError: If they are no mapping or hold something else than JSON values.
        ValueError: If an option is unknown or missing.

    Example:
        >>> check_task_options("adding", {"length": 10})
        {'length': 10}
    """
    options = _options("task_options", given, _task_option_parameters(task))
    if task == "file" and not isinstance(options.get("sha256"), str):
        raise ValueError(
            _checks.message(
                'task_options of the task "file" must hold "sha256"',
                f"{sorted(options)}",
                "take it from anharmonic.data.files.file_digest(path), so that the run is one "
                "with its data",
            )
        )
    return options


def check_model_options(model: str, given: Any) -> dict[str, Any]:
    """Checks that a model can be built with these options; adds `hidden_size`.

    Raises:
        TypeError: If they are no mapping, hold something else than JSON values, or have a type that
            the model does not take.
        ValueError: If an option is unknown, or the model refuses its value.

    Example:
        >>> check_model_options("LEM", {"dt": 1})
        {'dt': 1.0, 'hidden_size': 128}
    """
    known = model_option_parameters(model)
    options = _options("model_options", given, known)
    default = known["hidden_size"].default
    options.setdefault(
        "hidden_size", _DEFAULT_HIDDEN_SIZE if default is inspect.Parameter.empty else default
    )
    with warnings.catch_warnings():
        # The model that is trained gives them.
        warnings.simplefilter("ignore")
        _try_to_make(model, options)
    return options


def _try_to_make(model: str, options: dict[str, Any]) -> None:
    kind = model_class(model)
    if model_kind(model) == "graph":
        # Without the convolutions, whose library takes seconds to import.
        trial = type(kind.__name__, (kind,), {"_made": lambda network, make: NodewiseLinear(1, 1)})
        with torch.random.fork_rng(devices=()):
            trial(1, 1, **options)
        return
    # On the meta device, where drawing weights would load torch's compiler for no number.
    trial = type(kind.__name__, (kind,), {"reset_parameters": lambda layer: None})
    sizes = (1, 1) if model_kind(model) == "tabular" else (1,)
    trial(*sizes, **options, device="meta")


def check_readout(task: str, task_readout: str | None, readout: str) -> None:
    """Refuses a readout that the task's targets exclude.

    Args:
        task: Name of the task.
        task_readout: The task's "last" or "all"; None where only the data say.
        readout: The run's.

    Raises:
        ValueError: If the task has a target at every step and `readout` is not "last".

    Example:
        >>> check_readout("adding", "last", "mean")
    """
    if task_readout == "all" and readout != "last":
        raise ValueError(
            _checks.message(
                f"readout={readout!r} needs a task with one target per sequence",
                f"task {task!r}, whose targets are per step",
                "leave readout out",
            )
        )


def check_kinds(task: str, model: str) -> None:
    """Refuses a model on a task of another kind, such as one for sequences on a task of graphs.

    Args:
        task: Name of the task.
        model: Name of the model.

    Raises:
        ValueError: If they do not fit.

    Example:
        >>> check_kinds("adding", "LEM")
    """
    kind = task_class(task).kind
    if model_kind(model) != kind:
        raise ValueError(
            _checks.message(
                f"task {task!r} needs a model for "
                + ("tables of numbers" if kind == "tabular" else f"{kind}s"),
                f"model={model!r}",
                f"choose one of {', '.join(list_models(kind))}",
            )
        )


def without_defaults(task: str, model: str, values: dict[str, Any]) -> dict[str, Any]:
    """Leaves out options that have their constructor's default; `hidden_size` stays.

    Args:
        task: Name of the task.
        model: Name of the model.
        values: The fields of a run; `task_options` and `model_options` are looked at.

    Example:
        >>> options = {"task_options": {"length": 9}, "model_options": {"dt": 1.0}}
        >>> without_defaults("adding", "LEM", options)
        {'task_options': {'length': 9}, 'model_options': {}}
    """
    model_parameters = model_option_parameters(model)
    model_parameters.pop("hidden_size", None)
    known = {
        "task_options": _task_option_parameters(task),
        "model_options": model_parameters,
    }
    kept = {
        field: {
            name: value
            for name, value in values[field].items()
            if name not in parameters or not _is_default(value, parameters[name])
        }
        for field, parameters in known.items()
    }
    return values | kept


def model_option_parameters(model: str) -> dict[str, inspect.Parameter]:
    """The constructor parameters of a model that a run may set, by name.

    Example:
        >>> "dt" in model_option_parameters("LEM")
        True
    """
    return {
        name: parameter
        for name, parameter in inspect.signature(model_class(model)).parameters.items()
        if name not in _NOT_MODEL_OPTIONS
    }


def _task_option_parameters(task: str) -> dict[str, inspect.Parameter]:
    return {
        name: parameter
        for name, parameter in inspect.signature(task_class(task)).parameters.items()
        if name not in PATH_ARGUMENTS
    }


def _is_default(value: Any, parameter: inspect.Parameter) -> bool:
    if parameter.default is inspect.Parameter.empty:
        return False
    default = _as_float(_json_value(parameter.name, parameter.default), parameter)
    # As JSON, where 1 is neither True nor 1.0.
    return json.dumps(value, sort_keys=True) == json.dumps(default, sort_keys=True)


def _options(name: str, given: Any, known: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        wrong_type(name, "a mapping of option names to JSON values", given)
    options = {}
    for key, value in given.items():
        if not known:
            raise ValueError(
                _checks.message(f"{name} must be empty here", f"{key!r}", "leave it out")
            )
        _checks.choice(f"a key of {name}", key, known)
        options[key] = _as_float(_json_value(f"{name}[{key!r}]", value), known[key])
    return options


def _as_float(value: Any, parameter: inspect.Parameter) -> Any:
    """Makes whole numbers of an option for floats floats, in lists too.

    1 and 1.0 are one number to the constructor, so they must be one run.
    """
    kinds = set(re.findall(r"\w+", str(parameter.annotation)))
    if "float" not in kinds or "int" in kinds:
        return value
    if isinstance(value, list):
        return [_as_float(entry, parameter) for entry in value]
    return float(value) if type(value) is int else value


def _json_value(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_json_value(name, entry) for entry in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _json_value(name, entry) for key, entry in value.items()}
    raise TypeError(
        _checks.message(
            f"{name} must be a JSON value (finite number, text, true, false, null, list, object)",
            f"{value!r} ({type(value).__name__})",
            "pass plain values",
        )
    )


def wrong_type(name: str, wanted: str, value: Any) -> NoReturn:
    """Raises the TypeError for a value that is not what it should be.

    Example:
        >>> wrong_type("out", "a path", 3)
        Traceback (most recent call last):
            ...
        TypeError: out must be a path; got out=3 (int); pass one.
    """
    raise TypeError(
        _checks.message(
            f"{name} must be {wanted}", f"{name}={value!r} ({type(value).__name__})", "pass one"
        )
    )
