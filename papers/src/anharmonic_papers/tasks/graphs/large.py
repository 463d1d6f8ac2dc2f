"""Large graphs with few links within a class: downloads of up to about 1 GB."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import boolean, natural
from anharmonic.data import (
    NodeData,
    NodeTask,
    RemoteFile,
    Source,
    Splits,
    load_arrays,
    node_features,
    seeded_rng,
)
from anharmonic_papers.tasks.graphs.raw import prepare_arxiv_year, prepare_genius, prepare_patents

_LINKX = "https://github.com/CUAI/Non-Homophily-Large-Scale/raw/master/data/"


class Large(NodeTask):
    """A large graph of LINKX.

    Args:
        split: Which random split, from 0: 50 % of the nodes train, 25 % validate.
        undirected: Whether the reverse of every link is added.
        normalise_features: Whether the features of a node are divided by their sum.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[N, F]`, y `[R]` classes, rows `[R]`, no membership.

    Metric: accuracy in percent. Licence: none stated, unless the task names one.

    Note:
        LINKX stores its splits. Here the split number seeds a random split with the same shares.

    References:
        D. Lim et al.: Large Scale Learning on Non-Homophilous Graphs, 2021.
        T. K. Rusch et al.: Gradient Gating, https://arxiv.org/abs/2210.00513, Table 3.
    """

    metric = "accuracy"
    licence = "none stated"
    nodes: ClassVar[int]
    archive: ClassVar[Source]

    def __init__(
        self,
        split: int = 0,
        undirected: bool = False,
        normalise_features: bool = False,
        data_dir: Path | None = None,
    ) -> None:
        self.split = natural("split", split)
        self.undirected = boolean("undirected", undirected)
        self.normalise_features = boolean("normalise_features", normalise_features)
        self.data_dir = data_dir
        self.sizes = half_split_sizes(self.nodes)

    def _read(self) -> NodeData:
        arrays = load_arrays(self.archive, self.data_dir, progress=self.progress)
        y = arrays["y"]
        rows = half_split(y >= 0, seeded_rng("large split", self.split))
        return NodeData(node_features(arrays), arrays["edge_index"], y, rows)


class Genius(Large):
    """genius: which of 421,961 users of a site on lyrics, with 985 thousand links, are spammers.

    Split: 210,980 / 105,490 / 105,491 users.
    """

    name = "genius"
    input_size = 12
    output_size = 2
    nodes = 421961
    class_names = ("0", "1")
    source = "LINKX, genius.mat"
    archive = Source(
        "genius",
        (RemoteFile(_LINKX + "genius.mat", None),),
        prepare_genius,
        None,
        {"x": ((421961, 12), "float32"), "y": ((421961,), "int8")},
        folder="graph",
    )


class ArxivYear(Large):
    """arXiv-year: in which fifth of the years 169,343 papers, with 1,166,243 citations, appeared.

    Split: 84,671 / 42,335 / 42,337 papers. Licence: ODC-BY (Open Graph Benchmark).
    """

    name = "arxiv-year"
    input_size = 128
    output_size = 5
    nodes = 169343
    class_names = tuple(str(i) for i in range(5))
    source = "ogbn-arxiv of the Open Graph Benchmark; classes from the year as in LINKX"
    licence = "ODC-BY"
    archive = Source(
        "arxiv_year",
        (RemoteFile("https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip", None),),
        prepare_arxiv_year,
        None,
        {
            "x": ((169343, 128), "float32"),
            "y": ((169343,), "int8"),
            "edge_index": ((2, 1166243), "int32"),
        },
        folder="graph",
    )


class SnapPatents(Large):
    """snap-patents: in which fifth of the years 2,923,922 patents were granted; 14 m citations.

    It needs several GB of memory.

    Split: 1,461,961 / 730,980 / 730,981 patents.
    """

    name = "snap-patents"
    input_size = 269
    output_size = 5
    nodes = 2923922
    class_names = tuple(str(i) for i in range(5))
    source = "LINKX, snap_patents.mat"
    archive = Source(
        "snap_patents",
        (
            RemoteFile(
                "https://drive.usercontent.google.com/download"
                "?id=1ldh23TSY1PwXia6dU0MYcpyEgX-w3Hia&confirm=t",
                None,
                file="snap_patents.mat",
            ),
        ),
        prepare_patents,
        None,
        {"x_indptr": ((2923923,), "int64"), "y": ((2923922,), "int8")},
        folder="graph",
    )


def half_split(known: NDArray[np.bool_], rng: np.random.Generator) -> Splits[NDArray[np.int64]]:
    """Split the nodes with a known class at random: 50 % train, 25 % validate, the rest test."""
    order = rng.permutation(np.flatnonzero(known))
    train, valid, _ = half_split_sizes(len(order)).values()
    return Splits(*(np.sort(part) for part in np.split(order, [train, train + valid])))


def half_split_sizes(count: int) -> dict[str, int]:
    """Return the sizes of the parts of `half_split` for `count` nodes."""
    train, valid = count // 2, count // 4
    return {"train": train, "valid": valid, "test": count - train - valid}
