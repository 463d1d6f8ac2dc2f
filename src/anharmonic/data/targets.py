"""Interpretation of a user's targets as classes, labels or values."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import listed, message, require
from anharmonic.data.base import Target
from anharmonic.data.columns import are_errors, are_few
from anharmonic.data.sequences import Sequences, in_float32

# Class names that often stand for an unknown class.
_UNKNOWN = frozenset({"?", "NA", "N/A", "NaN", "nan", "null", "NULL"})
_VALUE = re.compile(r"[+-]?(0|[1-9]\d*|(?=\.\d))(\.\d*)?([eE][+-]?\d+)?")
_MOST_CLASSES = 20  # more numbers beside a few words are values


def classes_by_step(part: Sequences, target: str) -> Sequences:
    """Convert classes or labels as text `[N, T]` to one per step of `x`; leave others unchanged.

    Rows longer than the sequences that hold a single 1, which marks a class, are refused.
    """
    y = part.y
    if y is None or target == "value" or (target == "auto" and y.dtype.kind == "f"):
        return part
    if target == "labels" and y.dtype.kind not in "US":  # a column for every label
        return part
    if part.per_step:
        return replace(part, y=y.reshape(-1)) if y.shape[1:] == (1,) else part
    if y.ndim != 2 or y.shape[1] == 1:
        return part
    longest = int(part.lengths.max())
    advice = "give one class per sequence or step, or pass --target value (target='value')"
    expected = f"[N] for classes, or [N, T] for one per step with T at least {longest}"
    hot = y.shape[1] > longest and y.dtype.kind in "biu" and bool((y.max(axis=1) == 1).all())
    hot = hot and bool((np.abs(y.astype(np.int64)).sum(axis=1) == 1).all())
    came: Any = "a single 1 in every row" if hot else list(y.shape)
    require(y.shape[1] >= longest and not hot, f"y in {part.where}", came, expected, advice)
    return replace(part, y=y[np.arange(y.shape[1]) < part.lengths[:, None]], per_step=True)


def with_known(part: Sequences) -> Sequences:
    """Record which steps have a target; NaN and empty text mean unknown."""
    if part.y is None or not part.per_step:
        return part
    y = part.y.reshape(len(part.x), -1)
    known = np.ones(len(y), bool) if part.known is None else part.known
    if y.dtype.kind == "f":
        known = known & ~np.isnan(y).any(axis=1)
    elif y.dtype.kind in "US":
        known = known & (y != y.dtype.type()).all(axis=1)
    advice = "give some steps a target"
    require(bool(known.any()), f"targets in {part.where}", "none", "known at some steps", advice)
    return replace(part, known=None if known.all() else known)


def target_kind(part: Sequences, target: str) -> Target:
    """Return the kind of targets, which `y` must suit.

    For "auto", integers, strings and booleans are classes, decimal numbers are values.
    """
    y, name = part.y, f"y in {part.where}"
    if y is None:
        advice = "use a .ts file with @classLabel true or @targetLabel true"
        raise ValueError(message(f"{part.where} must hold targets", "none", advice))
    kind, dtype = y.dtype.kind, str(y.dtype)
    require(kind in "biufUS", name, dtype, "numbers or strings", "convert it")
    if target == "labels":
        return "labels"
    _check_few(part, target)
    if target == "value" or (target == "auto" and kind == "f"):
        advice = "pass --target class (target='class'), or store numbers"
        require(kind not in "US", name, y.flat[:1].tolist(), "numbers for target='value'", advice)
        if not part.per_step and y.ndim == 2 and 1 < y.shape[1] == part.lengths.max():
            text = (
                f"{name} is read as {y.shape[1]} numbers per sequence, but there are as many "
                "steps. For one number per step, store y as [N, T, 1] (y[:, :, None])."
            )
            warnings.warn(text, stacklevel=2)
        return "value"
    came = f"{dtype} {list(y.shape)}{', one row per step' if part.per_step else ''}"
    fits = y.ndim == 1 or y.shape[1:] == (1,)
    advice = "give one class per sequence or step, or pass --target value (target='value')"
    require(fits, name, came, "[N] for classes, or [N, T] for one per step", advice)
    y = part.known_y
    whole = kind != "f" or bool((np.isfinite(y) & (y == np.round(y))).all())
    advice = "pass --target value (target='value'), or store the classes as whole numbers"
    require(whole, name, came, "whole numbers or strings for target='class'", advice)
    return "class"


def _check_few(part: Sequences, target: str) -> None:
    """Refuse a few targets that would make classes of values, or values of classes.

    Such as ERR among many numbers, or 1.5 among 0 and 1.
    """
    y = part.known_y.reshape(-1)
    found, places, counts = np.unique(y, return_inverse=True, return_counts=True)
    if y.dtype.kind in "US":
        names = _texts(found)
        odd = np.array([_VALUE.fullmatch(name) is None for name in names], bool)
        varied = (~odd).sum() > _MOST_CLASSES or any("." in name for name in np.array(names)[~odd])
        few = (varied or target == "value") and are_errors(counts[odd].sum(), len(y))
        few = few and target != "class"
    else:
        odd = ~np.isfinite(found) | (found != np.round(found))
        few = target != "value" and y.dtype.kind == "f" and 1 < (~odd).sum() <= _MOST_CLASSES
        few = few and are_few(counts[odd].sum(), len(y))
    if not few or not odd.any() or y.size != len(part.known_y):
        return
    first = int(np.flatnonzero(odd[places])[0])
    row = first if part.known is None else int(np.flatnonzero(part.known)[first])
    sequence, step = part.place(row) if part.per_step else (row, None)
    place = part.name(sequence) + ("" if step is None else f", step {step}")
    came = f"{str(y[first])!r} at {place} ({counts[odd].sum()} of {len(y)} targets)"
    kind = "numbers" if y.dtype.kind in "US" else "whole numbers"
    advice = "correct it"
    if target == "auto":
        meant = "class" if y.dtype.kind in "US" else "value"
        advice += f", or pass --target {meant} (target={meant!r})"
    expected = f"y in {part.where} must be {kind}, as almost all are"
    raise ValueError(message(expected, came, advice))


def maybe_classes(y: NDArray[np.float32], where: str, advice: str) -> str:
    """Return the hint that decimal numbers `[N, O]` look like classes, or ""."""
    if y.shape[1] > 1 and ((y == 0) | (y == 1)).all() and (y.sum(axis=1) == 1).all():
        return (
            f"y in {where} holds a single 1 in every row. If it marks a class, store y.argmax(1)."
        )
    distinct = np.unique(y)
    few = y.shape[1] == 1 and 2 <= len(distinct) <= min(20, len(y) // 2)
    if not few or (distinct % 1 != 0).any():
        return ""
    return (
        f"y in {where} is taken as values, but holds only {len(distinct)} distinct whole numbers; "
        f"{advice}."
    )


def maybe_unknown(names: Sequence[str], where: str) -> str:
    """Return the hint that a class may be unknown, or another one in other letters, or ""."""
    plain = [" ".join(name.split()).casefold() for name in names]
    for first, second in itertools.combinations(range(len(names)), 2) if len(names) <= 100 else ():
        if plain[first] == plain[second]:
            pair = f"{names[first]!r} and {names[second]!r}"
            return f"The classes {pair} in {where} differ in their case or blanks alone."
    found = [name for name in names if name in _UNKNOWN]
    if not found:
        return ""
    return (
        f"{found[0]!r} in {where} is taken as a class. If it means that the class is not known, "
        "leave those cells empty."
    )


def encode_classes(
    parts: Mapping[str, Sequences], where: str
) -> tuple[tuple[str, ...], dict[str, NDArray[np.int64]]]:
    """Return the sorted class names (as numbers if all are integers), and class indices per part.

    Every class must occur in training.
    """
    held = {key: names_of(part.known_y) for key, part in parts.items()}
    train = held["train" if "train" in held else "all"][0]
    train = sorted(train, key=int if all(_is_whole(name) for name in train) else str)
    known = set(train)
    for key, (names, _) in held.items():
        extra = sorted(set(names) - known)
        advice = "add training sequences of these classes, or remove them"
        require(not extra, f"classes only in {key} of {where}", extra[:5], "none", advice)
    advice = "add sequences of another class"
    require(len(train) > 1, f"classes of y in {where}", train, "two or more", advice)
    codes = {
        key: _at_all(parts[key], _numbers(names, places, train))
        for key, (names, places) in held.items()
    }
    return tuple(train), codes


def _numbers(
    names: Sequence[str], places: NDArray[np.int64], order: Sequence[str]
) -> NDArray[np.int64]:
    """Return the index in `order` of the name of every entry."""
    number = {name: i for i, name in enumerate(order)}
    return np.array([number[name] for name in names], np.int64)[places]


def _at_all(part: Sequences, values: NDArray[Any]) -> NDArray[Any]:
    """Return the values of the known targets, with zeros for the others."""
    if part.known is None:
        return values
    full = np.zeros((len(part.known), *values.shape[1:]), values.dtype)
    full[part.known] = values
    return full


SEPARATOR = "|"
"""Separator of label names; alone it means no label."""


def label_names(parts: Mapping[str, Sequences], where: str) -> tuple[str, ...]:
    """Return the labels of the training part: names for text such as "a|b", otherwise numbers.

    Example:
        >>> x = np.zeros((2, 1), np.float32)
        >>> part = Sequences("here", x, np.array([0, 1, 2]), np.array(["b|a", "|"]))
        >>> label_names({"all": part}, "here")
        ('a', 'b')
    """
    part = parts["train" if "train" in parts else "all"]
    y = part.known_y
    if y.dtype.kind not in "US":
        return tuple(str(i) for i in range(y.reshape(len(y), -1).shape[1]))
    names = sorted({name for text in _texts(y) for name in _split(text)})
    advice = "write them with a bar between, as in walk|talk"
    require(bool(names), f"labels in {where}", "none", "at least one", advice)
    return tuple(names)


def encode_labels(part: Sequences, names: Sequence[str], where: str) -> NDArray[np.float32]:
    """Return zeros and ones for every label, `[N, L]`; zeros for unknown targets."""
    y = part.known_y
    if y.dtype.kind in "US":
        made = np.zeros((len(y), len(names)), np.float32)
        place = {name: column for column, name in enumerate(names)}
        for row, text in enumerate(_texts(y)):
            for name in _split(text):
                advice = "add training sequences that have it, or remove it"
                require(name in place, f"a label in {where}", name, f"of {list(names)}", advice)
                made[row, place[name]] = 1.0
        return np.asarray(_at_all(part, made))
    y = y.reshape(len(y), -1)
    fits, advice = y.shape[1] == len(names), "give a column for every label"
    require(fits, f"labels in {where}", y.shape[1], f"{len(names)}, as in training", advice)
    bad = np.flatnonzero(~np.isin(y, (0, 1)).all(axis=1))
    came = y[bad[0]].tolist() if len(bad) else ""
    advice = "give zeros and ones, or text such as walk|talk"
    require(not len(bad), f"labels in {where}", came, "0 or 1", advice)
    return np.asarray(_at_all(part, y.astype(np.float32)))


def _texts(y: NDArray[Any]) -> list[str]:
    flat = y.reshape(-1).tolist()
    return [_decoded(text) if isinstance(text, bytes) else text for text in flat]


def _split(text: str) -> list[str]:
    return [name for part in text.split(SEPARATOR) if (name := part.strip())]


def encode_like(y: NDArray[Any], names: Sequence[str], where: str) -> NDArray[np.int64]:
    """Number classes as in training; others are refused.

    Example:
        >>> encode_like(np.array(["up", "down"]), ("down", "up"), "here").tolist()
        [1, 0]
    """
    held, places = names_of(y)
    extra = [name for name in held if name not in names]
    known = f"{listed(names[:10])}{' ...' if len(names) > 10 else ''}"
    advice = "remove what is of another class, or train with it"
    expected = f"among those of training, {known}"
    require(not extra, f"classes of y in {where}", extra[:5], expected, advice)
    return _numbers(held, places, names)


def targets_like(
    part: Sequences, target: Target, names: Sequence[str], width: int, per_step: bool
) -> NDArray[Any]:
    """Convert targets of new sequences as in training: classes, labels or `width` values.

    Returns int64 class indices `[N]`, or float32 labels or values `[N, O]`; per step, the same for
    all known steps. A single class per sequence applies to all its steps.
    """
    if part.y is None:
        advice = "add them, or predict without evaluating"
        raise ValueError(message(f"{part.where} must hold targets to evaluate on", "none", advice))
    part = with_known(classes_by_step(part, target))
    target_kind(part, target)
    came = "one per step" if part.per_step else "one per sequence"
    expected, advice = f"one per {'step' if per_step else 'sequence'}, as in training", "give these"
    fits = part.per_step == per_step or (per_step and target == "class")
    require(fits, f"targets in {part.where}", came, expected, advice)
    if target == "labels":
        return replace(part, y=encode_labels(part, names, part.where)).known_y
    if target == "class":
        codes = encode_like(part.known_y, names, part.where)
        return codes if part.per_step == per_step else np.repeat(codes, part.lengths)
    values = float_targets(part)
    expected, advice = f"{width}, as in training", "give the same outputs in the same order"
    found = values.shape[1]
    require(found == width, f"outputs of y in {part.where}", found, expected, advice)
    return replace(part, y=values).known_y


def names_of(y: NDArray[Any] | None) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of the classes, and the class index of every entry."""
    values, places = np.unique(np.asarray(y).reshape(-1), return_inverse=True)
    if values.dtype.kind == "f":
        values = values.astype(np.int64)
    if values.dtype.kind == "S":
        return [_decoded(value) for value in values.tolist()], places
    return [str(value) for value in values.tolist()], places


