"""Forecasts with columns that are known in advance."""

import csv
import dataclasses
import warnings

import numpy as np
import pytest

from anharmonic.cli.main import main
from anharmonic.data.own import FileTask
from anharmonic.data.sequences import Sequences
from anharmonic.data.windows import with_future
from anharmonic.estimators import SequenceForecaster
from anharmonic.train import RunEnvironment, evaluate_run, predict
from anharmonic.train.trained import trained as load

SMALL = {
    "model_options": {"hidden_size": 8, "bidirectional": False},
    "epochs": 30,
    "lr": 0.02,
    "batch_size": 32,
}
OPTIONS = {"horizon": 3, "window": 6, "forecast": ("load",), "known": ("promo", "kind")}
HEAD = "day,shop,load,promo,kind,staff"


def rows(shop, steps, seed, future=0):
    """Loads that jump where there is a promotion, at random: the past does not say when."""
    rng = np.random.default_rng(seed)
    promo = rng.integers(0, 2, steps)
    made = []
    for t, now in enumerate(promo):
        day = np.datetime64("2024-01-01") + t + 2 * (t >= steps - future)  # no work on two days
        load, staff = (f"{10 + 5 * now + 0.1 * rng.normal():.3f}", t % 5)
        if t >= steps - future:
            load, staff = "", ""
        made.append(f"{day},{shop},{load},{now},{'ab'[t % 2]},{staff}")
    return made


def written(path, steps=150, future=0):
    lines = [HEAD, *rows("s0", steps, 0, future), *rows("s1", steps, 1, future)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory, filled):
    out = tmp_path_factory.mktemp("known")
    here = RunEnvironment(out=out, file=written(out / "mine.csv"), threads=1, progress=False)
    return filled("LEM", {**SMALL, "task_options": OPTIONS}, here)


def test_the_last_steps_of_a_window_hold_what_is_known_of_the_forecast():
    x = np.arange(10.0, dtype="f4")
    x = np.stack([x, 10 * x, 100 * x], axis=1)
    part = Sequences("here", x, np.array([0, 10]), channels=("a", "b", "c"))
    made = with_future(part, (1, 2), (0,), 2, whole=False)
    assert made.channels == ("a", "b", "c", "b 2 steps later", "c 2 steps later")
    assert np.array_equal(made.x[:-2, 3:], x[2:, 1:]) and made.x[-1, 3] == 90
    x = x.copy()
    x[7:, 0] = np.nan
    made = with_future(dataclasses.replace(part, x=x), (1, 2), (0,), 2, whole=True)
    assert len(made.x) == 7 and made.x[-2:, 3].tolist() == [70, 80]


def test_what_is_known_makes_forecasts_better(trained, tmp_path):
    result, folder, task = trained
    assert task.forecast_channels == ("load",)
    # load, staff, promo and two kinds; three of them once more; and the changes of all.
    assert task.input_size == 2 * (2 + 3 + 3)
    assert "known in advance 'promo' and 'kind'" in task.summary()
    assert result.test < 0.5 * result.trivial
    found = evaluate_run(folder, written(tmp_path / "new.csv", future=3))
    assert found.scores.metrics["rmse"] < 0.5 * found.trivial.metrics["rmse"]


def test_predictions_have_the_dates_of_the_rows_given(trained, tmp_path):
    _, folder, _ = trained
    path = written(tmp_path / "new.csv", 60, future=4)
    assert main(["predict", str(folder), str(path), "--output", str(tmp_path / "p.csv")]) == 0
    lines = list(csv.DictReader((tmp_path / "p.csv").open()))
    assert [line["time"] for line in lines[:3]] == ["2024-02-28", "2024-02-29", "2024-03-01"]
    assert [line["id"] for line in lines] == 3 * ["s0"] + 3 * ["s1"]
    values = predict(folder, path).values
    assert [float(line["load"]) for line in lines] == pytest.approx(values.ravel(), rel=1e-6)
    # Another future, other forecasts; of what comes after it nothing is seen.
    text = path.read_text().splitlines()
    text[58] = text[58].replace(",1,", ",7,").replace(",0,", ",7,")
    text[60] = text[60].replace(",1,", ",7,").replace(",0,", ",7,")
    (tmp_path / "other.csv").write_text("\n".join(text))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = predict(folder, tmp_path / "other.csv").values
        assert (other[0] != values[0]).any() and np.array_equal(other[1], values[1])
        text[60] = text[60].replace(",7,", ",9,")
        (tmp_path / "other.csv").write_text("\n".join(text))
        assert np.array_equal(other, predict(folder, tmp_path / "other.csv").values)


