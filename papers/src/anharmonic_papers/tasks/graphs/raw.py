"""Convert files of canonical sources to arrays of graphs."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import message, require
from anharmonic.data import Arrays, coalesce, to_undirected

Array = NDArray[Any]


def prepare_genius(files: Sequence[Path]) -> Arrays:
    """Convert the MATLAB file of genius: features, links and classes."""
    found = _matlab(files[0], ("edge_index", "node_feat", "label"))
    y = np.asarray(found["label"]).reshape(-1)
    return {
        "edge_index": coalesce(found["edge_index"], len(y)).astype(np.int32),
        "x": np.asarray(found["node_feat"], np.float32),
        "y": y.astype(np.int8),
    }


def prepare_patents(files: Sequence[Path]) -> Arrays:
    """Convert the MATLAB file of snap-patents: sparse features, citations, fifths of the years."""
    found = _matlab(files[0], ("edge_index", "node_feat", "years"))
    y = even_classes(np.asarray(found["years"]).reshape(-1), 5)
    x = found["node_feat"].tocsr()
    return {
        "edge_index": coalesce(found["edge_index"], len(y)).astype(np.int32),
        "x_indptr": x.indptr.astype(np.int64),
        "x_indices": x.indices.astype(np.uint16),
        "x_data": x.data.astype(np.float32),
        "x_shape": np.array(x.shape, np.int32),
        "y": y,
    }


def _matlab(path: Path, names: Sequence[str]) -> dict[str, Any]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        content: dict[str, Any] = loadmat(str(path))
    except (MatReadError, ValueError, NotImplementedError) as error:
        raise ValueError(
            message(
                f"{path.name} must be a MATLAB file",
                f"{type(error).__name__}: {str(error).rstrip('.')}",
                "download it again: a server may have sent a web page in its place",
            )
        ) from error
    found = [name for name in names if name in content]
    fits = len(found) == len(names)
    require(fits, path.name, found, f"a file with {', '.join(names)}", "download it again")
    return content


def prepare_arxiv_year(files: Sequence[Path]) -> Arrays:
    """Convert the archive of ogbn-arxiv: features, citations and fifths of the years."""
    tables = {}
    with zipfile.ZipFile(files[0]) as archive:
        members = {Path(name).name: name for name in archive.namelist()}
        for name, kind in (
            ("edge", np.int64),
            ("node-feat", np.float32),
            ("node_year", np.int64),
        ):
            member = _member(members, f"{name}.csv.gz", files[0])
            text = gzip.decompress(archive.read(member)).decode()
            tables[name] = np.loadtxt(io.StringIO(text), kind, delimiter=",", ndmin=2)
    y = even_classes(tables["node_year"].reshape(-1), 5)
    return {
        "edge_index": coalesce(tables["edge"].T, len(y)).astype(np.int32),
        "x": tables["node-feat"],
        "y": y,
    }


def _member(members: dict[str, str], name: str, path: Path) -> str:
    found = sorted(members)
    require(name in members, path.name, found, f"an archive with {name}", "download it again")
    return members[name]


def even_classes(values: Array, count: int) -> NDArray[np.int8]:
    """Divide values at their quantiles into classes of about equal size, as in LINKX."""
    bounds = np.nanquantile(values, np.arange(1, count) / count)
    return np.searchsorted(bounds, values, side="right").astype(np.int8)


def prepare_ppi(files: Sequence[Path]) -> Arrays:
    """Convert the archive of PPI: 24 graphs in three parts, with links in both directions.

    The nodes of a part are sorted by graph and keep their order within a graph.
    """
    arrays: Arrays = {}
    with zipfile.ZipFile(files[0]) as archive:
        members = {Path(name).name: name for name in archive.namelist()}

        def read(name: str) -> bytes:
            return archive.read(_member(members, name, files[0]))

        for part, key in (("train", "train"), ("valid", "val"), ("test", "test")):
            number = np.load(io.BytesIO(read(f"{part}_graph_id.npy")), allow_pickle=False)
            x = np.load(io.BytesIO(read(f"{part}_feats.npy")), allow_pickle=False)
            y = np.load(io.BytesIO(read(f"{part}_labels.npy")), allow_pickle=False)
            links = json.loads(read(f"{part}_graph.json"))["links"]
            ends = np.array([[link["source"], link["target"]] for link in links]).T
            arrays |= {
                f"{key}_{name}": value
                for name, value in many_graphs(x, y, number, ends.astype(np.int64)).items()
            }
    return arrays


def many_graphs(x: Array, y: Array, number: Array, links: Array) -> Arrays:
    """Split one graph, whose nodes have the number of their graph, into the graphs it combines.

    Links are in one or both directions; self-loops are left out, and links between graphs refused.
    """
    graphs, code, sizes = np.unique(number, return_inverse=True, return_counts=True)
    order = np.argsort(code, kind="stable")
    place = np.empty(len(code), np.int64)
    place[order] = np.arange(len(code))
    edges = to_undirected(place[links[:, links[0] != links[1]]], len(code))
    sorted_code = code[order]
    between = int((sorted_code[edges[0]] != sorted_code[edges[1]]).sum())
    require(between == 0, "links between two graphs", between, "none", "download the file again")
    owner = sorted_code[edges[0]]
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return {
        "x": x[order].astype(np.float32),
        "y": y[order].astype(np.uint8),
        "num_nodes": sizes.astype(np.int32),
        "num_edges": np.bincount(owner, minlength=len(graphs)).astype(np.int32),
        "edges": (edges - first[owner]).astype(np.int32),
    }
