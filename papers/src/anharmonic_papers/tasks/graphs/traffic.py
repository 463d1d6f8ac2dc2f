"""Node regression: predict the number of visitors of an article."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import boolean
from anharmonic.data import MetricName, NodeData, Target, load_arrays, node_features, stored_split
from anharmonic_papers.tasks.graphs.stored import StoredSplit, prepared


class Traffic(StoredSplit):
    """Predict the monthly traffic of Wikipedia articles that link to each other.

    Features are 0 or 1 (the full MUSAE features). Targets are divided by their maximum, and most
    are far below 1.

    Args:
        split: Number of the fixed split, 0 to 9: 48 % of the nodes train, 32 % validate, 20 % test.
        undirected: Whether the reverse of every link is added, as in the published runs.
        published_numbering: Whether links join wrong articles, as in the published code (see the
            note). Use it only to compare with the published table.
        normalise_features: Whether the features of a node are divided by their sum.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[N, F]`, y `[R, 1]` in (0, 1], rows `[R]`, no membership.

    Metric: "nmse", the mean squared error divided by the mean target of all nodes, including
    training nodes. It equals `metric_scale` times the mean squared error.

    Note:
        The published code renumbers nodes by their first appearance in the list of links. It does
        not renumber features, targets and splits, so links join wrong articles.
        `published_numbering` repeats this error with the available list, which is sorted by source
        and target. The original list had another order, so the error is of the same kind (2 nodes
        keep their number) but not identical.

    References:
        B. Rozemberczki et al.: Multi-Scale Attributed Node Embedding, 2021.
        T. K. Rusch et al.: Gradient Gating, https://arxiv.org/abs/2210.00513, Table 1.
    """

    target: Target = "value"
    metric: MetricName = "nmse"
    output_size = 1
    source = "MUSAE, revision 5f90123 (traffic, features); splits of Geom-GCN, revision f1fc0d1"
    licence = "GPL-3.0 (repository of MUSAE)"

    def __init__(
        self,
        split: int = 0,
        undirected: bool = True,
        published_numbering: bool = False,
        normalise_features: bool = False,
        data_dir: Path | None = None,
    ) -> None:
        super().__init__(split, undirected, normalise_features, data_dir)
        self.published_numbering = boolean("published_numbering", published_numbering)

    def _read(self) -> NodeData:
        arrays = load_arrays(self.archive, self.data_dir, progress=self.progress)
        edges, traffic = arrays["edge_index"], arrays["traffic"]
        if self.published_numbering:
            edges = by_first_appearance(edges, len(traffic))
        y = (traffic / traffic.max()).astype(np.float32)[:, None]
        return NodeData(
            node_features(arrays, "musae_x"), edges, y, stored_split(arrays, self.split)
        )


class ChameleonTraffic(Traffic):
    """Chameleon, node regression: monthly traffic of 2277 Wikipedia articles, 31,421 links.

    Split: 1092 / 729 / 456 articles.
    """

    name = "chameleon-traffic"
    input_size = 3132
    parts = ((1092, 729, 456),)
    metric_scale = 2277 * 508957 / 32170525  # nodes * largest traffic / total traffic
    archive = prepared("geom_chameleon")


class SquirrelTraffic(Traffic):
    """Squirrel, node regression: monthly traffic of 5201 Wikipedia articles, 198,493 links.

    Split: 2496 / 1664 / 1041 articles.
    """

    name = "squirrel-traffic"
    input_size = 3148
    parts = ((2496, 1664, 1041),)
    metric_scale = 5201 * 849131 / 145232033  # nodes * largest traffic / total traffic
    archive = prepared("geom_squirrel")


def by_first_appearance(edges: NDArray[Any], n: int) -> NDArray[np.int64]:
    """Number the nodes in the order in which a list of edges names them, row by row.

    Nodes without edges come last. Features and other node data keep the old numbers, which repeats
    an error of a published code.
    """
    named, first = np.unique(edges.T.reshape(-1), return_index=True)
    rest = np.setdiff1d(np.arange(n), named)
    number = np.empty(n, np.int64)
    number[np.concatenate([named[np.argsort(first)], rest])] = np.arange(n)
    return np.asarray(number[edges])
