import numpy as np
import torch

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


def test_real_molecules_are_as_many_as_stated(graph_data):
    task = ZincRebuilt(data_dir=graph_data("zinc_12k_rebuilt"))
    sizes = [len(part) for part in task.splits()]
    assert sizes == list(task.sizes.values()) == [10000, 1000, 1000]
