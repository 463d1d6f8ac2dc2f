from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from anharmonic.data.parts import Cut, cut_parts, warn_of_absent_classes
from anharmonic.data.sequences import Sequences


def numbered(count: int, first: int = 0, **known: Any) -> Sequences:
    """Sequences of one step that say which they are; two classes in turn."""
    x = np.arange(first, first + count, dtype=np.float32)[:, None]
    y = np.arange(first, first + count) % 2
    return Sequences("here", x, np.arange(count + 1), y, **known)


def rows(part: Sequences) -> list[int]:
    return [int(number) for number in part.x[:, 0]]


def sizes(made: dict[str, Sequences]) -> dict[str, int]:
    return {name: len(part) for name, part in made.items()}


NAMES = ("even", "odd")


@pytest.mark.covering
@pytest.mark.parametrize("by", ["random", "groups", "time"])
@pytest.mark.parametrize("more", [{"valid_share": 0.0}, {"valid_share": 0.4}, {"folds": 4}])
def test_test_part_does_not_depend_on_validation(by: str, more: dict[str, Any]) -> None:
    whole = numbered(100, groups=np.arange(100) // 5)
    if by == "time" and "folds" in more:
        return
    usual = cut_parts({"all": whole}, Cut(by), NAMES)
    made = cut_parts({"all": whole}, Cut(by, **more), NAMES)
    assert set(rows(made["test"])) == set(rows(usual["test"]))
    everything = [row for part in made.values() for row in rows(part)]
    assert sorted(everything) == list(range(100))
    assert ("valid" in made) is (more.get("valid_share") != 0.0)


def test_no_group_is_in_two_parts() -> None:
    rng = np.random.default_rng(0)
    groups = rng.choice(["ann", "bob", "cid", "dan", "eve", "fay", "gil", "hal"], 400)
    for seed in range(5):
        made = cut_parts({"all": numbered(400, groups=groups)}, Cut(seed=seed), NAMES)
        held = [set(np.asarray(part.groups).tolist()) for part in made.values()]
        assert sum(len(names) for names in held) == 8
        assert len(set.union(*held)) == 8
        assert 0.5 * 400 <= len(made["train"]) <= 0.85 * 400
        for part in made.values():
            assert 0.35 < np.mean(part.y) < 0.65


def test_folds_are_all_but_the_test_part_once() -> None:
    for known in ({}, {"groups": np.arange(60) // 4}):
        made = [
            cut_parts({"all": numbered(60, **known)}, Cut(folds=3, fold=i), NAMES) for i in range(3)
        ]
        assert len({tuple(sorted(rows(m["test"]))) for m in made}) == 1
        valid = [row for m in made for row in rows(m["valid"])]
        assert sorted(valid + rows(made[0]["test"])) == list(range(60))
        for m in made:
            assert not set(rows(m["train"])) & set(rows(m["valid"]))
            assert len(m["train"]) + len(m["valid"]) + len(m["test"]) == 60
            if known:
                assert not set(m["train"].groups) & set(m["valid"].groups)  # type: ignore[arg-type]
            else:
                assert abs(2 * int(np.sum(m["valid"].y)) - len(m["valid"])) <= 1


def test_the_latest_sequences_test() -> None:
    times = np.random.default_rng(0).permutation(20)
    made = cut_parts({"all": numbered(20, times=times)}, Cut("time"), NAMES)
    assert sizes(made) == {"train": 14, "valid": 3, "test": 3}
    ends = [np.asarray(made[name].times) for name in ("train", "valid", "test")]
    assert ends[0].max() < ends[1].min() and ends[1].max() < ends[2].min()
    assert rows(cut_parts({"all": numbered(20)}, Cut("time"), NAMES)["test"]) == [17, 18, 19]


def test_named_groups_test() -> None:
    whole = numbered(30, groups=np.arange(30) % 6)
    made = cut_parts({"all": whole}, Cut(test_groups=("2", "5")), NAMES)
    assert set(np.asarray(made["test"].groups).tolist()) == {2, 5}
    assert not set(made["train"].groups) & set(made["valid"].groups)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a group of test_groups in here must be one of '0', '1'"):
        cut_parts({"all": whole}, Cut(test_groups=("9",)), NAMES)
    with pytest.raises(ValueError, match=r"test_groups must be some of the groups; got .*leave"):
        cut_parts({"all": whole}, Cut(test_groups=tuple("012345")), NAMES)
    with pytest.raises(ValueError, match="here must hold groups for test_groups; got none; store"):
        cut_parts({"all": numbered(9)}, Cut(test_groups=("1",)), NAMES)


def test_the_parts_of_the_file() -> None:
    own = {"train": numbered(20), "valid": numbered(4, 20), "test": numbered(6, 24)}
    assert sizes(cut_parts(own, Cut(), NAMES)) == {"train": 20, "valid": 4, "test": 6}
    assert sizes(cut_parts(own, Cut(valid_share=0.0), NAMES)) == {"train": 24, "test": 6}
    again = cut_parts(own, Cut(valid_share=0.5), NAMES)
    assert sizes(again) == {"train": 12, "valid": 12, "test": 6}
    assert sizes(cut_parts(own, Cut(folds=3), NAMES)) == {"train": 16, "valid": 8, "test": 6}
    with pytest.raises(ValueError, match="test_groups for here must be empty"):
        cut_parts(own, Cut(test_groups=("a",)), NAMES)


def test_errors() -> None:
    with pytest.raises(
        ValueError, match=r"number of groups in here must be at least 3.* got 2; add"
    ):
        cut_parts({"all": numbered(20, groups=np.arange(20) % 2)}, Cut(), NAMES)
    with pytest.raises(ValueError, match=r"groups in here must be known .*; got None; store"):
        cut_parts({"all": numbered(20)}, Cut("groups"), NAMES)
    with pytest.raises(ValueError, match="folds must be None with split='time'"):
        cut_parts({"all": numbered(20)}, Cut("time", folds=3), NAMES)
    with pytest.raises(ValueError, match="sequences not to train on in here must be less"):
        cut_parts({"all": numbered(20)}, Cut(valid_share=0.9), NAMES)
    for wrong, text in (
        ({"by": "date"}, "split must be one of"),
        ({"valid_share": 1.0}, "valid_share must be .* in .0, 1."),
        ({"folds": 1}, "folds must be at least 2"),
        ({"folds": 3, "fold": 3}, "fold must be below folds=3"),
        ({"fold": 1}, "fold must be 0 without folds"),
        ({"folds": 3, "valid_share": 0.1}, "valid_share must be None with folds"),
    ):
        with pytest.raises(ValueError, match=text):
            Cut(**wrong)  # type: ignore[arg-type]


def test_classes_that_training_lacks_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="every class in here .* none of third; split"):
        warn_of_absent_classes(numbered(4), ("even", "odd", "third"))


def test_blocks_of_one_recording_are_split_by_time() -> None:
    lengths = np.array([4, 3, 4, 5, 3, 4, 4, 3, 4, 5])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    y = np.array(["a", "b"] * 5)
    blocks = Sequences(
        "here", np.zeros((offsets[-1], 1), np.float32), offsets, y, times=offsets[:-1] * 0.5,
        interval=0.5,
    )  # fmt: skip
    assert Cut().way(blocks) == "time"
    assert Cut().describe(blocks) == "by time, as sequences are parts of one recording"
    made = cut_parts({"all": blocks}, Cut(), ())
    assert max(made["train"].times) < min(made["valid"].times) < min(made["test"].times)
    assert Cut("random").way(blocks) == "random"
    dates = np.datetime64("2024-01-01", "ns") + np.round(blocks.times * 1e9).astype("m8[ns]")
    assert Cut().way(replace(blocks, times=dates)) == "time"
    assert Cut().way(replace(blocks, groups=y)) == "groups"
    # Recordings that begin anew, or with breaks between, are apart.
    assert Cut().way(replace(blocks, times=blocks.times * 3)) == "random"
    assert Cut().way(replace(blocks, times=np.zeros(10))) == "random"
    assert Cut().way(replace(blocks, interval=None)) == "random"
