"""Reader of the user's own `.npz` archives."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import choice, message
from anharmonic.data.sequences import Floats, Integers, Sequences

_STEMS = ("x", "y", "lengths", "offsets")
_PARTS = ("train", "valid", "test")
_KNOWN = [*_STEMS, *(f"{stem}_{part}" for part in _PARTS for stem in _STEMS)]


def read_npz(path: Path | str, *, targets: bool = True) -> dict[str, Sequences]:
    """Reads sequences from an archive written with `numpy.savez`.

    Keys:
        x: Inputs, real numbers: `[N, T]` (one channel), `[N, T, F]`, or with `offsets` flat
            `[sum of lengths]` or `[sum of lengths, F]`.
        lengths: Optional, whole numbers `[N]`: real steps of the padded `x`.
        offsets: Optional instead, `[N + 1]`: sequence i is `x[offsets[i]:offsets[i + 1]]`.
        y: Whole numbers or strings `[N]` (classes); real numbers `[N]`, `[N, O]` (one value per
            sequence) or `[N, T, O]` (one per step; flat `[sum of lengths, O]` with `offsets`).

    Instead, all of these may come with `_train`, `_test` and optionally `_valid` at the end.

    Args:
        path: The archive.
        targets: Whether `y` is wanted; else it is not looked at.

    Returns:
        The sequences by part: "all", or "train", "test" and perhaps "valid".

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is no sound archive, has unknown or missing keys, pickled objects,
            or arrays that do not fit together.
    """
    path = existing(path)
    arrays = _load(path)
    for key in arrays:
        choice(f"key in {path.name}", key, _KNOWN)
    parts = [part for part in _PARTS if f"x_{part}" in arrays]
    if "x" in arrays and not parts:
        return {"all": _part(path, arrays, "", targets)}
    wanted = {"train", "test"}
    if "x" in arrays or not wanted <= set(parts):
        raise ValueError(
            message(
                f"{path.name} must hold either x, or x_train and x_test",
                f"the keys {', '.join(sorted(arrays)) or 'none'}",
                "name the arrays so with numpy.savez(file, x=..., y=...)",
            )
        )
    return {part: _part(path, arrays, f"_{part}", targets) for part in parts}


def existing(path: Path | str) -> Path:
    """Checks that a file is there and returns its path.

    Raises:
        FileNotFoundError: If not.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(
            message(
                "file must be an existing file",
                f"{path} ({'a folder' if path.is_dir() else 'nothing there'})",
                "check the path",
            )
        )
    return path


def _load(path: Path) -> dict[str, NDArray[Any]]:
    if not zipfile.is_zipfile(path):
        raise ValueError(
            message(
                f"{path.name} must be an .npz archive",
                "a file that is no zip archive, or a cut one",
                "write it with numpy.savez(file, x=..., y=...)",
            )
        )
    arrays = {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            for key in archive.files:
                try:
                    arrays[key] = archive[key]
                except ValueError as error:
                    if "allow_pickle" not in str(error):
                        raise
                    raise _pickled(path, key) from error
    except _PickledError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            message(
                f"{path.name} must be a sound .npz archive",
                f"{type(error).__name__}: {str(error).rstrip('.')}",
                "write it again",
            )
        ) from error
    return arrays


class _PickledError(ValueError):
    """Told apart from a damaged archive."""


def _pickled(path: Path, key: str) -> _PickledError:
    advice = (
        "store sequences of different lengths one after another as x [sum of lengths, F] with "
        "offsets [N + 1], or padded with lengths [N]"
    )
    if key.split("_")[0] == "y":
        advice = f"store {key}.astype(str) for classes, {key}.astype(float) for values"
    return _PickledError(
        message(
            f"{key} in {path.name} must be an array of numbers or strings",
            "an array of Python objects, which is not loaded because it could run code",
            advice,
        )
    )


