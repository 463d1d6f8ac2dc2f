from dataclasses import replace

import numpy as np
import pytest

from anharmonic.data.sequences import Sequences, in_float32, joined


def make(x, offsets, y=None, per_step=False):
    array, targets = np.float32(x).reshape(len(x), -1), None if y is None else np.asarray(y)
    return Sequences("here", array, np.asarray(offsets), targets, per_step)


def test_shown_by_its_sizes():
    part = Sequences("my.npz", np.zeros((6, 2), np.float32), np.array([0, 1, 6]))
    assert repr(part) == "Sequences(my.npz: 2 sequences of 1 to 5 steps, 2 channels; with x alone)"
    one = replace(part, offsets=np.array([0, 6]), y=np.array(["a"]), groups=np.array([4]))
    assert str(one) == "Sequences(my.npz: 1 sequence of 6 steps, 2 channels; with y, groups)"


def test_select_carries_what_is_known_of_sequences():
    part = replace(
        make([1, 2, 3, 4, 5, 6], [0, 1, 3, 6], ["a", "b", "c"]),
        elapsed=np.array([0, 0, 2, 0, 4, 5], np.float32),
        groups=np.array(["ann", "bob", "ann"]),
        times=np.array([3.0, 1.0, 2.0]),
        channels=("speed",),
    ).select(np.array([2, 0]))
    assert part.x[:, 0].tolist() == [4, 5, 6, 1] and part.offsets.tolist() == [0, 3, 4]
    assert part.y.tolist() == ["c", "a"] and part.elapsed.tolist() == [0, 4, 5, 0]
    assert (part.groups.tolist(), part.times.tolist()) == (["ann", "ann"], [2.0, 3.0])
    assert part.channels == ("speed",)
    stepped = make([1, 2, 3], [0, 1, 3], [[7], [8], [9]], per_step=True).select(np.array([1]))
    assert stepped.y.tolist() == [[8], [9]]


def test_joined():
    first = make([1, 2, 3], [0, 1, 3], ["a", "b"])
    both = joined(first, make([4, 5], [0, 2], ["c"]))
    assert both.x[:, 0].tolist() == [1, 2, 3, 4, 5] and both.offsets.tolist() == [0, 1, 3, 5]
    assert (both.y.tolist(), both.groups) == (["a", "b", "c"], None)
    with pytest.raises(ValueError, match="channels of x in here must be 1, as in here; got 2"):
        joined(first, make([[4, 5]], [0, 1], ["c"]))


def test_what_float32_makes_coarse_is_told():
    seconds = 1.7e9 + np.arange(0.0, 3000.0, 10.0)
    x = np.stack([np.arange(300.0), seconds], axis=1)
    with pytest.warns(UserWarning, match=r"channel 'clock' of here .* steps of 128.*subtract"):
        assert in_float32(x, "here", ["load", "clock"]).dtype == np.float32
    with pytest.warns(UserWarning, match="target 0 of here .* from 16777216.0 to 16777221.0"):
        in_float32(np.array([[2**24], [2**24 + 5]]), "here", what="target")
    usual = [[1e300, np.nan, 5.0, 1e-30, np.inf], [0.0, np.nan, 5.0, 0.0, 1.0]]
    in_float32(np.array(usual), "here")  # warnings are errors in tests
