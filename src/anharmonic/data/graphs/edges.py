"""Operations on edge lists, with the names of PyTorch Geometric.

Edges are int64 `[2, E]`, sources in row 0 and targets in row 1; `n` is the number of nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Edges = NDArray[np.int64]


def coalesce(edges: NDArray[Any], n: int) -> Edges:
    """Remove duplicate edges, and sort edges by source, then target.

    Example:
        >>> coalesce(np.array([[1, 0, 1], [0, 2, 0]]), 3).tolist()
        [[0, 1], [2, 0]]
    """
    source, target = edges.astype(np.int64)  # unsigned and signed integers would make floats
    numbers = np.unique(source * n + target)
    return np.stack([numbers // n, numbers % n])


def to_undirected(edges: NDArray[Any], n: int) -> Edges:
    """Make a graph undirected: each edge and its reverse once; self-loops stay.

    Example:
        >>> to_undirected(np.array([[0, 1, 2], [1, 0, 2]]), 3).tolist()
        [[0, 1, 2], [1, 0, 2]]
    """
    return coalesce(np.concatenate([edges, edges[::-1]], 1), n)


def subgraph(edges: NDArray[Any], mask: NDArray[np.bool_]) -> Edges:
    """Return the edges between the nodes of a mask `[n]`, renumbered in order."""
    number = np.cumsum(mask) - 1
    return np.asarray(number[edges[:, mask[edges].all(0)]], np.int64)


def reciprocity(edges: NDArray[Any]) -> float:
    """Return the share of distinct edges whose reverse also exists, without self-loops.

    1 for an undirected graph, and for one without such edges.

    Example:
        >>> reciprocity(np.array([[0, 1, 1, 2], [1, 0, 2, 2]]))
        0.6666666666666666
    """
    others = edges[:, edges[0] != edges[1]].astype(np.int64)
    n = int(others.max(initial=0)) + 1
    one, back = np.unique(others[0] * n + others[1]), np.unique(others[1] * n + others[0])
    return float(np.isin(one, back).mean()) if len(one) else 1.0