def _part(path: Path, arrays: dict[str, NDArray[Any]], suffix: str, targets: bool) -> Sequences:
    where = path.name if not suffix else f"{path.name} ({suffix[1:]})"
    x = arrays[f"x{suffix}"]
    y = arrays.get(f"y{suffix}") if targets else None
    lengths, offsets = arrays.get(f"lengths{suffix}"), arrays.get(f"offsets{suffix}")
    if targets and y is None:
        raise ValueError(
            message(
                f"{path.name} must hold y{suffix}",
                f"the keys {', '.join(sorted(arrays))}",
                "add the targets",
            )
        )
    if x.dtype.kind not in "fiu":
        raise ValueError(
            message(f"x in {where} must hold real numbers", f"dtype {x.dtype}", "convert it")
        )
    if lengths is not None and offsets is not None:
        raise ValueError(
            message(
                f"{where} must hold lengths or offsets",
                "both",
                "keep lengths for padded x, offsets for flat x",
            )
        )
    if offsets is not None:
        return _flat(where, x, y, offsets)
    return _padded(where, x, y, lengths)


def _flat(where: str, x: NDArray[Any], y: NDArray[Any] | None, offsets: NDArray[Any]) -> Sequences:
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2:
        raise ValueError(
            message(
                f"x in {where} must be [sum of lengths] or [sum of lengths, F] with offsets",
                f"shape {list(x.shape)}",
                "leave out offsets for padded x",
            )
        )
    ends = _whole(where, "offsets", offsets)
    falls = np.flatnonzero(np.diff(ends) < 0)
    if len(ends) < 1 or ends[0] != 0 or ends[-1] != len(x) or len(falls):
        got = f"{len(ends)} offsets"
        if len(ends):
            got += f" from {ends[0]} to {ends[-1]}"
        if len(falls):
            got += f", falling after place {falls[0]}"
        raise ValueError(
            message(
                f"offsets in {where} must rise from 0 to {len(x)}, the rows of x",
                got,
                "make them with numpy.concatenate([[0], numpy.cumsum(lengths)])",
            )
        )
    per_step = y is not None and len(y) == len(x) != len(ends) - 1
    if per_step and y is not None and y.ndim == 1:
        y = y[:, None]
    return Sequences(where, _single(x), ends, y, per_step)


def _padded(
    where: str, x: NDArray[Any], y: NDArray[Any] | None, lengths: NDArray[Any] | None
) -> Sequences:
    if x.ndim == 2:
        x = x[:, :, None]
    if x.ndim != 3:
        raise ValueError(
            message(
                f"x in {where} must be [N, T] or [N, T, F], or flat with offsets",
                f"shape {list(x.shape)}",
                "reshape it, or add offsets",
            )
        )
    count, steps = x.shape[:2]
    sizes = np.full(count, steps) if lengths is None else _whole(where, "lengths", lengths)
    bad = np.flatnonzero((sizes < 0) | (sizes > steps))
    if len(sizes) != count or len(bad):
        got = f"{len(sizes)} lengths"
        if len(bad):
            got += f", {sizes[bad[0]]} at sequence {bad[0]}"
        raise ValueError(
            message(
                f"lengths in {where} must be {count} numbers of at most {steps}, as x has",
                got,
                "count the real steps of every sequence",
            )
        )
    inside = np.arange(steps) < sizes[:, None]
    per_step = y is not None and y.ndim == 3
    if per_step and y is not None:
        if y.shape[:2] != x.shape[:2]:
            raise ValueError(
                message(
                    f"y in {where} must be [{count}, {steps}, O] for a target per step",
                    f"shape {list(y.shape)}",
                    "give as many steps as x has",
                )
            )
        y = y[inside]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return Sequences(where, _single(x[inside]), ends, y, per_step)


def _whole(where: str, name: str, values: NDArray[Any]) -> Integers:
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ValueError(
            message(
                f"{name} in {where} must be a row of whole numbers",
                f"shape {list(values.shape)}, dtype {values.dtype}",
                "convert it with numpy.asarray(..., dtype=numpy.int64)",
            )
        )
    return values.astype(np.int64)


def _single(x: NDArray[Any]) -> Floats:
    with np.errstate(over="ignore"):  # too large a number becomes infinite and is refused later
        return np.ascontiguousarray(x, dtype=np.float32)
