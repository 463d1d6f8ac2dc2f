"""What the targets of the user's own file mean: classes or values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import message
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
    if part.y is None:
        raise ValueError(
            message(
                f"{part.where} must hold targets",
                "none",
                "use a .ts file with @classLabel true or @targetLabel true",
            )
        )
    kind = part.y.dtype.kind
    if kind not in "biufUS":
        raise ValueError(
            message(
                f"y in {part.where} must hold whole numbers, real numbers or strings",
                f"dtype {part.y.dtype}",
                "convert it",
            )
        )
    if target == "value" or (target == "auto" and kind == "f"):
        if kind in "US":
            raise ValueError(
                message(
                    f"y in {part.where} must hold numbers for target='value'",
                    f"strings, e.g. {str(part.y.flat[0])!r}",
                    "pass target='class', or store numbers",
                )
            )
        return "value"
    if part.per_step or part.y.ndim > 2 or (part.y.ndim == 2 and part.y.shape[1] != 1):
        raise ValueError(
            message(
                f"classes y in {part.where} must be [N]",
                f"shape {list(part.y.shape)}{', one row per step' if part.per_step else ''}, "
                f"dtype {part.y.dtype}",
                "give one class per sequence, or pass target='value' if these are values",
            )
        )
    if kind == "f" and not (np.isfinite(part.y) & (part.y == np.round(part.y))).all():
        raise ValueError(
            message(
                f"y in {part.where} must hold whole numbers or strings for target='class'",
                f"dtype {part.y.dtype} with broken or missing numbers",
                "pass target='value', or store the classes as whole numbers",
            )
        )
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
        if extra:
            raise ValueError(
                message(
                    f"every class in {where} must be among the training sequences",
                    f"{extra[0]!r} only in {key}",
                    "add training sequences of this class, or remove it",
                )
            )
    if len(train) < 2:
        raise ValueError(
            message(
                f"y in {where} must hold at least two classes",
                f"only {train[0]!r}",
                "add sequences of another class",
            )
        )
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
    if y.ndim != 2 or y.shape[1] < 1:
        raise ValueError(
            message(
                f"y in {part.where} must be [N], [N, O] or [N, T, O]",
                f"shape {list(y.shape)}",
                "give one value or one row of values per sequence, or per step",
            )
        )
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
                f"y in {part.where} must be finite",
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
    if len(set(widths.values())) > 1:
        raise ValueError(
            message(
                f"y in {where} must have the same number of outputs in all parts",
                ", ".join(f"{size} in {key}" for key, size in widths.items()),
                "store it alike",
            )
        )
    return int(next(iter(widths.values())))
