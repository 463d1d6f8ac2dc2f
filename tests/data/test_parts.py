"""Parts of data: sizes, classes, groups, folds and time."""

from dataclasses import replace

import numpy as np
import pytest

from anharmonic.data import DataOptions
from anharmonic.data.parts import (
    cut_parts,
    describe_split,
    split_groups,
    split_indices,
    split_way,
    warn_of_absent_classes,
    warn_of_one_class,
)
from anharmonic.data.sequences import Sequences


def numbered(count, first=0, **known):
    """Sequences of one step that say which they are; two classes in turn."""
    x = np.arange(first, first + count, dtype=np.float32)[:, None]
    y = np.arange(first, first + count) % 2
    return Sequences("here", x, np.arange(count + 1), y, **known)


def cut(whole, split="auto", **options):
    parts = {"all": whole} if isinstance(whole, Sequences) else whole
    return cut_parts(parts, DataOptions(split=split, **options), ("even", "odd"))


def rows(part):
    return [int(number) for number in part.x[:, 0]]


def sizes(made):
    return {name: len(part) for name, part in made.items()}


def groups_of(part):
    return set(np.asarray(part.groups).tolist())


def test_every_class_has_its_share_in_random_order():
    labels = np.repeat([0, 1, 2], [200, 100, 20])
    parts = split_indices(320, [224, 48, 48], np.random.default_rng(1), labels)
    assert sorted(np.concatenate(parts).tolist()) == list(range(320))
    for part, share in zip(parts, (0.7, 0.15, 0.15), strict=True):
        counts = np.bincount(labels[part], minlength=3)
        assert (np.abs(counts - share * np.array([200, 100, 20])) <= 1).all()
    assert abs(np.corrcoef(parts[0], np.arange(224))[0, 1]) < 0.15
    unlabelled = split_indices(103, [60, 20, 23], np.random.default_rng(0))
    assert [len(part) for part in unlabelled] == [60, 20, 23]
    with pytest.raises(ValueError, match=r"at most 5 samples together; got \[4, 2\]; make"):
        split_indices(5, [4, 2], np.random.default_rng(0))


def test_groups_stay_whole_and_parts_near_their_sizes():
    rng = np.random.default_rng(1)
    groups, labels = rng.integers(0, 40, 1000), rng.integers(0, 3, 1000)
    parts = split_groups(groups, [700, 150, 150], rng, labels)
    assert sorted(np.concatenate(parts).tolist()) == list(range(1000))
    assert [len(part) for part in parts] == pytest.approx([700, 150, 150], abs=29)
    held = [set(groups[part].tolist()) for part in parts]
    assert sum(map(len, held)) == len(set.union(*held))
    for part in parts:
        np.testing.assert_allclose(np.bincount(labels[part]) / len(part), 1 / 3, atol=0.1)


def test_a_class_of_one_is_in_the_first_part_and_every_part_gets_a_group():
    labels, groups = np.array([0] * 30 + [1]), np.repeat([0, 1, 2, 3], [97, 1, 1, 1])
    for rng in map(np.random.default_rng, range(5)):
        assert 30 in split_indices(31, [21, 5, 5], rng, labels)[0]
        assert min(map(len, split_groups(groups, [70, 15, 15], rng))) > 0


def test_parts_are_those_of_all_versions():
    """A seed names its split for good: results of other versions are of the same parts."""
    rng = np.random.default_rng(7)
    parts = split_indices(10, [6, 2, 2], rng, np.repeat([0, 1], [6, 4]))
    assert [part.tolist() for part in parts] == [[7, 1, 2, 3, 8, 0], [6, 4], [5, 9]]
    groups = np.repeat([0, 1, 2, 3, 4], 2)
    parts = split_groups(groups, [6, 2, 2], np.random.default_rng(7))
    assert [part.tolist() for part in parts] == [[6, 3, 5, 7, 4, 2], [1, 0], [9, 8]]


