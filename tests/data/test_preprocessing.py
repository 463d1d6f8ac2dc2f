import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from anharmonic.data.preprocessing import Preprocessing, spread_of_sizes
from anharmonic.data.sequences import Sequences

nan = np.nan


def make(x, offsets, y=None):
    array = np.asarray(x, np.float32)
    array = array[:, None] if array.ndim == 1 else array
    return Sequences("here", array, np.asarray(offsets), y)


TWO = ([[1, 0], [3, 0], [1, 4], [3, 4]], [0, 1, 4])
GAP, GAPS = ([1, nan, 3], [0, 3]), ([nan, 1, nan, nan, 3, nan, 5, nan], [0, 5, 8])
MASKED = [[1, 2, nan], [nan, 4, 0], [3, 6, 4]], [0, 3]


@pytest.mark.parametrize(
    ("train", "how", "new", "expected"),
    [
        (([4, 4, 4], [0, 3]), (True, "error"), None, [[0]] * 3),
        (TWO, (True, "error"), None, [[-1, -1], [1, -1], [-1, 1], [1, 1]]),
        (TWO, (True, "error"), ([[5, 2]], [0, 1]), [[3, 0]]),
        (([1, 2, 4], [0, 3]), (False, "error"), None, [[1], [2], [4]]),
        # A gap becomes the mean of training,
        (GAP, (True, "mean"), None, [[-1], [0], [1]]),
        (GAP, (True, "mean"), ([nan, 100], [0, 2]), [[0], [98]]),
        (GAP, (False, "mean"), None, [[1], [2], [3]]),
        (GAP, (False, "mean"), ([nan, 100], [0, 2]), [[2], [100]]),
        # the last known value of its sequence,
        (GAPS, (False, "forward"), None, [[3], [1], [1], [1], [3], [3], [5], [5]]),
        (GAPS, (False, "forward"), ([nan, 7, nan], [0, 1, 3]), [[3], [7], [7]]),
        # or a channel of its own, where training had one.
        (MASKED, (False, "mask"), None, [[1, 2, 2, 0, 1], [2, 4, 0, 1, 0], [3, 6, 4, 0, 0]]),
        (MASKED, (False, "mask"), ([[1, nan, 3]], [0, 1]), [[1, 4, 3, 0, 0]]),
    ],
)
def test_values_are_standardised_and_gaps_filled(train, how, new, expected):
    p = Preprocessing.fit(make(*train), *how)
    np.testing.assert_allclose(p.transform(make(*(new or train))), expected, atol=1e-6)
    assert p.size == len(expected[0]) and Preprocessing.from_dict(p.to_dict()) == p


# As it was written before there were masks and differences.
OLD = {"mean": [1.5], "std": [0.5], "standardise": True, "missing": "mean"}


@pytest.mark.parametrize(
    ("error", "content", "said"),
    [
        (ValueError, {"mean": [0]}, r"keys of preprocessing must be .*mean.*; got ..mean.."),
        (ValueError, OLD | {"missing": "drop"}, "missing must be one of"),
        (TypeError, OLD | {"standardise": 1}, "standardise must be True or False"),
    ],
)
def test_what_is_no_preprocessing_is_refused(error, content, said):
    p = Preprocessing.fit(make([1, 2], [0, 2]), True, "mean")
    assert p.shortest == 2  # unknown in what was written before
    p = replace(p, shortest=0)
    assert Preprocessing.from_dict(OLD) == p and p.to_dict() == OLD
    with pytest.raises(error, match=said):
        Preprocessing.from_dict(content)


