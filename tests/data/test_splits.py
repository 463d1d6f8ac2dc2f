import numpy as np
import pytest

from anharmonic.data.parts import split_groups, split_indices

SPLIT = [[7, 1, 2, 3, 8, 0], [6, 4], [5, 9]]
GROUPS = [[6, 3, 5, 7, 4, 2], [1, 0], [9, 8]]


@pytest.mark.parametrize("labelled", [False, True])
def test_parts_are_disjoint_and_of_their_size(labelled):
    labels = np.arange(103) % 7 if labelled else None
    parts = split_indices(103, [60, 20, 23], np.random.default_rng(0), labels)
    assert [len(part) for part in parts] == [60, 20, 23]
    assert sorted(np.concatenate(parts).tolist()) == list(range(103))


def test_every_class_has_its_share():
    labels = np.repeat([0, 1, 2], [200, 100, 20])
    parts = split_indices(320, [224, 48, 48], np.random.default_rng(1), labels)
    for part, share in zip(parts, (0.7, 0.15, 0.15), strict=True):
        counts = np.bincount(labels[part], minlength=3)
        assert (np.abs(counts - share * np.array([200, 100, 20])) <= 1).all()


def test_a_class_of_one_is_in_the_first_part():
    labels = np.array([0] * 30 + [1])
    for seed in range(5):
        assert 30 in split_indices(31, [21, 5, 5], np.random.default_rng(seed), labels)[0]


def test_groups_stay_whole_and_parts_near_their_sizes():
    rng = np.random.default_rng(1)
    groups, labels = rng.integers(0, 40, 1000), rng.integers(0, 3, 1000)
    sizes = [700, 150, 150]
    parts = split_groups(groups, sizes, rng, labels)
    assert sorted(np.concatenate(parts).tolist()) == list(range(1000))
    assert [len(part) for part in parts] == pytest.approx(sizes, abs=29)
    held = [set(groups[part].tolist()) for part in parts]
    assert sum(map(len, held)) == len(set.union(*held))
    for part in parts:
        np.testing.assert_allclose(np.bincount(labels[part]) / len(part), 1 / 3, atol=0.1)


def test_every_part_gets_a_group():
    groups = np.repeat([0, 1, 2, 3], [97, 1, 1, 1])
    for seed in range(5):
        parts = split_groups(groups, [70, 15, 15], np.random.default_rng(seed))
        assert min(len(part) for part in parts) > 0
    with pytest.raises(ValueError, match=r"at most 5 samples together; got \[4, 2\]; make"):
        split_indices(5, [4, 2], np.random.default_rng(0))


def test_parts_are_those_of_all_versions():
    """A seed names its split for good: results of other versions are of the same parts."""
    rng = np.random.default_rng(7)
    labels = np.repeat([0, 1], [6, 4])
    assert [part.tolist() for part in split_indices(10, [6, 2, 2], rng, labels)] == SPLIT
    groups = np.repeat([0, 1, 2, 3, 4], 2)
    parts = split_groups(groups, [6, 2, 2], np.random.default_rng(7))
    assert [part.tolist() for part in parts] == GROUPS


def test_parts_are_in_random_order():
    labels = np.repeat([0, 1], 500)
    parts = split_indices(1000, [600, 400], np.random.default_rng(0), labels)
    for part in parts:
        assert 0.4 < labels[part[: len(part) // 2]].mean() < 0.6
        assert abs(np.corrcoef(part, np.arange(len(part)))[0, 1]) < 0.1
