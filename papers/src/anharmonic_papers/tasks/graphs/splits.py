"""Random splits of nodes for data without a given split."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anharmonic.data import Splits


def half_split(known: NDArray[np.bool_], rng: np.random.Generator) -> Splits[NDArray[np.int64]]:
    """Split the nodes that have a class at random: 50 % train, 25 % validate, the rest test.

    Args:
        known: bool `[N]`, the nodes that have a class; others are in no part.
        rng: The generator of the random order.

    Example:
        >>> [len(part) for part in half_split(np.arange(11) > 0, np.random.default_rng(0))]
        [5, 2, 3]
    """
    order = rng.permutation(np.flatnonzero(known))
    train, valid, _ = half_split_sizes(len(order)).values()
    return Splits(*(np.sort(part) for part in np.split(order, [train, train + valid])))


def half_split_sizes(count: int) -> dict[str, int]:
    """Return the sizes of the parts of `half_split` for `count` nodes.

    Example:
        >>> half_split_sizes(10)
        {'train': 5, 'valid': 2, 'test': 3}
    """
    train, valid = count // 2, count // 4
    return {"train": train, "valid": valid, "test": count - train - valid}
