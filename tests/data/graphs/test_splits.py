import numpy as np
import pytest

from anharmonic.data.base import seeded_rng
from anharmonic.data.graphs.splits import per_class, share_sizes, shares

Y = np.random.default_rng(0).integers(0, 4, 3000)


def test_random_split_of_citations() -> None:
    known = np.arange(3000) % 100 > 0
    rows = per_class(Y, known, seeded_rng("x", 0))
    assert np.bincount(Y[rows.train]).tolist() == [20] * 4
    assert [len(part) for part in rows] == [80, 1420, 2970 - 1500]
    together = np.concatenate(rows)
    assert sorted(together) == np.flatnonzero(known).tolist(), "disjoint, without unknown nodes"
    again, other = per_class(Y, known, seeded_rng("x", 0)), per_class(Y, known, seeded_rng("x", 1))
    assert all((a == b).all() for a, b in zip(rows, again, strict=True))
    assert not (rows.train == other.train).all()


def test_random_shares_leave_out_unknown_nodes() -> None:
    known = Y > 0
    rows = shares(known, seeded_rng("x", 0))
    assert sorted(np.concatenate(rows)) == np.flatnonzero(known).tolist()
    sizes = share_sizes(int(known.sum()))
    assert [len(part) for part in rows] == list(sizes.values())
    assert sizes["train"] == known.sum() // 2


def test_errors() -> None:
    with pytest.raises(ValueError, match="the split needs 20 nodes of every class among 1500"):
        per_class(Y[:1500], Y[:1500] >= 0, seeded_rng("x", 0))
    rare = np.where(np.arange(3000) < 10, 5, Y)
    with pytest.raises(ValueError, match=r"got 3000 nodes, as few as . of a class; use another"):
        per_class(rare, rare >= 0, seeded_rng("x", 0))
