"""Reading of features and splits from the archive of one graph.

Its edges are `edge_index` `[2, E]`. Its features are `x`, or a sparse matrix by rows: `x_indptr`,
`x_indices`, `x_shape`, and `x_data` unless all entries are 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anharmonic.data.base import Splits
from anharmonic.data.parts import Indices
from anharmonic.data.sources import Arrays


def node_features(arrays: Arrays, prefix: str = "x", shape: str = "") -> NDArray[np.float32]:
    """Return the features of all nodes as a dense array.

    Args:
        arrays: The archive.
        prefix: Their name: `x`, or `<something>_x`.
        shape: Name of their shape; `<prefix>_shape` if empty.

    Example:
        >>> parts = {"x_indptr": np.array([0, 1, 3]), "x_indices": np.array([2, 0, 1])}
        >>> node_features({**parts, "x_shape": np.array([2, 3])}).tolist()
        [[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    if prefix in arrays:
        return np.ascontiguousarray(arrays[prefix], np.float32)
    count, width = (int(size) for size in arrays[shape or f"{prefix}_shape"])
    dense = np.zeros((count, width), np.float32)
    rows = np.repeat(np.arange(count), np.diff(arrays[f"{prefix}_indptr"]))
    dense[rows, arrays[f"{prefix}_indices"]] = arrays.get(f"{prefix}_data", np.float32(1))
    return dense


def stored_split(arrays: Arrays, split: int = 0, prefix: str = "") -> Splits[Indices]:
    """Return the nodes of each part of a stored split.

    Args:
        arrays: The archive, with masks `[N]` or `[N, number of splits]`.
        split: Number of the split.
        prefix: Prefix of the names of its masks.

    Example:
        >>> names = ["train_mask", "val_mask", "test_mask"]
        >>> masks = {name: np.arange(3)[:, None] == i for i, name in enumerate(names)}
        >>> stored_split(masks).test.tolist()
        [2]
    """
    masks = [arrays[f"{prefix}{part}_mask"] for part in ("train", "val", "test")]
    return Splits(*(np.flatnonzero(m if m.ndim == 1 else m[:, split]) for m in masks))
