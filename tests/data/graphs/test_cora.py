import numpy as np
import pytest
import torch

from anharmonic.data.base import seeded_rng
from anharmonic.data.graphs.cora import Cora, random_split

Y = np.random.default_rng(0).integers(0, 4, 3000)


def test_random_split():
    known = np.arange(3000) % 100 > 0
    rows = random_split(Y, known, seeded_rng("x", 0))
    assert np.bincount(Y[rows.train]).tolist() == [20] * 4
    assert [len(part) for part in rows] == [80, 1420, 2970 - 1500]
    together = np.concatenate(rows)
    assert sorted(together) == np.flatnonzero(known).tolist(), "disjoint, without unknown nodes"
    again, other = (random_split(Y, known, seeded_rng("x", seed)) for seed in (0, 1))
    assert all((a == b).all() for a, b in zip(rows, again, strict=True))
    assert not (rows.train == other.train).all()


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


def test_public_split_is_the_whole_graph(tiny_archive):
    loaders = Cora(data_dir=tiny_archive(Cora, hand_made())).loaders(0, 1)
    parts = loaders.train(0)[0], loaders.valid[0], loaders.test[0]
    assert parts[0].graph.num_nodes == 1702
    assert [part.rows.tolist() for part in parts] == [[0], [1], [2]]


def test_random_split_is_drawn_on_the_largest_component(tiny_archive):
    folder = tiny_archive(Cora, hand_made())
    rows = []
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
    again = Cora("random", 0, data_dir=folder).loaders(3, 8).train(2)[0]
    assert torch.equal(again.rows, rows[0]), "the split does not depend on the seed of the run"


def test_errors():
    with pytest.raises(ValueError, match="split must be one of 'public', 'random'; got 'randm'"):
        Cora("randm")
    with pytest.raises(ValueError, match=r"split_number must be 0 for split='public'; got 3; pass"):
        Cora(split_number=3)
    with pytest.raises(ValueError, match="split_number must be an int"):
        Cora("random", -1)
    with pytest.raises(TypeError, match="normalise_features must be True or False"):
        Cora(normalise_features=1)
    with pytest.raises(
        ValueError, match=r"split must be .*1500 nodes, 20 of every .*; got '1500 n"
    ):
        random_split(Y[:1500], Y[:1500] >= 0, seeded_rng("x", 0))
    rare = np.where(np.arange(3000) < 10, 5, Y)
    with pytest.raises(ValueError, match=r"got '3000 nodes, as few as . of a class'; use another"):
        random_split(rare, rare >= 0, seeded_rng("x", 0))
