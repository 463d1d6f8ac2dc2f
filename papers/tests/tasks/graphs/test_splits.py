import numpy as np

from anharmonic.data import seeded_rng
from anharmonic_papers.tasks.graphs.splits import half_split, half_split_sizes


def test_random_halves_leave_out_unknown_nodes():
    known = np.random.default_rng(0).integers(0, 4, 3000) > 0
    rows = half_split(known, seeded_rng("x", 0))
    assert sorted(np.concatenate(rows)) == np.flatnonzero(known).tolist()
    sizes = half_split_sizes(int(known.sum()))
    assert [len(part) for part in rows] == list(sizes.values())
    assert sizes["train"] == known.sum() // 2
