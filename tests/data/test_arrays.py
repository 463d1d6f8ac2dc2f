"""Sequences: from arrays, the archive they are kept in, parts of them."""

from dataclasses import replace

import numpy as np
import pytest

from anharmonic.data.arrays import save_npz, sequences_from
from anharmonic.data.npz import read_npz
from anharmonic.data.sequences import Sequences, in_float32, joined
from anharmonic.data.targets import with_known

pyarrow = pytest.importorskip("pyarrow")
RNG = np.random.default_rng(0)


def test_arrays_and_lists_of_equal_or_unequal_length():
    x = RNG.normal(size=(4, 6, 3)).astype(np.float32)
    part = sequences_from(x, [0, 1, 0, 1])
    np.testing.assert_array_equal(part.x.reshape(4, 6, 3), x)
    assert part.y.tolist() == [0, 1, 0, 1]
    turned = sequences_from(x.transpose(0, 2, 1), channels_first=True)
    np.testing.assert_array_equal(turned.x, part.x)
    assert sequences_from(x[:, :, 0]).x.shape == (24, 1)
    ragged, held = [RNG.normal(size=(n, 2)) for n in (5, 1, 3)], np.empty(3, dtype=object)
    held[:] = ragged
    part = sequences_from(ragged, np.array(["a", "b", "a"], dtype=object))
    assert part.lengths.tolist() == [5, 1, 3] and part.y.tolist() == ["a", "b", "a"]
    turned = sequences_from([s.T for s in ragged], channels_first=True)
    for same in (turned, sequences_from(held)):
        np.testing.assert_array_equal(same.x, part.x)


def test_targets_per_step():
    x = [np.zeros(3), np.zeros(2)]
    part = sequences_from(x, [[1.0, 2, 3], [4.0, 5]])
    assert part.per_step and part.y.tolist() == [[1], [2], [3], [4], [5]]
    equal = sequences_from([np.zeros(2)] * 3, [np.array([1.0, 2])] * 3)
    assert equal.per_step and equal.y.shape == (6, 1)
    dense = sequences_from(np.zeros((2, 3)), np.arange(12.0).reshape(2, 3, 2))
    assert dense.per_step and dense.y.shape == (6, 2)
    wide = sequences_from(np.zeros((2, 3)), [[1.0, 2.0], [3.0, 4.0]])
    assert not wide.per_step and wide.y.shape == (2, 2)