def test_a_future_that_is_not_known(trained, tmp_path):
    _, folder, _ = trained
    path = tmp_path / "new.csv"
    must = r"promo and kind must be known for 3 steps after the last value of load in new.csv; "
    for future, said in ((0, f"{must}got 0 in 's0'; add rows"), (2, "got 2 in 's0'")):
        with pytest.raises(ValueError, match=said):
            predict(folder, written(path, 60, future))
    text = written(path, 60, 3).read_text().splitlines()
    text[59] = text[59].replace(",1,", ",,").replace(",0,", ",,")
    path.write_text("\n".join(text))
    with pytest.raises(ValueError, match="got 1 in 's0'"):
        predict(folder, path)


def test_rows_of_the_future_may_be_in_the_file_to_train_on(tmp_path):
    task = FileTask(written(tmp_path / "mine.csv", future=3), **OPTIONS)
    cut = FileTask(written(tmp_path / "mine.csv", 147), **OPTIONS)
    assert task.sizes == cut.sizes and not task.preprocessing.masked


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"known": ("prono",)}, "did you mean 'promo'"),
        ({"known": ("promo", "kind", "load")}, "none that are known in advance"),
        ({"window": 2}, "window must be at least horizon=3"),
        ({"horizon": None, "window": None, "forecast": ()}, "known must be left out without hori"),
        ({"known": ("day",), "time_column": "day"}, "name it once"),
        ({"forecast": ("promo",)}, "none that are known in advance"),
    ],
)
def test_what_cannot_be_known(tmp_path, options, said):
    with pytest.raises((ValueError, TypeError), match=said):
        FileTask(written(tmp_path / "mine.csv"), **{**OPTIONS, **options})


def test_a_row_for_every_series_is_no_place_for_it(tmp_path):
    lines = [f"s{i},{i},{','.join(str(t % 7 + i) for t in range(30))}" for i in range(4)]
    head = "id,size," + ",".join(f"v{t}" for t in range(30))
    (tmp_path / "wide.csv").write_text("\n".join([head, *lines]))
    with pytest.raises(ValueError, match="none in a table with a row per sequence"):
        FileTask(tmp_path / "wide.csv", horizon=2, known=("size",))


def test_parts_of_a_date_stay_known(tmp_path):
    lines = [f"{2000 + t // 12},{t % 12 + 1},{np.sin(t):.3f}" for t in range(120)]
    (tmp_path / "a.csv").write_text("year,month,load\n" + "\n".join(lines))
    task = FileTask(tmp_path / "a.csv", horizon=2, known=("month",))
    assert task.columns.time == "year month" and task.forecast_channels == ("load",)
    assert task.preprocessing.channels == ("load", "month", "month 2 steps later")


def test_the_estimator_forecasts_the_same_as_the_command(trained, tmp_path):
    pandas = pytest.importorskip("pandas")
    _, folder, _ = trained
    model = SequenceForecaster(
        "LEM", horizon=3, window=6, forecast=["load"], known=["promo", "kind"], max_steps=300,
        random_state=0,
    )  # fmt: skip
    frame = pandas.read_csv(written(tmp_path / "mine.csv"), parse_dates=["day"])
    model.fit(frame)
    assert model.score(frame) > 0.5
    path = written(tmp_path / "new.csv", 60, future=3)
    new = pandas.read_csv(path, parse_dates=["day"])
    # With the weights of the run its forecasts are those of the run.
    kept = load(folder)
    model.model_, model.preprocessing_ = kept.model, kept.preparation
    found = model.predict(new)
    assert found.shape == (2, 1, 3)
    np.testing.assert_allclose(found[:, 0], predict(folder, path).values, rtol=1e-5)
    with pytest.raises(ValueError, match="must be known for 3 steps"):
        model.predict(new[new["load"].notna()])


def test_arrays_have_numbers_for_channels():
    X = np.random.default_rng(0).random((3, 2, 40))
    model = SequenceForecaster("GRU", horizon=2, known=[1], max_steps=2, random_state=0).fit(X)
    X[:, 0, -2:] = np.nan
    forecast = model.predict(X)
    assert forecast.shape == (3, 1, 2)
    X[:, 1, -1] += 1  # what is known of the last step that is forecast
    assert (model.predict(X) != forecast).any()


@pytest.mark.slow
def test_exported_programs_read_what_is_known_as_further_channels(trained, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    from anharmonic.data.readers import read_parts
    from anharmonic.export import write_onnx

    _, folder, _ = trained
    path = written(tmp_path / "new.csv", 60, future=3)
    kept = load(folder)
    part = read_parts(path, targets=False, columns=kept.columns)["all"]
    part = kept.preparation.with_future(part)
    write_onnx(folder, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    x = np.stack([part.x[end - 6 : end] for end in part.offsets[1:]])
    (found,) = session.run(None, {session.get_inputs()[0].name: x})
    np.testing.assert_allclose(found, predict(folder, path).values, rtol=1e-4)
