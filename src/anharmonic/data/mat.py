"""Reader of MATLAB's `.mat` files."""

from __future__ import annotations

import importlib
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import message, missing_extra
from anharmonic._files import existing
from anharmonic.data.npz import known_key, parts_of
from anharmonic.data.sequences import Sequences

_INPUTS = ("x", "data", "signals", "signal", "val", "values", "inputs")
_TARGETS = ("y", "label", "labels", "target", "targets", "class", "classes")


def read_mat(path: Path | str, *, targets: bool = True) -> dict[str, Sequences]:
    """Read sequences from a `.mat` file of version 7 or older.

    Its variables have the names of `.npz` keys, or names such as `data` and `labels`. A vector may
    be a row or a column. A cell array holds sequences `[T, F]` of unequal length, or their targets.
    """
    path = existing(path)
    try:
        io = importlib.import_module("scipy.io")
    except ModuleNotFoundError as error:
        raise missing_extra("scipy", "graph", "reading .mat files") from error
    try:
        found = io.loadmat(path, chars_as_strings=True)
    except NotImplementedError as error:
        came, advice = "version 7.3", "save it with save('file.mat', 'x', 'y', '-v7')"
        raise ValueError(
            message(f"{path.name} must be of version 7 or older", came, advice)
        ) from error
    except (ValueError, TypeError, OSError, KeyError, IndexError, MemoryError, OverflowError,
            AttributeError, zlib.error, io.matlab.MatReadError) as error:  # fmt: skip
        came = f"{type(error).__name__}: {str(error).rstrip('.')[:200]}"
        raise ValueError(
            message(f"{path.name} must be a sound .mat file", came, "save it again")
        ) from error
    return parts_of(_arrays(path, found), path, targets=targets)


def _arrays(path: Path, found: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the variables by the keys that they mean."""
    variables = {name: value for name, value in found.items() if not name.startswith("__")}
    keys = {name: known_key(name) for name in variables}
    if not any(key is not None and key.startswith("x") for key in keys.values()):
        for meant, words in (("x", _INPUTS), ("y", _TARGETS)):
            named = [name for name in variables if name.lower() in words]
            if len(named) == 1:
                keys[named[0]] = meant
    taken = {key: name for name, key in keys.items() if key is not None}
    if not any(key.startswith("x") for key in taken):
        shapes = ", ".join(f"{name} {list(np.shape(v))}" for name, v in list(variables.items())[:8])
        expected = f"{path.name} must hold the sequences in a variable x, and targets in y"
        advice = "name them so in MATLAB: save('file.mat', 'x', 'y', '-v7')"
        raise ValueError(message(expected, shapes or "no variables", advice))
    arrays: dict[str, NDArray[Any]] = {}
    for key, name in taken.items():
        value = np.asarray(variables[name])
        if value.dtype == object:
            arrays |= _cells(path, key, name, value)
        else:
            arrays[key] = value if key.startswith("x") else _vector(value)
    if arrays.keys() == {"x"} and arrays["x"].shape[1:] == (1,):
        arrays["x"] = arrays["x"].T  # one signal, not a sequence for each of its values
    return arrays


def _vector(value: NDArray[Any]) -> NDArray[Any]:
    """Return a row or column as a vector; padding blanks of text are removed."""
    flat = value.reshape(-1) if value.ndim == 2 and 1 in value.shape else value
    return np.char.strip(flat) if flat.dtype.kind == "U" else flat


def _cells(path: Path, key: str, name: str, value: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return a cell array as concatenated sequences, or as targets of sequences or steps."""
    cells = [np.asarray(cell) for cell in value.reshape(-1)]
    words = not key.startswith("x") and any(cell.dtype.kind == "U" for cell in cells)
    if words and all(cell.size < 2 for cell in cells):
        return {key: np.array([str(cell.reshape(-1)[0]) if cell.size else "" for cell in cells])}
    columns = [
        cell.reshape(-1, 1) if cell.ndim == 2 and 1 in cell.shape else cell for cell in cells
    ]
    fits = all(cell.ndim == 2 and cell.dtype.kind in "biuf" for cell in columns)
    if not fits or len({cell.shape[1] for cell in columns}) != 1:
        came = f"cells such as {[list(cell.shape) for cell in cells[:3]]}"
        expected = f"{name} of {path.name} must hold sequences [T, F] of the same channels"
        if not key.startswith("x"):
            expected = f"{name} of {path.name} must hold a text or number per sequence or step"
        raise ValueError(message(expected, came, "transpose or convert them"))
    flat = np.concatenate(columns)
    if not key.startswith("x"):
        return {key: flat[:, 0] if flat.shape[1] == 1 else flat}
    ends = np.cumsum([0, *map(len, columns)], dtype=np.int64)
    return {key: flat, f"offsets{key[1:]}": ends}
