import numpy as np
import pytest
import torch

from anharmonic.data.sources import load_arrays
from anharmonic_papers.tasks.graphs.molecules import ZincRebuilt


def test_molecules_by_hand(tiny_archive):
    """A chain of three atoms and a single atom, in every part."""
    one = {
        "num_nodes": np.array([3, 1], np.uint8),
        "num_bonds": np.array([2, 0], np.uint8),
        "atom_type": np.array([0, 27, 2, 5], np.uint8),
        "bonds": np.array([[0, 1], [1, 2]], np.uint8),
        "y": np.array([0.5, -1.5], np.float32),
    }
    arrays = {f"{part}_{k}": v for part in ("train", "val", "test") for k, v in one.items()}
    folder = tiny_archive(ZincRebuilt, arrays)
    batch = ZincRebuilt(data_dir=folder).loaders(0, 2).test[0]
    assert batch.graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert batch.x.argmax(1).tolist() == [0, 27, 2, 5]
    assert batch.x.sum(1).tolist() == [1, 1, 1, 1]
    assert batch.membership.tolist() == [0, 0, 0, 1]
    assert batch.y.tolist() == [[0.5], [-1.5]]
    assert batch.rows is None and batch.num_graphs == 2
    numbers = ZincRebuilt("number", data_dir=folder).loaders(0, 2).test[0]
    assert numbers.x.tolist() == [[0], [27], [2], [5]]
    assert numbers.x.dtype == torch.float32


def test_real_molecules(graph_data):
    folder = graph_data("zinc_12k_rebuilt")
    task = ZincRebuilt(data_dir=folder)
    loaders = task.loaders(0, 128)
    assert [
        sum(b.num_graphs for b in part) for part in (loaders.train(0), loaders.valid, loaders.test)
    ] == [10000, 1000, 1000]
    statistics = ((23.16, 49.82), (23.08, 49.69), (23.12, 49.72))
    for part, (nodes, edges) in zip(task.splits(), statistics, strict=True):
        whole = part.take(torch.arange(len(part)))
        assert whole.graph.num_nodes / len(part) == pytest.approx(nodes, abs=0.006)
        assert whole.graph.num_edges / len(part) == pytest.approx(edges, abs=0.006)
    arrays = load_arrays(ZincRebuilt.archive, folder)
    smiles = [
        set(bytes(arrays[f"{part}_smiles"]).split(b"\n")) for part in ("train", "val", "test")
    ]
    assert not smiles[0] & smiles[1] and not smiles[0] & smiles[2] and not smiles[1] & smiles[2]
    assert len(arrays["atom_vocab"]) == 28
