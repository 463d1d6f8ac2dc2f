import numpy as np
import pytest

from anharmonic.data.splits import split_indices


@pytest.mark.parametrize("labelled", [False, True])
def test_parts_are_disjoint_and_of_their_size(labelled: bool) -> None:
    labels = np.arange(103) % 7 if labelled else None
    parts = split_indices(103, [60, 20, 23], np.random.default_rng(0), labels)
    assert [len(part) for part in parts] == [60, 20, 23]
    assert sorted(np.concatenate(parts).tolist()) == list(range(103))


def test_every_class_has_its_share() -> None:
    labels = np.repeat([0, 1, 2], [200, 100, 20])
    parts = split_indices(320, [224, 48, 48], np.random.default_rng(1), labels)
    for part, share in zip(parts, (0.7, 0.15, 0.15), strict=True):
        counts = np.bincount(labels[part], minlength=3)
        assert (np.abs(counts - share * np.array([200, 100, 20])) <= 1).all()


def test_a_class_of_one_is_in_the_first_part() -> None:
    labels = np.array([0] * 30 + [1])
    for seed in range(5):
        parts = split_indices(31, [21, 5, 5], np.random.default_rng(seed), labels)
        assert 30 in parts[0]


def test_the_seed_decides() -> None:
    def one(seed: int) -> list[int]:
        return split_indices(50, [10], np.random.default_rng(seed))[0].tolist()

    assert one(0) == one(0)
    assert one(0) != one(1)


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"at most 5 samples together; got \[4, 2\]; make"):
        split_indices(5, [4, 2], np.random.default_rng(0))
