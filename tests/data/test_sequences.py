from typing import Any

import numpy as np
import pytest
import torch

from anharmonic.data.sequences import Preprocessing, Sequences, check_finite


def make(x: object, offsets: object, y: object = None, per_step: bool = False) -> Sequences:
    array = np.asarray(x, np.float32)
    return Sequences(
        "here",
        array[:, None] if array.ndim == 1 else array,
        np.asarray(offsets),
        None if y is None else np.asarray(y),
        per_step,
    )


def test_select() -> None:
    part = make([1, 2, 3, 4, 5, 6], [0, 1, 3, 6], ["a", "b", "c"]).select(np.array([2, 0]))
    assert part.x[:, 0].tolist() == [4, 5, 6, 1]
    assert part.offsets.tolist() == [0, 3, 4]
    assert part.y is not None
    assert part.y.tolist() == ["c", "a"]
    stepped = make([1, 2, 3], [0, 1, 3], [[7], [8], [9]], per_step=True).select(np.array([1]))
    assert stepped.y is not None
    assert stepped.y.tolist() == [[8], [9]]


def test_place() -> None:
    part = make([1, 2, 3, 4], [0, 1, 4])
    assert [part.place(row) for row in range(4)] == [(0, 0), (1, 0), (1, 1), (1, 2)]


def test_dataset_is_dense_if_it_can_be() -> None:
    part = make([1, 2, 3, 4], [0, 2, 4], np.array([[1.0], [2.0]], np.float32))
    batch = part.dataset(part.x).take(torch.tensor([1]))
    assert batch.lengths is None
    assert batch.x.tolist() == [[[3], [4]]]
    assert batch.y.tolist() == [[2]]
    ragged = make([1, 2, 3], [0, 1, 3], np.array([[1.0], [2], [3]], np.float32), per_step=True)
    batch = ragged.dataset(ragged.x).take(torch.tensor([0, 1]))
    assert batch.y.tolist() == [[[1], [0]], [[2], [3]]]
    equal = make([1, 2, 3, 4], [0, 2, 4], np.arange(8.0).reshape(4, 2), per_step=True)
    assert equal.dataset(equal.x).take(torch.tensor([1])).y.tolist() == [[[4, 5], [6, 7]]]


def test_without_targets() -> None:
    part = make([1, 2], [0, 1, 2])
    assert part.dataset(part.x).take(torch.tensor([0, 1])).y.shape == (2, 0)


def test_standardise_uses_real_steps_of_the_training_data() -> None:
    rng = np.random.default_rng(0)
    train = make(rng.normal([5, -3], [2, 0.1], (1000, 2)), [0, 400, 1000])
    p = Preprocessing.fit(train, True, "error")
    x = p.transform(train)
    np.testing.assert_allclose(x.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(x.std(0), 1, atol=1e-5)
    other = make([[p.mean[0] + p.std[0], p.mean[1]]], [0, 1])
    np.testing.assert_allclose(p.transform(other), [[1, 0]], atol=1e-4)
    np.testing.assert_array_equal(
        Preprocessing.fit(train, False, "error").transform(train), train.x
    )


def test_constant_channel() -> None:
    part = make([4, 4, 4], [0, 3])
    assert Preprocessing.fit(part, True, "error").transform(part).tolist() == [[0], [0], [0]]


@pytest.mark.parametrize(("standardise", "filled"), [(True, 0.0), (False, 2.0)])
def test_missing_becomes_the_training_mean(standardise: bool, filled: float) -> None:
    train = make([1, np.nan, 3], [0, 3])
    p = Preprocessing.fit(train, standardise, "mean")
    assert p.transform(train)[1, 0] == filled
    assert p.transform(make([np.nan, 100], [0, 2]))[0, 0] == filled


def test_json_round_trip() -> None:
    p = Preprocessing.fit(make([1, 2], [0, 2]), True, "mean")
    assert Preprocessing.from_dict(p.to_dict()) == p
    assert p.to_dict() == {"mean": [1.5], "std": [0.5], "standardise": True, "missing": "mean"}


def test_errors() -> None:
    part = make([0, 1, 2, np.nan, np.nan], [0, 1, 5])
    with pytest.raises(
        ValueError, match=r"got nan at sequence 1, step 2, channel 0 \(2 such entrie"
    ):
        check_finite(part, part.x, False)
    check_finite(part, part.x, True)
    part = make([[0, 1], [2, np.inf]], [0, 2])
    with pytest.raises(ValueError, match=r"got inf at sequence 0, step 1, channel 1 \(1 such entr"):
        Preprocessing.fit(part, True, "mean")
    with pytest.raises(ValueError, match=r"missing='mean'"):
        Preprocessing.fit(make([np.nan], [0, 1]), True, "error")
    with pytest.raises(
        ValueError, match=r"channel 0 of x in here .* got 'missing values only'; remove"
    ):
        Preprocessing.fit(make([np.nan], [0, 1]), True, "mean")
    p = Preprocessing.fit(make([1], [0, 1]), True, "error")
    with pytest.raises(ValueError, match=r"channels of x in here must be 1, as in training; got 2"):
        p.transform(make([[1, 2]], [0, 1]))
    with pytest.raises(ValueError, match=r"keys of preprocessing must be .*mean.*; got ..mean.."):
        Preprocessing.from_dict({"mean": [0]})
    with pytest.raises(ValueError, match="missing must be one of"):
        Preprocessing.from_dict(p.to_dict() | {"missing": "drop"})
    with pytest.raises(TypeError, match="standardise must be True or False"):
        Preprocessing.from_dict(p.to_dict() | {"standardise": 1})


def test_select_carries_what_is_known_of_sequences() -> None:
    part = Sequences(
        "here",
        np.arange(6, dtype=np.float32)[:, None],
        np.array([0, 1, 3, 6]),
        elapsed=np.array([0, 0, 2, 0, 4, 5], np.float32),
        groups=np.array(["ann", "bob", "ann"]),
        times=np.array([3.0, 1.0, 2.0]),
        channels=("speed",),
    ).select(np.array([2, 0]))
    assert part.elapsed is not None and part.groups is not None and part.times is not None
    assert part.elapsed.tolist() == [0, 4, 5, 0]
    assert (part.groups.tolist(), part.times.tolist()) == (["ann", "ann"], [2.0, 3.0])
    assert part.channels == ("speed",)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"elapsed": np.ones(2, np.float32)}, r"elapsed in here must be of shape \[3\].*got \[2\]"),
        (
            {"elapsed": np.array([0, 1, -1], np.float32)},
            r"elapsed in here must be finite and >= 0; got -1.0 at sequence 1, step 1; give",
        ),
        ({"groups": np.array([1, 2, 3])}, r"groups in here must be \[2\].*got \[3\]; give one"),
        ({"times": np.array([1.0])}, r"times in here must be \[2\].*got \[1\]; give one"),
        ({"channels": ("a", "b")}, r"channels in here must be 1 names.*got 2; name"),
    ],
)
def test_what_is_known_of_sequences_fits_them(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Sequences("here", np.zeros((3, 1), np.float32), np.array([0, 1, 3]), **given)