def test_differences_start_anew_with_every_sequence():
    train = make([[0, 5], [3, 5], [100, 5], [104, 5], [104, 5]], [0, 2, 5])
    p = Preprocessing.fit(train, False, "error", difference=True)
    x = p.transform(train)
    assert (x.shape, p.size) == ((5, 4), 4)
    scale = np.sqrt((9 + 16 + 0) / 3)
    np.testing.assert_allclose(x[:, 2], np.array([0, 3, 0, 4, 0]) / scale, rtol=1e-6)
    assert x[:, 3].tolist() == [0] * 5
    single = Preprocessing.fit(make([1, 2], [0, 1, 2]), True, "error", difference=True)
    assert single.transform(make([5], [0, 1]))[:, 1].tolist() == [0]
    gap = make([1, nan, 3, 7], [0, 4])
    filled = Preprocessing.fit(gap, True, "forward", difference=True)
    x = filled.transform(gap)
    change = np.diff(x[:, 0], prepend=x[0, 0])
    np.testing.assert_allclose(x[:, 1], change / filled.difference[0], rtol=1e-6)
    assert np.sqrt(np.square(x[1:, 1]).mean()) == pytest.approx(1)


def timed(elapsed, offsets):
    x = np.arange(len(elapsed), dtype=np.float32)[:, None]
    return Sequences("here", x, np.array(offsets), elapsed=np.array(elapsed, np.float32))


def test_elapsed_is_counted_in_median_steps_of_training():
    train = timed([0, 10, 10, 20, 0, 5], [0, 4, 6])
    p = Preprocessing.fit(train, True, "error", elapsed="step")
    assert (p.nominal, p.size) == (10, 1)
    assert Preprocessing.from_dict(p.to_dict()) == p
    # The first sample has no sample before it: a nominal step, so that the model sees it.
    batch = p.dataset(train).take(torch.tensor([0, 1]))
    assert batch.elapsed.tolist() == [[1, 1, 1, 2], [1, 0.5, 1, 1]] and len(batch.inputs) == 3
    equal = p.dataset(timed([0, 30, 20, 30], [0, 2, 4])).take(torch.tensor([1]))
    assert equal.elapsed.tolist() == [[2, 3]]
    as_channel = Preprocessing.fit(train, False, "error", elapsed="channel")
    assert as_channel.size == 2
    assert as_channel.transform(train)[:, 1].tolist() == [1, 1, 1, 2, 1, 0.5]
    assert as_channel.dataset(train).take(torch.tensor([0])).elapsed is None
    assert p.dataset(EVEN).take(torch.tensor([0])).elapsed.tolist() == [[1, 2, 2]]
    with pytest.raises(ValueError, match=r"here must hold .*elapsed.*; got none; add"):
        p.dataset(make([1, 2], [0, 2]))


EVEN = replace(make([1, 2, 3], [0, 3]), interval=20.0)


@pytest.mark.parametrize(
    ("part", "missing", "elapsed", "said"),
    [
        (make([0, 1, 2, nan, nan], [0, 1, 5]), "error", "ignore",
         r"nan at sequence 1, step 2, channel 0 \(2 such entries\).*missing='mean'"),
        (make([[0, 1], [2, np.inf]], [0, 2]), "mean", "ignore",
         r"got inf at sequence 0, step 1, channel 1 \(1 such entries"),
        (make([nan], [0, 1]), "mean", "ignore", "channel 0 of x .* 'missing values only'; remove"),
        (EVEN, "error", "step", "times in here must be uneven .*; got steps of 20"),
        (timed([0, 0], [0, 2]), "error", "step", "elapsed in here must be positive somewhere"),
    ],
)  # fmt: skip
def test_what_cannot_be_prepared_is_refused(part, missing, elapsed, said):
    with pytest.raises(ValueError, match=said):
        Preprocessing.fit(part, True, missing, elapsed=elapsed)


def test_scaled_targets_stay_in_their_units():
    y = np.array([[10.0, 5.0], [30.0, 5.0]], np.float32)
    train = make([1, 2, 3], [0, 1, 3], y)
    p = Preprocessing.fit(train, True, "error", scale_target=True)
    assert (p.target_shift, p.target_scale) == ((20, 5), (10, 1))
    batch = p.dataset(train).take(torch.tensor([1, 0]))
    assert batch.y.tolist() == [[30, 5], [10, 5]]
    assert batch.select(torch.tensor([[1.0, 0.0], [-1.0, 0.0]])).tolist() == batch.y.tolist()
    with pytest.raises(ValueError, match=r"channels of x in here must be 1, as in training; got 2"):
        p.transform(make([[1, 2]], [0, 1]))


