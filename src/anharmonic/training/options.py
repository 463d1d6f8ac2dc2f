"""Options of tasks and models: known names, JSON values, one form for one meaning."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from anharmonic import _checks
from anharmonic.models.registry import layer_class
from anharmonic.tasks.registry import task_class

_DEFAULT_HIDDEN_SIZE = 128
# Set by the task's shapes or by `Place`, not by the user of a run.
_NOT_MODEL_OPTIONS = frozenset({"self", "input_size", "batch_first", "device", "dtype"})
_NOT_TASK_OPTIONS = frozenset({"self", "data_dir", "path"})


def check_task_options(task: str, given: Any) -> dict[str, Any]:
    """Checks the names of a task's options and that their values are JSON.

    Raises:
        TypeError: If they are no mapping or hold something else than JSON values.
        ValueError: If an option is unknown or missing.

    Example:
        >>> check_task_options("adding", {"length": 10})
        {'length': 10}
    """
    known = {
        name: parameter
        for name, parameter in inspect.signature(task_class(task)).parameters.items()
        if name not in _NOT_TASK_OPTIONS
    }
    options = _options("task_options", given, known)
    if task == "file" and not isinstance(options.get("sha256"), str):
        raise ValueError(
            _checks.message(
                'task_options of the task "file" must hold "sha256"',
                f"{sorted(options)}",
                "take it from anharmonic.tasks.files.file_digest(path), so that the run is one "
                "with its data",
            )
        )
    return options


def check_model_options(model: str, given: Any) -> dict[str, Any]:
    """Checks the names of a model's options and that their values are JSON; adds `hidden_size`.

    Raises:
        TypeError: If they are no mapping or hold something else than JSON values.
        ValueError: If an option is unknown.

    Example:
        >>> check_model_options("LEM", {"dt": 1})
        {'dt': 1.0, 'hidden_size': 128}
    """
    known = model_option_parameters(model)
    options = _options("model_options", given, known)
    options.setdefault("hidden_size", _DEFAULT_HIDDEN_SIZE)
    _checks.positive_int("hidden_size", options["hidden_size"])
    return options


def model_option_parameters(model: str) -> dict[str, inspect.Parameter]:
    """The constructor parameters of a model that a run may set, by name.

    Example:
        >>> "dt" in model_option_parameters("LEM")
        True
    """
    return {
        name: parameter
        for name, parameter in inspect.signature(layer_class(model)).parameters.items()
        if name not in _NOT_MODEL_OPTIONS
    }


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
        options[key] = _json_value(f"{name}[{key!r}]", value)
        # 1 and 1.0 are one number to the constructor, so they must be one run.
        kinds = {kind.strip() for kind in str(known[key].annotation).split("|")}
        if "float" in kinds and "int" not in kinds and type(value) is int:
            options[key] = float(value)
    return options


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
