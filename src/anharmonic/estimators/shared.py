"""What estimators share: classes, their weights, and threads."""

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
    """Set PyTorch's threads for a while.

    Args:
        n_jobs: How many; -1 for all cores, None to leave their number.
    """
    before = torch.get_num_threads()
    if n_jobs is not None:
        torch.set_num_threads(effective_n_jobs(n_jobs))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def weighted(part: Sequences, y: Any, sample_weight: Any) -> tuple[Sequences, Any, Floats | None]:
    """Sequences, targets and weights without what has weight 0: it is as if it were not there.

    Args:
        part: The sequences.
        y: Targets; None where there are none.
        sample_weight: Weights as given; None for 1.

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
    """The classes, sorted, and the number of that of every sequence.

    Args:
        y: Classes as given.

    Raises:
        ValueError: If they are no classes, or only one.
    """
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    advice = "add sequences of another class"
    require(len(classes) > 1, "classes of y", classes.tolist(), "two or more", advice)
    return classes, codes.astype(np.int64)


def indicators(y: Any) -> NDArray[np.float32] | None:
    """Zeros and ones `[n, K]` of several labels; None if y holds one class of every sequence.

    Args:
        y: Targets as given.

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
    """A factor on each class, such that the mean over the training data is 1.

    Args:
        class_weight: "balanced" or a dict by class; a class that it does not name has 1.
        classes: The classes.
        codes: The number of that of every sequence.

    Example:
        >>> weights_of("balanced", np.array(["a", "b"]), np.array([0, 0, 0, 1]))
        [0.6666666666666666, 2.0]
    """
    weights = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    made: list[float] = (weights / weights[codes].mean()).tolist()
    return made
