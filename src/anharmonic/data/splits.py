"""Cutting a data set into parts, by a seed, with every class in fair share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import message, positive_int

Indices = NDArray[np.int64]


def split_indices(
    count: int,
    sizes: Sequence[int],
    rng: np.random.Generator,
    labels: NDArray[Any] | None = None,
) -> list[Indices]:
    """Draws disjoint parts of `count` samples.

    With labels each part holds every class in its share, up to one sample: the samples of a class
    of size n, in random order, get the places (k + 1/2) / n, and all samples sorted by place are
    cut into the parts. So the first part holds every class if it is at least half of the data.

    Args:
        count: Number of samples.
        sizes: Size of each part; their sum is at most `count`.
        rng: Where the order comes from.
        labels: The class of every sample, `[count]`; None to cut without regard to classes.

    Returns:
        Indices of each part, in random order.

    Raises:
        ValueError: If the parts are larger than the data set.

    Example:
        >>> labels = np.array([0] * 8 + [1] * 4)
        >>> parts = split_indices(12, [6, 3, 3], np.random.default_rng(0), labels)
        >>> [np.bincount(labels[part]).tolist() for part in parts]
        [[4, 2], [2, 1], [2, 1]]
    """
    if sum(sizes) > count:
        raise ValueError(
            message(
                f"the parts must hold at most {count} samples together",
                " + ".join(str(size) for size in sizes),
                "make them smaller",
            )
        )
    order = rng.permutation(count)
    if labels is not None:
        places = np.empty(count)
        for label in np.unique(labels):
            mine = np.flatnonzero(labels[order] == label)
            places[mine] = (np.arange(len(mine)) + 0.5) / len(mine)
        order = order[np.argsort(places, kind="stable")]
    ends = np.cumsum([0, *sizes])
    return [rng.permutation(order[a:b]) for a, b in itertools.pairwise(ends)]


def official_sizes(
    train: int,
    test: int,
    valid_size: int,
    train_size: int | None,
    test_size: int | None,
) -> dict[str, int]:
    """Sizes of the parts where the test set is given and validation is cut from training.

    Args:
        train: Samples of the official training set.
        test: Samples of the official test set.
        valid_size: Samples of the training set kept for validation.
        train_size: Training samples used; all that are left if None.
        test_size: Test samples used; all if None.

    Raises:
        TypeError: If a size is not an integer.
        ValueError: If a size is out of range.

    Example:
        >>> official_sizes(100, 20, 10, None, 5)
        {'train': 90, 'valid': 10, 'test': 5}
    """
    left = train - _within("valid_size", valid_size, train - 1)
    return {
        "train": left if train_size is None else _within("train_size", train_size, left),
        "valid": valid_size,
        "test": test if test_size is None else _within("test_size", test_size, test),
    }


def _within(name: str, value: int, most: int) -> int:
    if positive_int(name, value) > most:
        raise ValueError(
            message(f"{name} must be in [1, {most}]", f"{name}={value}", "choose fewer samples")
        )
    return value
