import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

from anharmonic.data import Columns
from anharmonic.estimators import SequenceForecaster
from anharmonic.estimators.inputs import read_sequences
from anharmonic.train import RunEnvironment, fill, fit, predict, trained

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


def test_one_series_and_arrays_of_two_axes(series):
    one = SequenceForecaster("GRU", horizon=3, window=20, **QUICK).fit(series[:1, 0])
    assert one.predict(series[:1, 0]).shape == (1, 3)
    assert one.score(series[:1, 0]) > 0.5
    with pytest.raises(ValueError, match="120 features"):
        one.predict(series[:1, 0, :100])


def test_chosen_channels(series):
    model = SequenceForecaster("GRU", horizon=2, forecast=[1], **QUICK).fit(series)
    assert model.predict(series).shape == (12, 1, 2)
    assert model.score(series) > 0.5


def test_unequal_series_and_what_else_is_forecast(series):
    cut = [values[:, : 60 + 3 * i] for i, values in enumerate(series)]
    model = SequenceForecaster("GRU", horizon=4, **BRIEF).fit(cut)
    whole = model.predict(cut)
    assert whole.shape == (12, 2, 4)
    assert (model.predict(cut[3:5]) == whole[3:5]).all()


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


def test_scikit_learn_cuts_the_series(series):
    model = SequenceForecaster("GRU", horizon=2, **BRIEF)
    assert cross_val_score(model, series, cv=2).shape == (2,)


def test_short_series_learn_without_validation():
    x = np.random.default_rng(0).normal(size=(400, 6)).cumsum(axis=1)
    model = SequenceForecaster("CoRNN", horizon=2, **BRIEF).fit(x)
    assert model.result_.valid is None
    assert model.predict(x).shape == (400, 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"horizon": 0}, "horizon"),
        ({"horizon": 120}, "steps of X must be more than horizon=120"),
        ({"forecast": [7]}, "forecast.*7"),
        ({"window": 119}, "window"),
    ],
)
def test_wrong_options_are_said(series, options, words):
    with pytest.raises(ValueError, match=words):
        SequenceForecaster("GRU", **BRIEF | options).fit(series[:, :, :50])


def test_a_score_needs_more_steps_than_the_horizon(series, fitted):
    with pytest.raises(ValueError, match="steps of X must be more than horizon=4"):
        fitted.score(series[:, :, :4])


def test_the_score_of_series_that_repeat_their_last_value(series, fitted):
    still = series.copy()
    still[:, :, -5:] = series[:, :, -5:-4]
    assert fitted.score(still) == 0
    gaps = SequenceForecaster("GRU", horizon=2, missing="forward", **BRIEF).fit(series)
    still[:, :, -2:] = np.nan
    with pytest.raises(ValueError, match="last steps of X must be known somewhere"):
        gaps.score(still)


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


def test_quantiles_are_those_of_the_command(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 2, 150)).astype("f4")
    levels = [0.1, 0.5, 0.9]
    model = SequenceForecaster(
        "GRU", horizon=2, window=6, quantiles=levels, max_steps=200, random_state=0
    ).fit(X)
    found = model.predict(X)
    assert found.shape == (3, 2, 2, 3) and (np.diff(found) >= 0).all()
    assert 60 < 100 * np.mean((found[..., 0] < 0) & (found[..., 2] > 0))
    # The error of the last value is twice that of a median near the mean.
    assert 0.2 < model.score(X) < 0.8
    np.savez(tmp_path / "mine.npz", x=X.transpose(0, 2, 1), y=np.zeros(3))
    environment = RunEnvironment(file=tmp_path / "mine.npz", out=tmp_path, progress=False)
    options = {"horizon": 2, "window": 6, "quantiles": levels}
    made = fill("GRU", "file", {"epochs": 2, "task_options": options}, environment)
    fit(made.run, environment, made.task)
    folder = tmp_path / made.run.folder_name
    model.model_, model.preprocessing_ = trained(folder).model, trained(folder).preparation
    # The rows of `predict` hold all of the first quantile, then of the second.
    rows = predict(folder, tmp_path / "mine.npz").values.reshape(3, 3, 2, 2)
    np.testing.assert_allclose(model.predict(X), rows.transpose(0, 3, 2, 1), rtol=1e-5, atol=1e-6)


def test_series_of_one_channel_have_quantiles_last():
    X = np.sin(0.3 * np.arange(100))[None].repeat(2, axis=0)
    model = SequenceForecaster("GRU", horizon=3, quantiles=[0.2, 0.5], max_steps=5).fit(X)
    assert model.predict(X).shape == (2, 3, 2)


@pytest.mark.parametrize("name", ["forecast", "known", "quantiles"])
@pytest.mark.parametrize("wrong", [1, 0.5, "1", {1: 2}, np.ones((1, 1))])
def test_lists_are_lists(name, wrong, series):
    with pytest.raises(TypeError, match=f"{name} must be a list"):
        SequenceForecaster("GRU", max_steps=1).set_params(**{name: wrong}).fit(series)


def test_lists_may_be_arrays():
    X = np.stack([np.sin(np.arange(60) / 3), np.arange(60) % 7])[None]
    model = SequenceForecaster(
        "GRU", horizon=2, known=np.array([1]), quantiles=np.array([0.1, 0.5]), max_steps=2
    ).fit(X)
    future = np.concatenate([X, [[[np.nan] * 2, [3.0] * 2]]], axis=2)
    assert model.predict(future).shape == (1, 1, 2, 2)
    assert np.isfinite(model.score(X))


def test_series_with_the_steps_to_forecast_may_be_too_short_to_validate():
    X = np.stack([np.sin(np.arange(70) / 3), np.arange(70) % 7])[None]
    X[0, 0, 60:] = np.nan  # 15 % of 70 steps are 10, of 60 they are 9
    model = SequenceForecaster("GRU", horizon=10, known=[1], **BRIEF).fit(X)
    assert model.predict(X).shape == (1, 1, 10)


def test_known_columns_of_a_frame():
    steps = {"id": [1] * 60, "time": np.arange(60), "v": np.sin(np.arange(60) / 3)}
    frame = pd.DataFrame(steps | {"a": np.arange(60) % 7, "b": np.arange(60) % 5})
    model = SequenceForecaster("GRU", horizon=2, known=np.array(["a", "b"]), **BRIEF)
    assert model.fit(frame).preprocessing_.known == (1, 2)
    with pytest.raises(TypeError, match="known must be a list"):
        model.set_params(known="a").fit(frame)
    model.set_params(known=None, columns=Columns(known=("a",)))
    with pytest.raises(ValueError, match=r"known of columns must be left out.*pass known"):
        model.fit(frame)
