"""Synthetic graphs with a given share of links within a class."""

from pathlib import Path

from anharmonic._checks import boolean, number, require
from anharmonic.data import NodeData, NodeTask, load_arrays, node_features, stored_split
from anharmonic_papers.tasks.graphs.stored import prepared
from anharmonic_papers.tasks.official_split import bounded_int

LEVELS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0)


class SyntheticCora(NodeTask):
    """Synthetic Cora: 1490 nodes with words of Cora, links that join classes as often as wanted.

    Links are stored in both directions.

    Args:
        homophily: Share of links within a class: 0.0, 0.1, 0.2 ... 0.9, 0.99 or 1.0.
        repeat: Which of the three graphs of this level, 1 to 3.
        normalise_features: Whether the words of a node are divided by their sum.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[1490, 1433]`, y `[R]` classes 0 to 4, rows `[R]`, no membership.

    Split: 745 / 372 / 373 nodes, the same for every graph, as in the published code of Gradient
    Gating.

    Metric: accuracy in percent. Licence: Apache-2.0 (repository of graff).

    Note:
        The paper leaves out level 1.0. For this level its code names a file that does not exist.

    References:
        J. Zhu et al.: Beyond Homophily in Graph Neural Networks, 2020.
        T. K. Rusch et al.: Gradient Gating, https://arxiv.org/abs/2210.00513, Figure 5.
    """

    name = "synthetic-cora"
    metric = "accuracy"
    input_size = 1433
    output_size = 5
    source = "H2GCN's synthetic Cora, from the repository of graff, revision 97ea6b5"
    licence = "Apache-2.0 (repository of graff)"
    class_names = tuple(str(i) for i in range(5))
    archive = prepared("syn_cora")

    def __init__(
        self,
        homophily: float = 0.0,
        repeat: int = 1,
        normalise_features: bool = False,
        data_dir: Path | None = None,
    ) -> None:
        self.homophily = number("homophily", homophily, low=0.0, high=1.0)
        expected = f"one of {', '.join(map(str, LEVELS))}"
        advice = "choose a level for which there are graphs"
        require(homophily in LEVELS, "homophily", homophily, expected, advice)
        self.repeat = bounded_int("repeat", repeat, 3)
        self.normalise_features = boolean("normalise_features", normalise_features)
        self.data_dir = data_dir
        self.sizes = {"train": 745, "valid": 372, "test": 373}

    def _read(self) -> NodeData:
        arrays = load_arrays(self.archive, self.data_dir, progress=self.progress)
        graph = f"h{self.homophily:.2f}_r{self.repeat}_"
        x = node_features(arrays, f"{graph}x", "x_shape")
        edges, y = arrays[f"{graph}edge_index"], arrays[f"{graph}y"]
        return NodeData(x, edges, y, stored_split(arrays, 0))