def test_each_sequence_by_itself_and_what_that_takes_from_it():
    rng = np.random.default_rng(0)
    sizes, lengths = np.array([1e-4, 1.0, 1e4, 50.0]), np.array([4, 6, 5, 3])
    x = np.concatenate([s * (3 + rng.normal(size=n)) for s, n in zip(sizes, lengths, strict=True)])
    train = make(x, np.concatenate([[0], np.cumsum(lengths)]))
    p = Preprocessing.fit(train, True, "error", difference=True, scale_each=True)
    prepared = p.transform(train).astype(np.float64)
    assert prepared.shape == (18, p.size) == (18, 4)
    for a, b in itertools.pairwise(train.offsets):
        own = (x[a:b] - x[a:b].mean()) / x[a:b].std()
        np.testing.assert_allclose(prepared[a:b, 0], own, atol=2e-3)
        assert prepared[a + 1, 1] == pytest.approx((own[1] - own[0]) / p.difference[0], abs=2e-3)
        assert np.ptp(prepared[a:b, 2:], axis=0).tolist() == [0, 0]
    levels = prepared[train.offsets[:-1], 3]  # the logarithm: sizes keep their order
    assert np.argsort(levels).tolist() == np.argsort(sizes).tolist()
    assert abs(levels.mean()) < 1e-6 and levels.std() == pytest.approx(1)
    assert Preprocessing.from_dict(p.to_dict()) == p
    # Alone as among others.
    one = make(x[4:10], [0, 6])
    np.testing.assert_array_equal(p.transform(one), p.transform(train)[4:10])


def test_sequences_and_levels_that_do_not_change_stay_finite_and_are_not_scaled():
    p = Preprocessing.fit(make([1, 1, 2, 5], [0, 2, 4]), True, "error", scale_each=True)
    assert np.isfinite(p.transform(make([7, 7], [0, 2]))).all()
    x = [0, 1, 0, 2, 0, 100, 3, 3]
    spread = spread_of_sizes(make(x, [0, 2, 4, 6, 8]))
    assert spread == pytest.approx(spread_of_sizes(make(x[:6], [0, 2, 4, 6]))) and spread > 20
    # Levels that differ by rounding alone, as those of an age do.
    rng = np.random.default_rng(0)
    x = np.stack([rng.normal(size=600), np.repeat(rng.integers(20, 80, 30), 20)], axis=1)
    p = Preprocessing.fit(make(x, np.arange(31) * 20), True, "error", scale_each=True)
    assert p.level_scale[3] == 1.0 and min(p.level_scale) > 0.05


def test_a_channel_without_values_or_with_another_sampling_rate_is_doubtful():
    p = Preprocessing.fit(make([1, 2, 3, 4], [0, 2, 4]), True, "forward")
    assert p.doubts(make([nan, nan], [0, 2])) == ["channel 0 without any value"]
    part = replace(make([1, 2, 3, 4], [0, 2, 4]), interval=0.02)
    p = Preprocessing.fit(part, True, "error")
    assert p.doubts(replace(part, interval=0.025)) == p.doubts(replace(part, interval=None)) == []
    said = ["the median time is 0.01 between samples, in training 0.02"]
    assert p.doubts(replace(part, interval=0.01)) == said
    assert Preprocessing.from_dict(p.to_dict()).doubts(replace(part, interval=0.01)) == said
    gaps = replace(part, elapsed=np.array([0, 0.06, 0, 0.02], np.float32))
    assert p.doubts(gaps) == ["1 gap in time, of up to 0.06 instead of 0.02"]
    gappy = Preprocessing.fit(gaps, True, "error")
    assert gappy.doubts(gaps) == []
    longer = replace(part, elapsed=np.array([0, 0.12, 0, 0.02], np.float32))
    assert gappy.doubts(longer) == ["1 gap in time, of up to 0.12 instead of 0.02"]
    ahead = replace(p, window=3, horizon=1)
    short = "2 steps before the forecast in sequence 0 and 1 more, in training 3"
    assert short in ahead.doubts(part) and short not in replace(ahead, horizon=0).doubts(part)