@pytest.mark.parametrize(
    ("by", "more"),
    [("random", {"folds": 4}), ("groups", {"valid_share": 0.4}), ("time", {"valid_share": 0.0})],
)
def test_test_part_does_not_depend_on_validation(by, more):
    whole = numbered(100, groups=np.arange(100) // 10)
    made = cut(whole, by, **more)
    assert set(rows(made["test"])) == set(rows(cut(whole, by)["test"]))
    assert sorted(row for part in made.values() for row in rows(part)) == list(range(100))
    assert ("valid" in made) is (more.get("valid_share") != 0.0)


@pytest.mark.parametrize("known", [{}, {"groups": np.arange(60) // 6}])
def test_folds_are_all_but_the_test_part_once(known):
    made = [cut(numbered(60, **known), folds=3, fold=fold) for fold in range(3)]
    assert len({tuple(sorted(rows(m["test"]))) for m in made}) == 1
    valid = [row for m in made for row in rows(m["valid"])]
    assert sorted(valid + rows(made[0]["test"])) == list(range(60))
    for m in made:
        assert sorted(row for part in m.values() for row in rows(part)) == list(range(60))
        if known:
            assert not groups_of(m["train"]) & groups_of(m["valid"])
        else:
            assert abs(2 * int(np.sum(m["valid"].y)) - len(m["valid"])) <= 1


def test_the_latest_sequences_and_named_groups_test():
    times = np.random.default_rng(0).permutation(20)
    made = cut(numbered(20, times=times), "time")
    assert sizes(made) == {"train": 14, "valid": 3, "test": 3}
    train, valid, test = (np.asarray(made[name].times) for name in ("train", "valid", "test"))
    assert train.max() < valid.min() and valid.max() < test.min()
    assert rows(cut(numbered(20), "time")["test"]) == [17, 18, 19]
    made = cut(numbered(30, **SIX), test_groups=("2", "5"))
    assert groups_of(made["test"]) == {2, 5}
    assert not groups_of(made["train"]) & groups_of(made["valid"])


SIX, TWO = {"groups": np.arange(30) % 6}, {"groups": np.arange(30) % 2}
OWN = {"train": numbered(20), "valid": numbered(4, 20), "test": numbered(6, 24)}


def test_the_parts_of_the_file():
    assert sizes(cut(OWN)) == {"train": 20, "valid": 4, "test": 6}
    assert sizes(cut(OWN, valid_share=0.0)) == {"train": 24, "test": 6}
    assert sizes(cut(OWN, valid_share=0.5)) == {"train": 12, "valid": 12, "test": 6}
    assert sizes(cut(OWN, folds=3)) == {"train": 16, "valid": 8, "test": 6}


@pytest.mark.parametrize(
    ("known", "options", "text"),
    [
        (OWN, {"test_groups": ("a",)}, "test_groups for here must be empty"),
        (SIX, {"test_groups": ("9",)}, "a group of test_groups in here must be one of '0', '1'"),
        (SIX, {"test_groups": tuple("012345")}, r"must be some of the groups; got .*leave"),
        ({}, {"test_groups": ("1",)}, "here must hold groups for test_groups; got none; store"),
        (TWO, {}, r"number of groups in here must be at least 3.* got 2; add"),
        ({}, {"split": "groups"}, r"groups in here must be known .*; got None; store"),
        ({}, {"split": "time", "folds": 3}, "--folds .folds. must be None with --split time"),
        ({}, {"valid_share": 0.9}, "sequences not to train on in here must be less"),
        ({}, {"split": "date"}, "split must be one of"),
        ({}, {"valid_share": 1.0}, "valid_share must be .* in .0, 1."),
        ({}, {"folds": 1}, "folds must be at least 2"),
        ({}, {"folds": 3, "fold": 3}, "fold must be below folds=3"),
        ({}, {"fold": 1}, "fold must be 0 without folds"),
        ({}, {"folds": 3, "valid_share": 0.1}, "valid_share must be None with folds"),
    ],
)
def test_errors(known, options, text):
    with pytest.raises(ValueError, match=text):
        cut(OWN if known is OWN else numbered(30, **known), **options)


def test_classes_that_training_or_the_test_part_lacks_are_warned_of(recwarn):
    warn_of_one_class(numbered(20), ("even", "odd"))
    same = replace(numbered(20), y=np.zeros(20, np.int64))
    warn_of_one_class(same.select(np.arange(9)), ("even", "odd"))
    assert not recwarn.list
    with pytest.warns(UserWarning, match="test part of here must .* several classes; got only 'ev"):
        warn_of_one_class(same, ("even", "odd"))
    with pytest.warns(UserWarning, match="every class in here .* none of third; split"):
        warn_of_absent_classes(numbered(4), ("even", "odd", "third"))


def test_blocks_of_one_recording_are_split_by_time():
    offsets = np.cumsum([0, 4, 3, 4, 5, 3, 4, 4, 3, 4, 5])
    x, y, times = np.zeros((offsets[-1], 1), np.float32), np.tile(["a", "b"], 5), offsets[:-1] * 0.5
    blocks = Sequences("here", x, offsets, y, times=times, interval=0.5)
    said = describe_split(DataOptions(), blocks)
    assert said == "by time, as sequences are parts of one recording"
    made = cut_parts({"all": blocks}, DataOptions(), ())
    assert max(made["train"].times) < min(made["valid"].times) < min(made["test"].times)
    dates = np.datetime64("2024-01-01", "ns") + np.round(times * 1e9).astype("m8[ns]")
    for known, split, way in (
        ({}, "auto", "time"),
        ({}, "random", "random"),
        ({"times": dates}, "auto", "time"),
        ({"groups": y}, "auto", "groups"),
        # Recordings that begin anew, or with breaks between, are apart.
        ({"times": times * 3}, "auto", "random"),
        ({"times": np.zeros(10)}, "auto", "random"),
        ({"interval": None}, "auto", "random"),
    ):
        assert split_way(DataOptions(split=split), replace(blocks, **known)) == way
