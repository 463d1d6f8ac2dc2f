"""What is done to a list of edges before it becomes a graph.

Edges are int64 `[2, E]`, sources in row 0 and targets in row 1; `n` is the number of nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Edges = NDArray[np.int64]


def coalesce(edges: NDArray[Any], n: int) -> Edges:
    """Every edge once, sorted by source, then target.

    Example:
        >>> coalesce(np.array([[1, 0, 1], [0, 2, 0]]), 3).tolist()
        [[0, 1], [2, 0]]
    """
    numbers = np.unique(edges[0].astype(np.int64) * n + edges[1])
    return np.stack([numbers // n, numbers % n])


def to_undirected(edges: NDArray[Any], n: int) -> Edges:
    """The undirected graph: every edge and its reverse, each once; self-loops stay.

    Example:
        >>> to_undirected(np.array([[0, 1, 2], [1, 0, 2]]), 3).tolist()
        [[0, 1, 2], [1, 0, 2]]
    """
    return coalesce(np.concatenate([edges, edges[::-1]], 1), n)


def subgraph(edges: NDArray[Any], keep: NDArray[np.bool_]) -> Edges:
    """The edges between the nodes kept, which are numbered anew in their order.

    Args:
        edges: The edges.
        keep: bool `[n]`.

    Example:
        >>> subgraph(np.array([[0, 1], [1, 2]]), np.array([False, True, True])).tolist()
        [[0], [1]]
    """
    number = np.cumsum(keep) - 1
    inside = keep[edges[0]] & keep[edges[1]]
    found: Edges = number[edges[:, inside]].astype(np.int64)
    return found


def largest_component(edges: NDArray[Any], n: int) -> NDArray[np.bool_]:
    """Says which nodes belong to the largest connected component, directions left out.

    Of components of equal size it is the one with the lowest node.

    Example:
        >>> largest_component(np.array([[0, 4], [1, 3]]), 6).tolist()
        [True, True, False, False, False, False]
    """
    root = np.arange(n)
    ends = np.concatenate([edges, edges[::-1]], 1)
    while True:
        lower = root.copy()
        np.minimum.at(lower, ends[0], root[ends[1]])
        lower = lower[lower]
        if (lower == root).all():
            largest: NDArray[np.bool_] = root == np.bincount(root, minlength=n).argmax()
            return largest
        root = lower


def by_first_appearance(edges: NDArray[Any], n: int) -> Edges:
    """Numbers the nodes in the order in which a list of edges names them, row by row.

    Nodes without edges come last. What belongs to the old numbers, such as features, is not moved
    along: this repeats an error of a published code.

    Example:
        >>> by_first_appearance(np.array([[2, 0], [1, 2]]), 3).tolist()  # 2, 1, 0 become 0, 1, 2
        [[0, 2], [1, 0]]
    """
    named, first = np.unique(edges.T.reshape(-1), return_index=True)
    order = named[np.argsort(first)]
    rest = np.setdiff1d(np.arange(n), named)
    number = np.empty(n, np.int64)
    number[np.concatenate([order, rest])] = np.arange(n)
    renamed: Edges = number[edges]
    return renamed


def homophily(edges: NDArray[Any], y: NDArray[Any]) -> float:
    """Share of the distinct undirected edges, self-loops counted, that join nodes of one class.

    Args:
        edges: The edges.
        y: Classes `[n]`.

    Example:
        >>> homophily(np.array([[0, 1, 1], [1, 0, 2]]), np.array([0, 0, 1]))
        0.5
    """
    once = coalesce(np.sort(edges, axis=0), len(y))
    return float((y[once[0]] == y[once[1]]).mean())
