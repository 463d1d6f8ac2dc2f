import numpy as np

from anharmonic_papers.tasks.graphs.networks import Minesweeper


def test_a_network_is_undirected(tiny_archive):
    masks = {
        f"{p}_mask": np.tile(np.arange(3)[:, None] == i, (1, 10))
        for i, p in enumerate(("train", "val", "test"))
    }
    arrays = {
        "edge_index": np.array([[0, 1], [1, 2]], np.int32),
        "y": np.array([0, 1, 1], np.uint8),
        "x": np.ones((3, 7), np.float32),
        **masks,
    }
    graph = Minesweeper(data_dir=tiny_archive(Minesweeper, arrays)).loaders(0, 1).test[0].graph
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_a_real_grid_has_its_neighbours(graph_data):
    batch = Minesweeper(data_dir=graph_data("het_minesweeper")).loaders(0, 1).test[0]
    assert batch.graph.in_degree.max() == 8
    assert batch.graph.in_degree.min() == 3
