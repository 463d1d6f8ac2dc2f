"""Features of random resonators: what does not depend on what, and what a stream gives."""

import pickle

import numpy as np
import pytest
import torch

from anharmonic.nn import ResonatorFeatures
from anharmonic.nn.resonators import features, stream
from anharmonic.nn.resonators.draw import POOLS
from anharmonic.ops.resonator import respond

RNG = np.random.default_rng(0)
SERIES = [RNG.normal(size=(length, 2)) for length in (7, 40, 1, 23)]


@pytest.fixture(scope="module", params=["train", "series", "running"])
def fitted(request):
    return ResonatorFeatures(30, scaling=request.param).fit(SERIES)


def test_other_series_in_the_batch_change_nothing(fitted):
    together = fitted.transform(SERIES)
    alone = np.concatenate([fitted.transform([s]) for s in SERIES])
    assert together.dtype == np.float32 and together.shape == (4, fitted.num_features)
    np.testing.assert_array_equal(together, alone)
    assert np.isfinite(together).all()


@pytest.mark.parametrize("scaling", ["train", "running"])
def test_a_stream_gives_the_features_of_the_batch_to_the_bit(scaling):
    features = ResonatorFeatures(30, scaling=scaling).fit(SERIES)
    series, stream = RNG.normal(size=(3, 25, 2)), features.stream(3)
    for t in range(25):
        stream.update(series[:, t])
        if t in (0, 11, 24):
            np.testing.assert_array_equal(stream.features(), features.transform(series[:, : t + 1]))
    copied = pickle.loads(pickle.dumps(stream))
    for one in (stream, copied):
        one.update(series[:, 0])
    np.testing.assert_array_equal(stream.features(), copied.features())
    stream.reset()
    stream.update(series[:, 0])
    np.testing.assert_array_equal(stream.features(), features.transform(series[:, :1]))


def test_scale_and_offset_of_a_series_vanish_with_its_own_scale():
    features = ResonatorFeatures(30, scaling="series").fit(SERIES)
    other = [1000 + 50 * s for s in SERIES]
    # A float32 of the scaled series is rounded to 6e-8; features are sums over up to 40 of them.
    np.testing.assert_allclose(features.transform(other), features.transform(SERIES), atol=1e-4)


def test_the_unit_of_a_series_does_not_count(fitted):
    small = ResonatorFeatures(30, scaling=fitted.scaling).fit_transform(
        [2.0**-40 * s for s in SERIES]
    )
    np.testing.assert_array_equal(small, fitted.transform(SERIES))


def test_responses_compete_in_units_of_their_own_size():
    x = np.sin(0.5 * np.arange(2000.0))[:, None]
    features = ResonatorFeatures(40).fit([x])
    read = features._read(x, np.array([0, 2000]))
    responses, _ = respond(features._bank.driven(read, torch.tensor([0, 2000])))
    sizes = responses.std(dim=0) * features._bank.scale
    assert responses.std(dim=0).max() > 30 * responses.std(dim=0).min()
    assert 0.3 < sizes.min() and sizes.max() < 4  # their size is known from some samples


def test_the_wins_of_a_group_are_shares_of_the_steps():
    features = ResonatorFeatures(32, pools=("competition",)).fit(SERIES)
    found = features.transform([RNG.normal(size=(length, 2)) for length in (300, 900)])
    assert found.shape == (2, 2 * 2 * 32) and found.min() >= 0 and found.max() <= 1
    # One of eight is the largest and one the smallest, of y and of z; at first some are equal.
    np.testing.assert_allclose(found.sum(axis=1), 2 * 2 * 32 / 8, rtol=0.1)


def test_the_seed_decides():
    first, again, other = (ResonatorFeatures(30, seed=s).fit_transform(SERIES) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_uneven_times_stream_and_batch_alike():
    features = ResonatorFeatures(30).fit(SERIES)
    series, gaps, stream = SERIES[1], RNG.uniform(0, 3, size=40), features.stream()
    for x_t, gap in zip(series, gaps, strict=True):
        stream.update(x_t, elapsed=float(gap))
    batch = features.transform([series, SERIES[0]], elapsed=[gaps, np.ones(7)])
    np.testing.assert_array_equal(stream.features()[0], batch[0])
    assert not np.array_equal(batch[0], features.transform([series])[0])
    with pytest.raises(ValueError, match=r"elapsed\[1\].*\(7,\)"):
        features.transform([series, SERIES[0]], elapsed=[gaps, np.ones(6)])
    with pytest.raises(ValueError, match="elapsed"):
        stream.update(series[0], elapsed=-1.0)
    stream.update(series[1])  # the refused sample left no trace
    batch = features.transform([np.vstack([series, series[1]])], elapsed=[[*gaps, 1.0]])
    np.testing.assert_array_equal(stream.features(), batch)


def test_every_pool_can_be_asked_for():
    whole = ResonatorFeatures(30, pools=POOLS).fit_transform(SERIES)
    each = [ResonatorFeatures(30, pools=[name]).fit_transform(SERIES) for name in POOLS]
    np.testing.assert_array_equal(np.concatenate(each, axis=1), whole)


def test_lengths_are_features_where_they_differ():
    features = ResonatorFeatures(30, pools=["share", "length"]).fit(SERIES)
    assert features.num_features == 30 * (4 + 1)
    found = features.transform([np.zeros((length, 2)) for length in (1, 7, 23, 40)])[:, 120:]
    rising, bumps = found[:, ::2], found[:, 1::2]
    assert (np.diff(rising, axis=0) > 0).all()
    assert set(bumps.max(axis=0)) == {1.0}  # each is at the length of one of the series
    for count in (2, 25):  # equal lengths, for any number of series
        even = ResonatorFeatures(5, pools=["length", "rms"]).fit(np.zeros((count, 2, 1)))
        assert even.num_features == 10


def test_series_that_float32_cannot_count_are_refused(monkeypatch):
    series = np.random.default_rng(0).normal(size=(3, 30, 1))
    fitted = ResonatorFeatures(num_oscillators=5).fit(series)
    for module in (features, stream):
        monkeypatch.setattr(module, "MOST_SAMPLES", 29)
    with pytest.raises(ValueError, match=r"sequences must be series of <= 29 samples; got .*30"):
        fitted.transform(series)
    one = fitted.stream()
    for t in range(29):
        one.update(series[0, t])
    with pytest.raises(ValueError, match=r"stream must be of <= 29 samples; .*call reset"):
        one.update(series[0, 29])
    one.reset()
    one.update(series[0, 29])
