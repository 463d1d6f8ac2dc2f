"""Helpers shared by estimators: classes, weights and threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight

from anharmonic._checks import require
from anharmonic.data.sequences import Sequences

Floats = NDArray[np.float64]


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """Set PyTorch's number of threads within a block.

    Args:
        n_jobs: Number of threads; -1 for all cores, None to leave it unchanged.
    """
    before = torch.get_num_threads()
    if n_jobs is not None:
        torch.set_num_threads(effective_n_jobs(n_jobs))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def weighted(part: Sequences, y: Any, sample_weight: Any) -> tuple[Sequences, Any, Floats | None]:
    """Return sequences, targets and weights without the entries of weight 0.

    Args:
        part: The sequences.
        y: Targets, or None.
        sample_weight: The user's weights; None for 1.

    Raises:
        ValueError: If weights do not fit, are not finite or below 0, or all are 0.
    """
    if sample_weight is None:
        return part, y, None
    weights: Floats = _check_sample_weight(
        sample_weight, np.empty((len(part), 1)), dtype=np.float64, ensure_non_negative=True
    )
    rows = np.flatnonzero(weights > 0)
    if len(rows) < len(part):
        part, y = part.select(rows), None if y is None else _safe_indexing(y, rows)
    return part, y, weights[rows]


def encode(y: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the sorted classes and the class index of every sequence.

    Args:
        y: The user's classes.

    Raises:
        ValueError: If they are not classes, or only one.
    """
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    advice = "add sequences of another class"
    require(len(classes) > 1, "classes of y", classes.tolist(), "two or more", advice)
    return classes, codes.astype(np.int64)


def indicators(y: Any) -> NDArray[np.float32] | None:
    """Return zeros and ones `[n, K]` for several labels; None for one class per sequence.

    Args:
        y: The user's targets.

    Raises:
        ValueError: If there are several columns of something else.
    """
    if type_of_target(y, input_name="y") != "multilabel-indicator":
        return None
    y = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
    return np.asarray(y, np.float32)


def weights_of(
    class_weight: str | Mapping[Any, float], classes: NDArray[Any], codes: NDArray[np.int64]
) -> Sequence[float]:
    """Return a factor on each class, with mean 1 over the training data.

    Args:
        class_weight: "balanced" or a dict by class; classes not in it have 1.
        classes: The classes.
        codes: The class index of every sequence.

    Example:
        >>> weights_of("balanced", np.array(["a", "b"]), np.array([0, 0, 0, 1]))
        [0.6666666666666666, 2.0]
    """
    weights = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    made: list[float] = (weights / weights[codes].mean()).tolist()
    return made
