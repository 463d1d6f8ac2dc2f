"""Reader of the user's own `.npz` archives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import choice, message, require
from anharmonic._files import existing
from anharmonic.data.archive import load_archive
from anharmonic.data.sequences import Integers, Sequences, in_float32

_STEMS = ("x", "y", "lengths", "offsets", "elapsed", "groups", "times", "interval")
_PARTS = ("train", "valid", "test")
_KNOWN = [*_STEMS, "channels", *(f"{stem}_{part}" for part in _PARTS for stem in _STEMS)]


def read_npz(path: Path | str, *, targets: bool = True) -> dict[str, Sequences]:
    """Read sequences from an archive written with `numpy.savez`.

    Keys:
        x: Inputs, real numbers: `[N, T]` (one channel), `[N, T, F]`, or with `offsets` flat
            `[sum of lengths]` or `[sum of lengths, F]`.
        lengths: Optional, whole numbers `[N]`: real steps of the padded `x`.
        offsets: Optional instead, `[N + 1]`: sequence i is `x[offsets[i]:offsets[i + 1]]`.
        y: Whole numbers or strings `[N]` (classes); real numbers `[N]`, `[N, O]` (one value per
            sequence) or `[N, T, O]` (one per step; flat `[sum of lengths, O]` with `offsets`).
        elapsed: Optional, for uneven sampling: numbers >= 0 `[N, T]` (flat `[sum of lengths]` with
            `offsets`), time since the previous sample of a sequence, 0 at its first one.
        groups: Optional, integers or strings `[N]`: subject or recording of every sequence.
        times: Optional, numbers, dates (datetime64) or sortable strings `[N]`: start time of every
            sequence.
        interval: Optional, a number: typical time between two samples, in the unit of `times`,
            or in seconds for dates.

    For your own split, add `_train`, `_test` and optionally `_valid` to all keys. `X_train` or
    `x_val` are accepted, too. `channels`, optional strings `[F]`, names the channels of all parts.

    Args:
        path: The archive.
        targets: Whether to read `y`.

    Returns:
        The sequences by part: "all", or "train", "test" and optionally "valid".

    Raises:
        FileNotFoundError: If the file is missing.
        ValueError: If the file is not a valid archive, has unknown or missing keys or pickled
            objects, or arrays do not fit together.
    """
    path = existing(path)
    return parts_of(load_archive(path), path, targets=targets)


def parts_of(
    arrays: Mapping[str, NDArray[Any]], path: Path, *, targets: bool = True
) -> dict[str, Sequences]:
    """Make sequences from arrays by key.

    Args:
        arrays: The arrays, as in `read_npz`.
        path: Their origin, for messages.
        targets: As in `read_npz`.

    Raises:
        ValueError: If keys are unknown or missing, or arrays do not fit together.
    """
    meant = {key: known_key(key) or key for key in arrays}
    again = [key for key, name in meant.items() if list(meant.values()).count(name) > 1]
    require(not again, f"keys of {path.name} with one meaning", again, "none", "keep one of them")
    arrays = {meant[key]: array for key, array in arrays.items()}
    for key in arrays:
        choice(f"key in {path.name}", key, _KNOWN)
    parts = [part for part in _PARTS if f"x_{part}" in arrays]
    if "x" in arrays and not parts:
        return {"all": _part(path, arrays, "", targets)}
    fits = "x" not in arrays and {"train", "test"} <= set(parts)
    advice = "name the arrays so with numpy.savez(file, x=..., y=...)"
    expected = "either x, or x_train and x_test"
    require(fits, f"keys of {path.name}", sorted(arrays), expected, advice)
    return {part: _part(path, arrays, f"_{part}", targets) for part in parts}


def known_key(key: str) -> str | None:
    """Return the key that `X_train`, `Y`, `x_val` and the like mean, or None.

    Args:
        key: The name in the archive.

    Example:
        >>> known_key("X_val"), known_key("fs")
        ('x_valid', None)
    """
    stem, _, part = key.lower().partition("_")
    part = "valid" if part in ("val", "validation") else part
    meant = f"{stem}_{part}" if part else stem
    return meant if meant in _KNOWN else None


def arrays_beside(path: Path) -> dict[str, Path]:
    """Return the array files that belong to `x.npy` or `x_train.npy`, by key.

    Args:
        path: One of them; a file with another name stands alone as "x".
    """
    if (known_key(path.stem) or "").split("_")[0] != "x":
        return {"x": path}
    beside = sorted(path.parent.iterdir())
    found = {
        key: other
        for other in beside
        if other.suffix.lower() == ".npy" and (key := known_key(other.stem)) is not None
    }
    whole = known_key(path.stem) == "x"
    return {key: other for key, other in found.items() if whole != (key.split("_")[-1] in _PARTS)}


def _part(path: Path, arrays: dict[str, NDArray[Any]], suffix: str, targets: bool) -> Sequences:
    where = path.name if not suffix else f"{path.name} ({suffix[1:]})"
    x = arrays[f"x{suffix}"]
    y = arrays.get(f"y{suffix}") if targets else None
    lengths, offsets = arrays.get(f"lengths{suffix}"), arrays.get(f"offsets{suffix}")
    advice = "add the targets"
    found = not targets or y is not None
    require(found, f"keys of {path.name}", sorted(arrays), f"x{suffix} and y{suffix}", advice)
    real = x.dtype.kind in "fiu"
    require(real, f"x in {where}", str(x.dtype), "an array of real numbers", "convert it")
    for stem in _STEMS[:-1]:
        single = arrays.get(f"{stem}{suffix}", x).ndim == 0
        advice = f"store one entry of {stem} for every sequence, or every step"
        require(not single, f"{stem} in {where}", "a single value", "an array", advice)
    one = lengths is None or offsets is None
    advice = "keep lengths for padded x, offsets for flat x"
    require(one, f"keys of {where}", sorted(arrays), "lengths or offsets, not both", advice)
    elapsed = arrays.get(f"elapsed{suffix}")
    if elapsed is not None:
        real = elapsed.dtype.kind in "fiu"
        require(real, f"elapsed in {where}", str(elapsed.dtype), "real numbers", "convert it")
    if offsets is not None:
        part = _flat(where, x, y, offsets)
        spaced = elapsed
    else:
        part = _padded(where, x, y, lengths)
        spaced = None if elapsed is None else _real_steps(where, elapsed, x, part.lengths)
    return replace(
        part,
        elapsed=None if spaced is None else spaced.astype(np.float32),
        groups=_keys_of(where, "groups", arrays.get(f"groups{suffix}"), "iubUS"),
        times=_keys_of(where, "times", arrays.get(f"times{suffix}"), "iufMUS"),
        channels=tuple(str(name) for name in arrays.get("channels", np.empty(0)).reshape(-1)),
        interval=_interval(where, arrays.get(f"interval{suffix}")),
    )


def _interval(where: str, value: NDArray[Any] | None) -> float | None:
    if value is None:
        return None
    fits = value.size == 1 and value.dtype.kind in "fiu" and 0 < float(value.item()) < np.inf
    require(fits, f"interval in {where}", value.tolist(), "one number above 0", "correct it")
    return float(value.item())


def _real_steps(
    where: str, elapsed: NDArray[Any], x: NDArray[Any], lengths: Integers
) -> NDArray[Any]:
    """Return the times of padded sequences without padding."""
    form, advice = list(x.shape[:2]), "give one time for every step of x"
    fits = list(elapsed.shape) == form
    require(fits, f"shape of elapsed in {where}", list(elapsed.shape), f"{form}, as x", advice)
    real: NDArray[Any] = elapsed[np.arange(x.shape[1]) < lengths[:, None]]
    return real


def _keys_of(where: str, name: str, values: NDArray[Any] | None, kinds: str) -> NDArray[Any] | None:
    """Check groups or times, which must have a supported dtype and no missing values."""
    if values is None:
        return None
    expected = "whole numbers or strings" if name == "groups" else "numbers, dates or strings"
    fits = values.dtype.kind in kinds
    require(fits, f"{name} in {where}", str(values.dtype), expected, "convert it")
    unknown = values.dtype.kind in "fM" and bool(np.isnan(values).any())
    require(not unknown, f"{name} in {where}", "NaN", "known everywhere", "fill or remove it")
    return values.astype(str) if values.dtype.kind == "S" else values


def _flat(where: str, x: NDArray[Any], y: NDArray[Any] | None, offsets: NDArray[Any]) -> Sequences:
    if x.ndim == 1:
        x = x[:, None]
    expected = "[sum of lengths] or [sum of lengths, F] with offsets"
    advice = "leave out offsets for padded x"
    require(x.ndim == 2, f"shape of x in {where}", list(x.shape), expected, advice)
    ends = _integers(where, "offsets", offsets)
    falls = np.flatnonzero(np.diff(ends) < 0)
    if len(ends) < 1 or ends[0] != 0 or ends[-1] != len(x) or len(falls):
        got = f"{len(ends)} offsets"
        if len(ends):
            got += f" from {ends[0]} to {ends[-1]}"
        if len(falls):
            got += f", falling after place {falls[0]}"
        advice = "make them with numpy.concatenate([[0], numpy.cumsum(lengths)])"
        expected = f"offsets in {where} must rise from 0 to {len(x)}, the rows of x"
        raise ValueError(message(expected, got, advice))
    per_step = y is not None and len(y) == len(x) != len(ends) - 1
    if per_step and y is not None and y.ndim == 1:
        y = y[:, None]
    return Sequences(where, in_float32(x, where), ends, y, per_step)


def _padded(
    where: str, x: NDArray[Any], y: NDArray[Any] | None, lengths: NDArray[Any] | None
) -> Sequences:
    if x.ndim == 2:
        x = x[:, :, None]
    expected, advice = "[N, T] or [N, T, F], or flat with offsets", "reshape it, or add offsets"
    require(x.ndim == 3, f"shape of x in {where}", list(x.shape), expected, advice)
    count, steps = x.shape[:2]
    sizes = np.full(count, steps) if lengths is None else _integers(where, "lengths", lengths)
    bad = np.flatnonzero((sizes < 0) | (sizes > steps))
    if len(sizes) != count or len(bad):
        got = f"{len(sizes)} lengths"
        if len(bad):
            got += f", {sizes[bad[0]]} at sequence {bad[0]}"
        expected = f"lengths in {where} must be {count} numbers of at most {steps}, as x has"
        raise ValueError(message(expected, got, "count the real steps of every sequence"))
    mask = np.arange(steps) < sizes[:, None]
    per_step = y is not None and y.ndim == 3
    if per_step and y is not None:
        fits, expected = y.shape[:2] == x.shape[:2], f"[{count}, {steps}, O] for a target per step"
        advice = "give as many steps as x has"
        require(fits, f"shape of y in {where}", list(y.shape), expected, advice)
        y = y[mask]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return Sequences(where, in_float32(x[mask], where), ends, y, per_step)


def _integers(where: str, name: str, values: NDArray[Any]) -> Integers:
    came = f"{values.dtype} {list(values.shape)}"
    fits = values.ndim == 1 and values.dtype.kind in "iu"
    advice = "convert it with numpy.asarray(..., dtype=numpy.int64)"
    require(fits, f"{name} in {where}", came, "a row of whole numbers", advice)
    return values.astype(np.int64)
