from dataclasses import replace

import numpy as np
import pytest

from anharmonic.data import DataOptions
from anharmonic.data.parts import cut_parts, describe_split, split_way, warn_of_absent_classes
from anharmonic.data.sequences import Sequences

Parts = dict[str, Sequences]


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


def test_no_group_is_in_two_parts():
    groups = np.random.default_rng(0).choice([*"abcdefgh"], 400)
    for seed in range(3):
        made = cut(numbered(400, groups=groups), split_seed=seed)
        held = [groups_of(part) for part in made.values()]
        assert sum(map(len, held)) == len(set.union(*held)) == 8
        assert 0.5 * 400 <= len(made["train"]) <= 0.85 * 400
        assert all(0.35 < np.mean(part.y) < 0.65 for part in made.values())


@pytest.mark.parametrize("known", [{}, {"groups": np.arange(60) // 6}])
def test_folds_are_all_but_the_test_part_once(known):
    made = [cut(numbered(60, **known), folds=3, fold=fold) for fold in range(3)]
    assert len({tuple(sorted(rows(m["test"]))) for m in made}) == 1
    valid = [row for m in made for row in rows(m["valid"])]
    assert sorted(valid + rows(made[0]["test"])) == list(range(60))
    for m in made:
        assert not set(rows(m["train"])) & set(rows(m["valid"])) and sum(sizes(m).values()) == 60
        if known:
            assert not groups_of(m["train"]) & groups_of(m["valid"])
        else:
            assert abs(2 * int(np.sum(m["valid"].y)) - len(m["valid"])) <= 1


def test_the_latest_sequences_test():
    times = np.random.default_rng(0).permutation(20)
    made = cut(numbered(20, times=times), "time")
    assert sizes(made) == {"train": 14, "valid": 3, "test": 3}
    train, valid, test = (np.asarray(made[name].times) for name in ("train", "valid", "test"))
    assert train.max() < valid.min() and valid.max() < test.min()
    assert rows(cut(numbered(20), "time")["test"]) == [17, 18, 19]


def test_named_groups_test():
    made = cut(numbered(30, groups=np.arange(30) % 6), test_groups=("2", "5"))
    assert groups_of(made["test"]) == {2, 5}
    assert not groups_of(made["train"]) & groups_of(made["valid"])


def test_the_parts_of_the_file():
    own = {"train": numbered(20), "valid": numbered(4, 20), "test": numbered(6, 24)}
    assert sizes(cut(own)) == {"train": 20, "valid": 4, "test": 6}
    assert sizes(cut(own, valid_share=0.0)) == {"train": 24, "test": 6}
    assert sizes(cut(own, valid_share=0.5)) == {"train": 12, "valid": 12, "test": 6}
    assert sizes(cut(own, folds=3)) == {"train": 16, "valid": 8, "test": 6}
    with pytest.raises(ValueError, match="test_groups for here must be empty"):
        cut(own, test_groups=("a",))


SIX, TWO = {"groups": np.arange(30) % 6}, {"groups": np.arange(30) % 2}


@pytest.mark.parametrize(
    ("known", "options", "text"),
    [
        (SIX, {"test_groups": ("9",)}, "a group of test_groups in here must be one of '0', '1'"),
        (SIX, {"test_groups": tuple("012345")}, r"must be some of the groups; got .*leave"),
        ({}, {"test_groups": ("1",)}, "here must hold groups for test_groups; got none; store"),
        (TWO, {}, r"number of groups in here must be at least 3.* got 2; add"),
        ({}, {"split": "groups"}, r"groups in here must be known .*; got None; store"),
        ({}, {"split": "time", "folds": 3}, "folds must be None with split='time'"),
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
        cut(numbered(30, **known), **options)


def test_classes_that_training_lacks_are_warned_of():
    with pytest.warns(UserWarning, match="every class in here .* none of third; split"):
        warn_of_absent_classes(numbered(4), ("even", "odd", "third"))


def test_blocks_of_one_recording_are_split_by_time():
    offsets = np.cumsum([0, 4, 3, 4, 5, 3, 4, 4, 3, 4, 5])
    x, y, times = np.zeros((offsets[-1], 1), np.float32), np.tile(["a", "b"], 5), offsets[:-1] * 0.5
    blocks = Sequences("here", x, offsets, y, times=times, interval=0.5)
    assert split_way(DataOptions(), blocks) == "time"
    assert (
        describe_split(DataOptions(), blocks) == "by time, as sequences are parts of one recording"
    )
    made = cut_parts({"all": blocks}, DataOptions(), ())
    assert max(made["train"].times) < min(made["valid"].times) < min(made["test"].times)
    assert split_way(DataOptions(split="random"), blocks) == "random"
    dates = np.datetime64("2024-01-01", "ns") + np.round(times * 1e9).astype("m8[ns]")
    assert split_way(DataOptions(), replace(blocks, times=dates)) == "time"
    assert split_way(DataOptions(), replace(blocks, groups=y)) == "groups"
    # Recordings that begin anew, or with breaks between, are apart.
    for apart in ({"times": times * 3}, {"times": np.zeros(10)}, {"interval": None}):
        assert split_way(DataOptions(), replace(blocks, **apart)) == "random"
