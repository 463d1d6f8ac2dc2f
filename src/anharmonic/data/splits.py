"""Cutting a data set into parts, by a seed, with every class in fair share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import require

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
    expected = f"of at most {count} samples together"
    require(sum(sizes) <= count, "sizes", list(sizes), expected, "make the parts smaller")
    order = rng.permutation(count)
    if labels is not None:
        places = np.empty(count)
        for label in np.unique(labels):
            mine = np.flatnonzero(labels[order] == label)
            places[mine] = (np.arange(len(mine)) + 0.5) / len(mine)
        order = order[np.argsort(places, kind="stable")]
    ends = np.cumsum([0, *sizes])
    return [rng.permutation(order[a:b]) for a, b in itertools.pairwise(ends)]