def test_everything_survives_the_archive(tmp_path):
    times = np.array(["2024-01-01", "2024-01-02"], "M8[s]")
    known = {"elapsed": [[0, 1, 2], [0, 5]], "groups": ["p", "q"], "times": times}
    part = sequences_from([np.arange(3.0), np.arange(2.0)], ["a", "b"], **known)
    part = replace(part, interval=0.5)
    again = read_npz(save_npz(tmp_path / "x.npz", part))["all"]
    for name in ("x", "offsets", "y", "elapsed", "groups", "times", "interval"):
        np.testing.assert_array_equal(getattr(again, name), getattr(part, name))
    assert [path.name for path in tmp_path.iterdir()] == ["x.npz"]
    # Unknown targets too.
    known, form = np.array([True, False, True]), (np.zeros((3, 1), "f4"), np.array([0, 3]))
    for y in (np.array([[2], [0], [1]]), np.array([[0.5], [0.0], [1.5]])):
        part = Sequences("here", *form, y, per_step=True, known=known)
        again = with_known(read_npz(save_npz(tmp_path / "x.npz", part))["all"])
        assert again.known.tolist() == known.tolist()
        assert again.y[known].astype(float).tolist() == y[known].tolist()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: sequences_from(np.zeros(3)), r"shape of x .*\[3\]"),
        (lambda: sequences_from([]), "no sequence"),
        (lambda: sequences_from([np.zeros((2, 2)), np.zeros((2, 3))]), "sequence 1 of x.*3"),
        (lambda: sequences_from([np.array(["a"])]), "sequence 0 of x"),
        (lambda: sequences_from([np.zeros(0)]), "without a step"),
        (lambda: sequences_from(np.zeros((2, 3)), [1, 2, 3]), "y in x"),
        (lambda: sequences_from(np.zeros((2, 3)), [None, 1]), "y must be"),
        (lambda: sequences_from([np.zeros(2)], elapsed=[[0]]), r"steps of elapsed .*\[1\]"),
        (lambda: sequences_from(pyarrow.table({"v": [1]}), [1]), r"beside a table .*'y'"),
        (lambda: sequences_from(np.zeros((2, 3)), groups=[1, np.nan]), "groups must be known"),
        (lambda: save_npz("x.csv", sequences_from(np.zeros((2, 3)))), "npz"),
        (lambda: save_npz("x.npz", {"training": sequences_from(np.zeros((2, 3)))}), "training"),
    ],
)
def test_what_does_not_fit_is_said(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_masked_entries_are_missing():
    x = np.ma.array(np.ones((2, 3)), mask=[[0, 0, 1], [0, 0, 0]])
    part = sequences_from(x, ["a", "b"])
    assert np.isnan(part.x[2, 0]) and np.isnan(part.x).sum() == 1
    assert np.isnan(sequences_from([x[0], x[1]]).x[2, 0])
    with pytest.raises(ValueError, match="masked entries of y"):
        sequences_from(np.ones((2, 3)), np.ma.array([1, 2], mask=[True, False]))


def make(x, offsets, y=None, per_step=False):
    array, targets = np.float32(x).reshape(len(x), -1), None if y is None else np.asarray(y)
    return Sequences("here", array, np.asarray(offsets), targets, per_step)


def test_shown_by_its_sizes():
    part = make(np.zeros((6, 2)), [0, 1, 6], ["a", "b"])
    assert str(part) == "Sequences(here: 2 sequences of 1 to 5 steps, 2 channels; with y)"
    one = replace(part, offsets=np.array([0, 6]), y=None)
    assert repr(one) == "Sequences(here: 1 sequence of 6 steps, 2 channels; with x alone)"


def test_parts_and_joined_parts_carry_what_is_known_of_sequences():
    whole = replace(
        make([1, 2, 3, 4, 5, 6], [0, 1, 3, 6], ["a", "b", "c"]),
        elapsed=np.array([0, 0, 2, 0, 4, 5], np.float32),
        groups=np.array(["ann", "bob", "ann"]),
        times=np.array([3.0, 1.0, 2.0]),
        channels=("speed",),
    )
    part = whole.select(np.array([2, 0]))
    assert part.x[:, 0].tolist() == [4, 5, 6, 1] and part.offsets.tolist() == [0, 3, 4]
    assert part.y.tolist() == ["c", "a"] and part.elapsed.tolist() == [0, 4, 5, 0]
    assert (part.groups.tolist(), part.times.tolist()) == (["ann", "ann"], [2.0, 3.0])
    assert part.channels == ("speed",)
    first, rest = whole.select(np.array([0])), whole.select(np.array([1, 2]))
    for name in ("x", "offsets", "y", "elapsed", "groups", "times"):
        again = getattr(joined(first, rest), name)
        np.testing.assert_array_equal(again, getattr(whole, name))
    assert joined(first, replace(rest, groups=None)).groups is None
    with pytest.raises(ValueError, match="channels of x in here must be 1, as in here; got 2"):
        joined(first, make([[4, 5]], [0, 1], ["c"]))
    stepped = make([1, 2, 3], [0, 1, 3], [[7], [8], [9]], per_step=True).select(np.array([1]))
    assert stepped.y.tolist() == [[8], [9]]


def test_what_float32_makes_coarse_is_told():
    seconds = 1.7e9 + np.arange(0.0, 3000.0, 10.0)
    x = np.stack([np.arange(300.0), seconds], axis=1)
    with pytest.warns(UserWarning, match=r"channel 'clock' of here .* steps of 128.*subtract"):
        assert in_float32(x, "here", ["load", "clock"]).dtype == np.float32
    with pytest.warns(UserWarning, match="target 0 of here .* from 16777216.0 to 16777221.0"):
        in_float32(np.array([[2**24], [2**24 + 5]]), "here", what="target")
    usual = [[1e300, np.nan, 5.0, 1e-30, np.inf], [0.0, np.nan, 5.0, 0.0, 1.0]]
    in_float32(np.array(usual), "here")  # warnings are errors in tests