def _decoded(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name.decode("latin-1")  # keeps different bytes different


def _is_whole(name: str) -> bool:
    return name.removeprefix("-").isdecimal()


def float_targets(part: Sequences) -> NDArray[np.float32]:
    """Return the finite values of a part, float32 `[N, O]` or `[sum of lengths, O]`."""
    y = np.asarray(part.y)
    if y.ndim == 1:
        y = y[:, None]
    name, advice = f"y in {part.where}", "give one value or row of values per sequence, or per step"
    fits = y.ndim == 2 and y.shape[1] > 0
    require(fits, name, list(y.shape), "[N], [N, O] or [N, T, O]", advice)
    y = in_float32(y, part.where, what="target")
    if part.known is not None:  # without changing the user's array
        y = np.where(part.known[:, None], y, np.float32(0.0))
    bad = np.argwhere(~np.isfinite(y))
    if len(bad):
        row, column = (int(i) for i in bad[0])
        sequence, step = part.place(row) if part.per_step else (row, None)
        place = part.name(sequence) + ("" if step is None else f", step {step}")
        came = f"{y[row, column]} at {place}, output {column} ({len(bad)} such entries)"
        raise ValueError(message(f"{name} must be finite", came, "remove these sequences"))
    return y


def output_width(codes: Mapping[str, NDArray[np.float32]], where: str) -> int:
    """Return the number of outputs, which must be the same in every part."""
    widths = {key: y.shape[1] for key, y in codes.items()}
    fits = len(set(widths.values())) == 1
    require(fits, f"outputs of y in {where}", widths, "as many in all parts", "store them alike")
    return int(next(iter(widths.values())))
