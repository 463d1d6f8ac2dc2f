import numpy as np
import pandas as pd
import pytest

from anharmonic.data import Columns
from anharmonic.estimators import SequenceForecaster
from anharmonic.estimators.inputs import read_sequences

QUICK = {"hidden_size": 16, "max_steps": 100, "lr": 0.03, "random_state": 0}
BRIEF = {"hidden_size": 4, "max_steps": 3, "random_state": 0}


@pytest.fixture(scope="module")
def series():
    """Waves [n, C, T]; the second channel follows the first."""
    t = np.arange(120)
    phase = np.random.default_rng(0).uniform(0, 6, (12, 1))
    return np.stack([5 + np.sin(0.4 * t + phase), 3 * np.sin(0.4 * t + phase - 1)], axis=1)


@pytest.fixture(scope="module")
def fitted(series):
    return SequenceForecaster("GRU", horizon=4, **QUICK).fit(series[:, :, :100])


def test_forecasts_what_follows(series, fitted):
    found = fitted.predict(series[:, :, :116])
    assert found.shape == (12, 2, 4)
    truth = series[:, :, 116:]
    errors, simple = truth - found, truth - series[:, :, 115:116]
    score = 1 - np.square(errors).sum() / np.square(simple).sum()
    assert score > 0.8
    assert fitted.score(series) == pytest.approx(score, abs=1e-6)


def test_a_frame_with_a_row_per_step(series):
    past = series[:, :, :50]
    frame = pd.DataFrame(past.transpose(0, 2, 1).reshape(-1, 2), columns=["y", "other"])
    frame["unique_id"] = np.repeat([f"s{i:02}" for i in range(12)], 50)
    frame["ds"] = np.tile(pd.date_range("2024-01-01", periods=50, freq="h"), 12)
    model = SequenceForecaster("GRU", horizon=4, **BRIEF).fit(frame)
    assert model.preprocessing_.channels == ("y", "other")
    expected = SequenceForecaster("GRU", horizon=4, **BRIEF).fit(past).predict(past)
    assert (model.predict(frame) == expected).all()


@pytest.mark.parametrize("name", [None, "day"])
def test_rows_of_a_frame_with_dates_as_index_are_steps(series, name):
    dates = pd.date_range("2024-01-01", periods=120, name=name)
    frame = pd.DataFrame(series[0].T, columns=["y", "other"], index=dates)
    model, table = SequenceForecaster(horizon=2), frame.reset_index()
    part, _ = read_sequences(model, frame[::-1], reset=True)
    assert np.array_equal(part.x, read_sequences(model, table, reset=True)[0].x)
    part, _ = read_sequences(model, frame[50:], reset=False)
    assert part.lengths.tolist() == [70] and part.interval == 86400.0
    assert part.times.astype("M8[D]").astype(str).tolist() == ["2024-02-20"]
    part, _ = read_sequences(model, frame[::-1].to_period("D"), reset=True)
    assert np.array_equal(part.x, series[0].T.astype("f4")) and part.interval == 86400.0


def test_the_score_of_series_that_repeat_their_last_value(series, fitted):
    still = series.copy()
    still[:, :, -5:] = series[:, :, -5:-4]
    assert fitted.score(still) == 0
    gaps = SequenceForecaster("GRU", horizon=2, missing="forward", **BRIEF).fit(series)
    still[:, :, -2:] = np.nan
    with pytest.raises(ValueError, match="last steps of X must be known somewhere"):
        gaps.score(still)
    with pytest.raises(ValueError, match="steps of X must be more than horizon=4"):
        fitted.score(series[:, :, :4])


@pytest.mark.parametrize("known, past", [(None, 56), ([1], 53)])
def test_a_score_with_a_gap_before_the_last_steps(known, past):
    X = np.stack([np.arange(60.0), np.sin(np.arange(60))])[None]
    model = SequenceForecaster(
        "GRU", horizon=4, forecast=[0], known=known, missing="forward", **BRIEF
    ).fit(X)
    X[0, 0, 53:56] = np.nan
    truth, last = X[0, 0, past : past + 4].copy(), 52.0
    before = X[:, :, : past + 4 if known else past].copy()
    before[0, 0, past:] = np.nan
    errors, simple = truth - model.predict(before)[0, 0], truth - last
    score = 1 - np.nansum(np.square(errors)) / np.nansum(np.square(simple))
    assert model.score(X) == pytest.approx(score, abs=1e-6)


def test_quantiles_are_those_of_each_channel():
    X = np.random.default_rng(0).normal(size=(3, 2, 150)) * [[100.0], [1.0]]
    options = {"horizon": 2, "window": 6, "quantiles": [0.1, 0.5, 0.9], "max_steps": 200}
    model = SequenceForecaster("GRU", **options, random_state=0).fit(X)
    found = model.predict(X)
    assert found.shape == (3, 2, 2, 3) and (np.diff(found) >= 0).all()
    assert 60 < 100 * np.mean((found[..., 0] < 0) & (found[..., 2] > 0))
    one, other = (found[..., 2] - found[..., 0]).mean(axis=(0, 2))
    assert 50 < one / other < 200
    # The error of the last value is twice that of a median near the mean.
    assert 0.2 < model.score(X) < 0.8


WAVE = np.stack([np.sin(np.arange(70) / 3), np.arange(70) % 7])[None]
OPEN = WAVE.copy()
OPEN[0, 0, 60:] = np.nan
SHAPES = {
    "chosen channels": (WAVE, {"horizon": 2, "forecast": [1]}, (1, 1, 2)),
    "unequal series": ([WAVE[0, :, :60], WAVE[0]], {"horizon": 4}, (2, 2, 4)),
    "arrays of two axes": (WAVE[:, 0], {"horizon": 3, "window": 20}, (1, 3)),
    "one channel": (WAVE[:, 0], {"horizon": 3, "quantiles": [0.2, 0.5]}, (1, 3, 2)),
    "many short series": (np.random.default_rng(0).normal(size=(400, 6)), {"horizon": 2}, (400, 2)),
    # 15 % of 70 steps are 10, and of the 60 that are known 9.
    "too short to validate": (OPEN, {"horizon": 10, "known": [1]}, (1, 1, 10)),
    "arrays": (
        OPEN,
        {"horizon": 2, "known": np.array([1]), "quantiles": np.array([0.1, 0.5])},
        (1, 1, 2, 2),
    ),
}


@pytest.mark.parametrize(("x", "options", "shape"), SHAPES.values(), ids=SHAPES)
def test_shapes_of_forecasts(x, options, shape):
    found = SequenceForecaster("GRU", **BRIEF | options).fit(x).predict(x)
    assert found.shape == shape and np.isfinite(found).all()


def test_known_columns_of_a_frame():
    steps = {"id": [1] * 60, "time": np.arange(60), "v": np.sin(np.arange(60) / 3)}
    frame = pd.DataFrame(steps | {"a": np.arange(60) % 7, "b": np.arange(60) % 5})
    model = SequenceForecaster("GRU", horizon=2, known=np.array(["a", "b"]), **BRIEF)
    assert model.fit(frame).preprocessing_.known == (1, 2)
    model.set_params(known=None, columns=Columns(known=("a",)))
    with pytest.raises(ValueError, match=r"known of columns must be left out.*pass known"):
        model.fit(frame)
