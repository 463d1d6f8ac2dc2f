from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from anharmonic.data.sources import Arrays
from anharmonic_papers.tasks.graphs.networks import FacebookReed98, Minesweeper


def students() -> Arrays:
    info = np.zeros((8, 7), np.uint16)
    info[:, 0] = [1, 2, 1, 1, 2, 2, 1, 1]
    info[:, 6] = 50000 + np.arange(8)
    return {
        "edge_index_upper": np.array([[0, 1], [3, 7]], np.int32),
        "y": np.array([0, 1, -1, 1, 0, 1, 0, 1], np.int8),
        "local_info": info,
    }


def test_students_without_a_class_count_in_no_part(tiny_archive: Callable[..., Path]) -> None:
    folder = tiny_archive(FacebookReed98, students())
    seen = set()
    for split in range(4):
        loaders = FacebookReed98(split, data_dir=folder).loaders(0, 1)
        parts = [loaders.train(0)[0], loaders.valid[0], loaders.test[0]]
        assert [len(part.rows) for part in parts] == [3, 1, 3]
        rows = torch.cat([part.rows for part in parts])
        assert sorted(rows.tolist()) == [0, 1, 3, 4, 5, 6, 7]
        seen.add(tuple(rows.tolist()))
    assert len(seen) == 4
    assert parts[0].graph.edge_index.tolist() == [[0, 1, 3, 7], [3, 7, 0, 1]]
    # 2 values of the first column, one each of the four empty ones, 8 high schools.
    assert parts[0].x.shape == (8, 2 + 4 + 8)
    assert parts[0].x.sum(1).tolist() == [6] * 8


def test_a_network_is_undirected(tiny_archive: Callable[..., Path]) -> None:
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


def test_a_real_grid_has_its_neighbours(graph_data: Callable[[str], Path]) -> None:
    batch = Minesweeper(data_dir=graph_data("het_minesweeper")).loaders(0, 1).test[0]
    assert batch.graph.in_degree.max() == 8
    assert batch.graph.in_degree.min() == 3
