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


def split_groups(
    groups: NDArray[Any],
    sizes: Sequence[int],
    rng: np.random.Generator,
    labels: NDArray[Any] | None = None,
) -> list[Indices]:
    """Draws disjoint parts of all samples such that no group is in two of them.

    Of many random orders of the groups, each dealt out to the part that lacks them most, the one
    is taken whose parts come nearest to their sizes and, with labels, to their shares of classes.

    Args:
        groups: The group of every sample, `[N]`.
        sizes: Wanted size of each part, their sum N; every part gets at least one group.
        rng: Where the orders come from.
        labels: The class of every sample, `[N]`, or None.

    Returns:
        Indices of each part, in random order.

    Raises:
        ValueError: If the sizes do not add up, or there are fewer groups than parts.

    Example:
        >>> groups = np.repeat(["ann", "bob", "eve"], [2, 6, 2])
        >>> parts = split_groups(groups, [6, 2, 2], np.random.default_rng(0))
        >>> [len(part) for part in parts], sorted(set(groups[parts[0]].tolist()))
        ([6, 2, 2], ['bob'])
    """
    count = len(groups)
    require(sum(sizes) == count, "sizes", list(sizes), f"of {count} samples together", "use all")
    names, group = np.unique(groups, return_inverse=True)
    expected, advice = f"at least {len(sizes)}, one per part", "add groups or make fewer parts"
    require(len(names) >= len(sizes), "number of groups", len(names), expected, advice)
    kinds = (
        np.zeros(count, np.int64) if labels is None else np.unique(labels, return_inverse=True)[1]
    )
    amount = np.zeros((len(names), int(kinds.max()) + 1))
    np.add.at(amount, (group, kinds), 1.0)
    wanted = np.outer(np.array(sizes) / count, amount.sum(axis=0))
    deals = [_deal(amount, wanted, rng) for _ in range(max(1, min(100, 10_000 // len(names))))]
    _, best = min(deals, key=lambda deal: deal[0])
    return [rng.permutation(np.flatnonzero(best[group] == part)) for part in range(len(sizes))]


def _deal(
    amount: NDArray[Any], wanted: NDArray[Any], rng: np.random.Generator
) -> tuple[float, Indices]:
    """Deals groups out in random order: the distance from `wanted` and the part of each group."""
    parts = np.empty(len(amount), np.int64)
    held = np.zeros_like(wanted)
    for left, group in zip(range(len(amount), 0, -1), rng.permutation(len(amount)), strict=True):
        empty = held.sum(axis=1) == 0
        excess = np.maximum(held + amount[group] - wanted, 0.0).sum(axis=1) / amount[group].sum()
        # Where nothing would be too much, the part that is emptiest for its size comes first.
        score = excess + 1e-3 * held.sum(axis=1) / wanted.sum(axis=1)
        if left == empty.sum():
            score = np.where(empty, score, np.inf)
        parts[group] = np.argmin(score)
        held[parts[group]] += amount[group]
    return float(np.abs(held - wanted).sum()), parts
