"""What the targets of the user's own file mean: classes or values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import message, require
from anharmonic.data.base import Target
from anharmonic.data.sequences import Sequences


def target_kind(part: Sequences, target: str) -> Target:
    """Decides whether `y` holds classes or values.

    Args:
        part: Sequences with targets.
        target: "class", "value", or "auto" for the type of `y`: whole numbers, strings and
            booleans are classes, numbers with a point are values.

    Raises:
        ValueError: If there is no `y`, or it cannot mean that.
    """
    y, name = part.y, f"y in {part.where}"
    if y is None:
        advice = "use a .ts file with @classLabel true or @targetLabel true"
        raise ValueError(message(f"{part.where} must hold targets", "none", advice))
    kind, dtype = y.dtype.kind, str(y.dtype)
    require(kind in "biufUS", name, dtype, "numbers or strings", "convert it")
    if target == "value" or (target == "auto" and kind == "f"):
        advice = "pass target='class', or store numbers"
        require(kind not in "US", name, y.flat[:1].tolist(), "numbers for target='value'", advice)
        return "value"
    came = f"{dtype} {list(y.shape)}{', one row per step' if part.per_step else ''}"
    fits = not part.per_step and (y.ndim == 1 or y.shape[1:] == (1,))
    advice = "give one class per sequence, or pass target='value' if these are values"
    require(fits, name, came, "[N] for classes", advice)
    whole = kind != "f" or bool((np.isfinite(y) & (y == np.round(y))).all())
    advice = "pass target='value', or store the classes as whole numbers"
    require(whole, name, came, "whole numbers or strings for target='class'", advice)
    return "class"


def encode_classes(
    parts: Mapping[str, Sequences], where: str
) -> tuple[tuple[str, ...], dict[str, NDArray[np.int64]]]:
    """Numbers the classes.

    Args:
        parts: Sequences whose `y` holds classes, by part.
        where: The file, for messages.

    Returns:
        The class names, sorted (as numbers if all are whole numbers), and int64 `[N]` per part.

    Raises:
        ValueError: If there is only one class, or a class that training does not have.
    """
    names = {key: _names(part.y) for key, part in parts.items()}
    train = sorted(set(names["train" if "train" in names else "all"]))
    if all(_is_whole(name) for name in train):
        train.sort(key=int)
    known = set(train)
    for key, values in names.items():
        extra = sorted(set(values) - known)
        advice = "add training sequences of these classes, or remove them"
        require(not extra, f"classes only in {key} of {where}", extra[:5], "none", advice)
    advice = "add sequences of another class"
    require(len(train) > 1, f"classes of y in {where}", train, "two or more", advice)
    number = {name: i for i, name in enumerate(train)}
    codes = {key: np.array([number[v] for v in values]) for key, values in names.items()}
    return tuple(train), codes


def _names(y: NDArray[Any] | None) -> list[str]:
    flat = np.asarray(y).reshape(-1)
    if flat.dtype.kind == "f":
        flat = flat.astype(np.int64)
    if flat.dtype.kind == "S":
        return [value.decode("utf-8", "replace") for value in flat.tolist()]
    return [str(value) for value in flat.tolist()]


def _is_whole(name: str) -> bool:
    return name.removeprefix("-").isdecimal()


def float_targets(part: Sequences) -> NDArray[np.float32]:
    """The values of a part, float32 `[N, O]` or `[sum of lengths, O]`.

    Raises:
        ValueError: If the shape does not fit or a value is not finite; says where the first is.
    """
    y = np.asarray(part.y)
    if y.ndim == 1:
        y = y[:, None]
    name, advice = f"y in {part.where}", "give one value or row of values per sequence, or per step"
    fits = y.ndim == 2 and y.shape[1] > 0
    require(fits, name, list(y.shape), "[N], [N, O] or [N, T, O]", advice)
    with np.errstate(over="ignore"):
        y = np.ascontiguousarray(y, dtype=np.float32)
    bad = np.argwhere(~np.isfinite(y))
    if len(bad):
        row, column = (int(i) for i in bad[0])
        place = f"sequence {row}"
        if part.per_step:
            sequence, step = part.place(row)
            place = f"sequence {sequence}, step {step}"
        raise ValueError(
            message(
                f"{name} must be finite",
                f"{y[row, column]} at {place}, output {column} ({len(bad)} such entries)",
                "remove these sequences",
            )
        )
    return y


def output_width(codes: Mapping[str, NDArray[np.float32]], where: str) -> int:
    """Number of outputs, the same in every part.

    Raises:
        ValueError: If it is not.
    """
    widths = {key: y.shape[1] for key, y in codes.items()}
    fits = len(set(widths.values())) == 1
    require(fits, f"outputs of y in {where}", widths, "as many in all parts", "store them alike")
    return int(next(iter(widths.values())))
