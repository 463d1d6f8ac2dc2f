"""Helpers shared by estimators: classes, weights and threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight

from anharmonic._checks import listed, message, require
from anharmonic.data.sequences import Sequences

Floats = NDArray[np.float64]


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """Set PyTorch's number of threads within a block, -1 for all cores; None changes nothing."""
    before = torch.get_num_threads()
    if n_jobs is not None:
        torch.set_num_threads(effective_n_jobs(n_jobs))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def weighted(part: Sequences, y: Any, sample_weight: Any) -> tuple[Sequences, Any, Floats | None]:
    """Return sequences, targets and weights without the entries of weight 0."""
    if sample_weight is None:
        return part, y, None
    require_order("sample_weight", sample_weight, part)
    weights: Floats = _check_sample_weight(
        sample_weight, np.empty((len(part), 1)), dtype=np.float64, ensure_non_negative=True
    )
    rows = np.flatnonzero(weights > 0)
    if len(rows) < len(part):
        part, y = part.select(rows), None if y is None else _safe_indexing(y, rows)
    return part, y, weights[rows]


def require_order(name: str, values: Any, part: Sequences) -> None:
    """Refuse a pandas series whose index names the sequences of a frame in another order.

    ``frame.groupby("id").first()`` gives sorted names. A frame has the order of first appearance.
    """
    columns, index = part.columns, getattr(values, "index", None)
    if columns is None or part.ids is None or columns.layout != "long":
        return
    if index is None or not hasattr(values, "iloc"):
        return
    ids, found = part.ids.tolist(), index.tolist()
    counts_rows = type(index).__name__ == "RangeIndex"
    if found == ids or (index.name != columns.id and (counts_rows or {*found} != {*ids})):
        return
    came = next(
        (pair for pair in zip(found, ids, strict=False) if pair[0] != pair[1]), (found, ids)
    )
    expected = f"{name} must have the sequences in the order in which X has them"
    text = message(
        expected, f"{came[0]!r} in the place of {came[1]!r}",
        f"pass {name}.loc[X[{columns.id!r}].unique()]",
    )  # fmt: skip
    raise ValueError(text)


@contextmanager
def _of_one_type(y: Any) -> Iterator[None]:
    """Turn the error of comparing classes of several types into one that names these."""
    try:
        yield
    except TypeError as error:
        kinds = listed(sorted({type(name).__name__ for name in y}))
        advice = "leave out sequences without a class, and convert the others"
        raise ValueError(message("classes of y must be of one type", kinds, advice)) from error


def encode(y: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the sorted classes, at least two, and the class index of every sequence."""
    y = column_or_1d(y, warn=True)
    with _of_one_type(y):
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    advice = "add sequences of another class"
    require(len(classes) > 1, "classes of y", classes.tolist(), "two or more", advice)
    return classes, codes.astype(np.int64)


def indicators(y: Any) -> NDArray[np.float32] | None:
    """Return zeros and ones `[n, K]` for several labels; None for one class per sequence."""
    with _of_one_type(y):
        kind = type_of_target(y, input_name="y")
    if kind != "multilabel-indicator":
        return None
    y = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
    return np.asarray(y, np.float32)


def numbers(y: Any) -> tuple[Floats, bool]:
    """Return the user's values as `[n, O]`, and whether they were `[n]`."""
    values = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    return values.reshape(len(values), -1), values.ndim == 1


def weights_of(
    class_weight: str | Mapping[Any, float],
    classes: NDArray[Any],
    codes: NDArray[np.int64],
    copies: Floats | None = None,
) -> Sequence[float]:
    """Return a factor on each class, with mean 1 over the training data of these class indices.

    `copies` says how often each entry of the training data counts.
    """
    if isinstance(class_weight, Mapping):
        known, expected = classes.tolist(), "numbers > 0 by class"
        fits = all(0 < value < np.inf for value in class_weight.values())
        advice = "leave out the sequences of classes that do not count"
        require(fits, "class_weight", dict(class_weight), expected, advice)
        # A fold of cross-validation may lack a class.
        unknown = [] if set(known) <= set(class_weight) else list(set(class_weight) - set(known))
        require(not unknown, "classes of class_weight", unknown, f"of {known}", "correct them")
        weights = np.array([class_weight.get(name, 1.0) for name in known])
    else:
        expected, advice = "'balanced' or a dict of factors by class", "choose one of them"
        require(class_weight == "balanced", "class_weight", class_weight, expected, advice)
        weights = 1 / np.bincount(codes, weights=copies)
    made: list[float] = (weights / np.average(weights[codes], weights=copies)).tolist()
    return made
