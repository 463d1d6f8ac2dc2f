"""Graphs from the data classes of PyTorch Geometric, if the prepared archive is missing.

The class downloads into a temporary folder, and its graph is stored as `graph/geometric_NAME.npz`.
The downloads have no published checksums, so sizes are checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from anharmonic.data.download import DownloadError
from anharmonic.data.graphs.edges import coalesce
from anharmonic.data.sources import Arrays, Source


def pyg_source(
    archive: Source, kind: str, kwargs: Mapping[str, Any], nodes: int, edges: int
) -> Source:
    """Return the source of an archive that a data class of PyTorch Geometric can replace.

    Args:
        archive: The prepared archive, which takes precedence.
        kind: Name of the class in `torch_geometric.datasets`.
        kwargs: Its arguments besides the folder.
        nodes: Expected number of nodes.
        edges: Expected number of distinct directed edges.

    Example:
        >>> archive = Source("geom_film", digest="70bb", folder="graph")
        >>> pyg_source(archive, "Actor", {}, 7600, 30019).name
        'geometric_geom_film'
    """
    return replace(
        archive,
        name=f"geometric_{archive.name}",
        digest=None,
        form={"edge_index": ((2, edges), "int32"), "y": ((nodes,), "uint8")},
        make=lambda folder, progress: pyg_arrays(_download(kind, kwargs, folder)),
        preferred=archive,
    )


def _download(kind: str, kwargs: Mapping[str, Any], folder: Path) -> Any:
    try:
        import torch_geometric.datasets
    except ImportError as error:
        reason = 'it needs torch_geometric; run: pip install "anharmonic[graph]"'
        raise DownloadError(f"{kind}: {reason}", reason) from error
    try:
        return getattr(torch_geometric.datasets, kind)(str(folder), **kwargs)[0]
    except Exception as error:  # errors of its downloads
        reason = f"torch_geometric, {kind}: {type(error).__name__}: {str(error).rstrip('.')}"
        raise DownloadError(reason, reason) from error


def pyg_arrays(data: Any) -> Arrays:
    """Convert a graph of PyTorch Geometric to the arrays of an archive.

    Its masks are `[N, number of splits]`, or `[N]` for a citation graph, whose largest component
    and nodes without features are found too.
    """
    count, x = int(data.num_nodes), data.x.numpy()
    edges = coalesce(data.edge_index.numpy(), count)
    arrays = {
        "edge_index": edges.astype(np.int32),
        "x": x.astype(np.float32),
        "y": data.y.numpy().astype(np.uint8),
    }
    prefix = "public_" if data.train_mask.dim() == 1 else ""
    for part in ("train", "val", "test"):
        arrays[f"{prefix}{part}_mask"] = data[f"{part}_mask"].numpy().astype(bool)
    if prefix:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        links = coo_array((np.ones(edges.shape[1]), edges), (count, count))
        _, component = connected_components(links, directed=False)
        arrays["lcc_mask"] = component == np.bincount(component).argmax()
        arrays["unlabelled_nodes"] = np.flatnonzero(~x.any(1)).astype(np.int32)
    return arrays
