import numpy as np
import pytest
import torch

from anharmonic.data.base import seeded_rng
from anharmonic.data.graphs.cora import Cora, random_split


def hand_made():
    """A ring of 1700 nodes and a pair, two classes; node 5 has neither words nor class."""
    nodes, ring = np.arange(1702), np.arange(1700)
    one_way = np.stack([np.append(ring, 1700), np.append((ring + 1) % 1700, 1701)])
    x = np.eye(3, dtype=np.float32)[nodes % 3]
    x[5] = 0
    masks = {f"public_{k}_mask": nodes == i for i, k in enumerate(("train", "val", "test"))}
    return {
        "edge_index": np.concatenate([one_way, one_way[::-1]], 1).astype(np.int32),
        "y": (nodes % 2).astype(np.uint8),
        "x": x,
        "lcc_mask": nodes < 1700,
        "unlabelled_nodes": np.array([5], np.int32),
        **masks,
    }


def test_public_split_is_of_the_whole_graph_random_ones_of_its_largest_component(tiny_archive):
    folder, rows = tiny_archive(Cora, hand_made()), []
    loaders = Cora(data_dir=folder).loaders(0, 1)
    public = [loaders.train(0)[0], loaders.valid[0], loaders.test[0]]
    assert public[0].graph.num_nodes == 1702
    assert [part.rows.tolist() for part in public] == [[0], [1], [2]]
    for number in (0, 1):
        loaders = Cora("random", number, data_dir=folder).loaders(0, 1)
        parts = [loaders.train(0)[0], loaders.valid[0], loaders.test[0]]
        assert parts[0].graph.num_nodes == 1700 and parts[0].graph.num_edges == 3400
        assert [len(part.rows) for part in parts] == [40, 1460, 199]
        assert torch.bincount(parts[0].y).tolist() == [20, 20]
        together = torch.cat([part.rows for part in parts])
        assert sorted(together.tolist()) == [i for i in range(1700) if i != 5]
        rows.append(parts[0].rows)
    assert not torch.equal(*rows)
    again = Cora("random", 0, data_dir=folder).loaders(3, 8).train(2)[0]  # of another run
    assert torch.equal(again.rows, rows[0])


Y = np.arange(3000) % 4
RARE = np.where(np.arange(3000) < 10, 5, Y)


def drawn(y):
    return random_split(y, y >= 0, seeded_rng("x", 0))


@pytest.mark.parametrize(
    ("error", "call", "said"),
    [
        (ValueError, lambda: Cora("randm"), "split must be one of 'public', 'random'; got 'randm'"),
        (ValueError, lambda: Cora(split_number=3), r"must be 0 for split='public'; got 3; pass"),
        (ValueError, lambda: Cora("random", -1), "split_number must be an int"),
        (TypeError, lambda: Cora(normalise_features=1), "normalise_features must be True or False"),
        (ValueError, lambda: drawn(Y[:1500]), r"1500 nodes, 20 of every .*; got '1500 n"),
        (ValueError, lambda: drawn(RARE), r"got '3000 nodes, as few as . of a class'; use another"),
    ],
)
def test_what_cannot_be_split_is_refused(error, call, said):
    with pytest.raises(error, match=said):
        call()
