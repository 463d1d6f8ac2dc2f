import numpy as np
import pytest
import torch

from anharmonic.data.sources import load_arrays
from anharmonic_papers.tasks.graphs.heterophilic import Cornell, CornellOld, Texas


def hand_made():
    masks = {
        f"{part}_mask": np.arange(6)[:, None] % 3 == (np.arange(10) + i) % 3
        for i, part in enumerate(("train", "val", "test"))
    }
    return {
        "edge_index": np.array([[0, 2, 4, 5], [2, 0, 5, 5]], np.int32),
        "y": np.arange(6, dtype=np.uint8) % 5,
        "x_indptr": np.array([0, 1, 1, 3, 3, 3, 4], np.int32),
        "x_indices": np.array([1, 0, 1, 2], np.uint16),
        "x_shape": np.array([6, 3], np.int32),
        **masks,
    }


def test_a_split_of_a_directed_graph(tiny_archive):
    folder = tiny_archive(Texas, hand_made())
    loaders = Texas(split=1, data_dir=folder).loaders(0, 1)
    batch = loaders.train(0)[0]
    assert batch.graph.edge_index.tolist() == [[0, 2, 4, 5], [2, 0, 5, 5]]
    assert batch.x.tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert batch.rows.tolist() == [1, 4]
    assert batch.y.tolist() == [1, 4]
    assert loaders.valid[0].rows.tolist() == [2, 5]
    assert loaders.test[0].rows.tolist() == [0, 3]
    both = Texas(undirected=True, data_dir=folder).loaders(0, 1).test[0].graph
    assert both.edge_index.tolist() == [[0, 2, 4, 5, 5], [2, 0, 5, 4, 5]]
    back = Texas(reverse=True, data_dir=folder).loaders(0, 1).test[0].graph
    assert sorted(back.edge_index.t().tolist()) == [[0, 2], [2, 0], [5, 4], [5, 5]]


def test_old_cornell_has_words_and_classes_of_texas(graph_data):
    parts = []
    for kind, archive in ((Texas, "geom_texas"), (CornellOld, "geom_cornell_old")):
        loaders = kind(data_dir=graph_data(archive)).loaders(0, 1)
        parts.append((loaders.test[0].x, loaders.train(0)[0]))
    assert torch.equal(parts[0][0], parts[1][0])
    corrected = load_arrays(Cornell.archive, graph_data("geom_cornell"))
    assert np.bincount(corrected["y"]).tolist() == [38, 16, 30, 82, 17]


def test_errors(tmp_path):
    with pytest.raises(
        FileNotFoundError,
        match=r"geom_cornell.npz must exist; got no such file, .*ANHARMONIC_DATA .* holds graph/",
    ):
        Cornell(data_dir=tmp_path).splits()
