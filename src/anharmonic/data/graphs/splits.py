"""Which nodes train, validate and test, where the data do not say."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import message
from anharmonic.data.splits import Indices


class Rows(NamedTuple):
    """The nodes of every part, sorted."""

    train: Indices
    valid: Indices
    test: Indices


def from_masks(train: NDArray[np.bool_], valid: NDArray[np.bool_], test: NDArray[np.bool_]) -> Rows:
    """Rows of three masks `[N]`.

    Example:
        >>> from_masks(*(np.arange(3) == i for i in range(3))).valid.tolist()
        [1]
    """
    return Rows(np.flatnonzero(train), np.flatnonzero(valid), np.flatnonzero(test))


def per_class(
    y: NDArray[Any],
    known: NDArray[np.bool_],
    rng: np.random.Generator,
    *,
    development: int = 1500,
    per_class: int = 20,
) -> Rows:
    """The random split for citation graphs of Shchur et al. (2018).

    Of `development` random nodes, `per_class` of every class train and the others validate; all
    remaining nodes test.

    Args:
        y: Classes `[N]`.
        known: bool `[N]`, the nodes that have a class; others are in no part.
        rng: Where the order comes from.
        development: Nodes that do not test.
        per_class: Training nodes of every class.

    Raises:
        ValueError: If there are fewer nodes, or fewer of a class among those drawn.

    Example:
        >>> y, rng = np.arange(100) % 2, np.random.default_rng(0)
        >>> rows = per_class(y, y >= 0, rng, development=60, per_class=5)
        >>> [len(part) for part in rows], np.bincount(y[rows.train]).tolist()
        ([10, 50, 40], [5, 5])
    """
    order = rng.permutation(np.flatnonzero(known))
    drawn, test = order[:development], order[development:]
    chosen = [drawn[y[drawn] == label][:per_class] for label in np.unique(y[known])]
    if len(test) < 1 or min(len(part) for part in chosen) < per_class:
        raise ValueError(
            message(
                f"the split needs {per_class} nodes of every class among {development}",
                f"{len(order)} nodes, as few as {min(len(part) for part in chosen)} of a class",
                "use another split",
            )
        )
    train = np.concatenate(chosen)
    return Rows(np.sort(train), np.setdiff1d(drawn, train), np.sort(test))


def shares(known: NDArray[np.bool_], rng: np.random.Generator) -> Rows:
    """Cuts the nodes that have a class at random: 50 % train, 25 % validate, the rest test.

    Args:
        known: bool `[N]`, the nodes that have a class; others are in no part.
        rng: Where the order comes from.

    Example:
        >>> [len(part) for part in shares(np.arange(11) > 0, np.random.default_rng(0))]
        [5, 2, 3]
    """
    order = rng.permutation(np.flatnonzero(known))
    train, valid, _ = share_sizes(len(order)).values()
    return Rows(*(np.sort(part) for part in np.split(order, [train, train + valid])))


def share_sizes(count: int) -> dict[str, int]:
    """Sizes of the parts that `shares` makes of `count` nodes.

    Example:
        >>> share_sizes(10)
        {'train': 5, 'valid': 2, 'test': 3}
    """
    train, valid = count // 2, count // 4
    return {"train": train, "valid": valid, "test": count - train - valid}
