"""Graphs through the data classes of PyTorch Geometric, where the prepared archive is absent.

The class downloads into a temporary folder; its graph is turned into the arrays of the prepared
archive and stored as `graph/geometric_NAME.npz`. What it downloaded has no published checksum, so
sizes are checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from anharmonic.data.download import DownloadError
from anharmonic.data.graphs.edges import coalesce, largest_component
from anharmonic.data.graphs.files import prepared
from anharmonic.data.sources import Arrays, Source


def pyg_source(
    archive: str, kind: str, options: Mapping[str, Any], nodes: int, edges: int
) -> Source:
    """The source of an archive that a data class of PyTorch Geometric can stand in for.

    Args:
        archive: Name of the prepared archive.
        kind: Name of the class in `torch_geometric.datasets`.
        options: Its arguments besides the folder.
        nodes: Nodes it must have.
        edges: Distinct directed edges it must have.

    Example:
        >>> pyg_source("geom_film", "Actor", {}, 7600, 30019).instead.name
        'geom_film'
    """

    def make(folder: Path, progress: bool) -> Arrays:
        return converted(_download(kind, options, folder))

    form = {"edge_index": ((2, edges), "int32"), "y": ((nodes,), "uint8")}
    source = prepared(archive)
    return replace(
        source, name=f"geometric_{archive}", digest=None, form=form, make=make, instead=source
    )


def _download(kind: str, options: Mapping[str, Any], folder: Path) -> Any:
    try:
        import torch_geometric.datasets
    except ImportError as error:
        reason = 'it needs torch_geometric; run: pip install "anharmonic[graph]"'
        raise DownloadError(f"{kind}: {reason}", reason) from error
    try:
        return getattr(torch_geometric.datasets, kind)(str(folder), **options)[0]
    except Exception as error:  # whatever its way of downloading raises
        reason = f"torch_geometric, {kind}: {type(error).__name__}: {str(error).rstrip('.')}"
        raise DownloadError(reason, reason) from error


def converted(data: Any) -> Arrays:
    """A graph of PyTorch Geometric as the arrays of an archive.

    Args:
        data: Has `x` `[N, F]`, `edge_index` `[2, E]`, `y` `[N]`, and `train_mask`, `val_mask` and
            `test_mask`: `[N]` for a citation graph, whose largest component and nodes without
            features are found too, or `[N, number of splits]`.
    """
    count = int(data.num_nodes)
    edges = coalesce(data.edge_index.numpy(), count)
    arrays: Arrays = {
        "edge_index": edges.astype(np.int32),
        "y": data.y.numpy().astype(np.uint8),
        **sparse(data.x.numpy()),
    }
    one = data.train_mask.dim() == 1
    for part in ("train", "val", "test"):
        arrays[f"{'public_' if one else ''}{part}_mask"] = data[f"{part}_mask"].numpy().astype(bool)
    if one:
        arrays["lcc_mask"] = largest_component(edges, count)
        empty = np.flatnonzero(np.diff(arrays["x_indptr"]) == 0)
        arrays["unlabelled_nodes"] = empty.astype(np.int32)
    return arrays


def sparse(x: Any) -> Arrays:
    """A dense matrix as the parts of a sparse one.

    Example:
        >>> parts = sparse(np.array([[0.0, 1.0], [1.0, 1.0]], np.float32))
        >>> {key: value.tolist() for key, value in parts.items()}
        {'x_indptr': [0, 1, 3], 'x_indices': [1, 0, 1], 'x_shape': [2, 2]}
    """
    rows, columns = np.nonzero(x)
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(x)))])
    parts: Arrays = {
        "x_indptr": ends.astype(np.int32),
        "x_indices": columns.astype(np.uint16),
        "x_shape": np.array(x.shape, np.int32),
    }
    data = x[rows, columns].astype(np.float32)
    return parts if (data == 1).all() else {**parts, "x_data": data}
