"""Forecasts: columns that are known in advance, quantiles, and when the steps ahead are."""

import csv
import dataclasses
import re

import numpy as np
import pytest
import sklearn.metrics
import torch

from anharmonic.cli.main import main
from anharmonic.data.metrics import TaskMetric
from anharmonic.data.own import FileTask
from anharmonic.data.scores import score_table
from anharmonic.data.sequences import Sequences
from anharmonic.data.windows import future_times, with_future
from anharmonic.estimators import SequenceForecaster
from anharmonic.train import RunEnvironment, evaluate_run, predict, read_report
from anharmonic.train.trained import trained as load

LEVELS = (0.1, 0.5, 0.9)
ADVANCE = {"forecast": ("load",), "known": ("promo", "kind")}
OPTIONS = {"horizon": 3, "window": 6, **ADVANCE, "quantiles": LEVELS}


def written(path, steps=150, future=0):
    """Loads that jump where there is a promotion, at random: the past does not say when."""
    lines = ["day,shop,load,promo,kind,staff"]
    for seed, shop in enumerate(("s0", "s1")):
        rng = np.random.default_rng(seed)
        for t, now in enumerate(rng.integers(0, 2, steps)):
            ahead = t >= steps - future
            day = np.datetime64("2024-01-01") + t + 2 * ahead  # no work on two days
            load, staff = ("", "") if ahead else (f"{10 + 5 * now + 0.1 * rng.normal():.3f}", t % 5)
            lines.append(f"{day},{shop},{load},{now},{'ab'[t % 2]},{staff}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory, filled):
    """A result, its folder and its task."""
    out = tmp_path_factory.mktemp("forecasts")
    here = RunEnvironment(out=out, file=written(out / "mine.csv"), threads=1, progress=False)
    given = {"task_options": OPTIONS, "epochs": 30, "lr": 0.02, "batch_size": 32}
    given["model_options"] = {"hidden_size": 8, "bidirectional": False}
    return filled("LEM", given, here)


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
    assert result.metric == "pinball" and not result.higher_is_better
    assert result.test < 0.5 * result.trivial
    report = read_report(folder)
    assert report.metrics["pinball"] == pytest.approx(result.test)
    assert [one.quantile for one in report.quantiles] == list(LEVELS)
    assert [one.name for one in report.outputs] == ["load"]
    found = evaluate_run(folder, written(tmp_path / "new.csv", future=3))
    assert found.scores.metrics["rmse"] < 0.5 * found.trivial.metrics["rmse"]
    assert found.judged_by == "pinball" and found.scores.quantiles
    # The baseline is that of training, so about 80 % of the values lie in its interval.
    assert found.trivial_answer == "the last known value plus quantiles of the changes since then"
    assert found.trivial.metrics["coverage"] == pytest.approx(80, abs=2)
    path = written(tmp_path / "whole.csv", steps=120)
    with pytest.warns(UserWarning, match="whole.csv has values to forecast in its last 3 steps"):
        whole = evaluate_run(folder, path)
    assert whole.scores.count == 2 * (120 - 6 - 3 + 1)
    assert whole.predictions.ahead.times[0, -1] == np.datetime64("2024-04-29")  # the last row


def test_metrics_are_those_of_scikit_learn(trained):
    _, _, task = trained
    batch = task.loaders(0, 64).test[0]
    guess = batch.select(torch.randn(batch.y.shape, generator=torch.Generator().manual_seed(0)))
    y, parts = batch.y[:, :3], guess.split(3, 1)
    assert torch.equal(batch.y, y.repeat(1, 3))
    assert (torch.stack(parts).diff(dim=0) >= 0).all()  # quantiles never cross
    losses = [
        sklearn.metrics.mean_pinball_loss(y.ravel(), part.ravel(), alpha=q)
        for q, part in zip(LEVELS, parts, strict=True)
    ]
    metric = TaskMetric("pinball")
    metric.update(guess, batch)
    assert metric.value() == pytest.approx(np.mean(losses), rel=1e-5)
    found = score_table("value", guess, y, ("load",), 3, LEVELS)
    assert [one.pinball for one in found.quantiles] == pytest.approx(losses, rel=1e-5)
    inside = (parts[0] <= y) & (y <= parts[2])
    assert found.metrics["coverage"] == pytest.approx(100 * float(inside.float().mean()))


@pytest.mark.filterwarnings("ignore")  # a promotion of 7 is far from training
def test_predictions_have_the_dates_of_the_rows_given(trained, tmp_path):
    _, folder, _ = trained
    path = written(tmp_path / "new.csv", 60, future=4)
    assert main(["predict", str(folder), str(path), "--output", str(tmp_path / "p.csv")]) == 0
    lines = list(csv.DictReader((tmp_path / "p.csv").open()))
    dates = ["2024-02-28", "2024-02-29", "2024-03-01"]
    assert [line["time"] for line in lines] == 2 * dates
    assert [line["id"] for line in lines] == 3 * ["s0"] + 3 * ["s1"]
    assert [line["step"] for line in lines] == 2 * ["1", "2", "3"]
    with pytest.warns(UserWarning, match="new.csv has rows for up to 4 steps .*forecasts 3 steps"):
        values = predict(folder, path).values
    for place, level in enumerate(LEVELS):
        column = [float(line[f"load_q{level:g}"]) for line in lines]
        assert column == pytest.approx(values.reshape(2, 3, 3)[:, place].ravel(), rel=1e-6)
    # Another future, other forecasts; of what comes after it nothing is seen.
    text = path.read_text().splitlines()
    for row in (58, 60):
        text[row] = text[row].replace(",1,", ",7,").replace(",0,", ",7,")
    (tmp_path / "other.csv").write_text("\n".join(text))
    other = predict(folder, tmp_path / "other.csv").values
    assert (other[0] != values[0]).any() and np.array_equal(other[1], values[1])
    text[60] = text[60].replace(",7,", ",9,")
    (tmp_path / "other.csv").write_text("\n".join(text))
    assert np.array_equal(other, predict(folder, tmp_path / "other.csv").values)


@pytest.mark.parametrize(
    "zone, hour", [("T00:00:00+02:00", 22), ("T23:00Z", 23), (" 22:00:00 UTC", 22)]
)
def test_dates_with_a_time_zone_are_marked_as_utc(trained, tmp_path, zone, hour):
    path = written(tmp_path / "new.csv", 60, future=3)
    path.write_text(re.sub(r"(?m)^(2024-\d\d-\d\d)", rf"\g<1>{zone}", path.read_text()))
    assert main(["predict", str(trained[1]), str(path), "--output", str(tmp_path / "p.csv")]) == 0
    line = next(csv.DictReader((tmp_path / "p.csv").open()))
    assert line["time"] == f"2024-02-{28 if hour == 22 and '+' in zone else 29}T{hour}:00:00Z"


@pytest.mark.parametrize(
    ("future", "gap", "said"),
    [(0, None, "got 0 in 's0'; add rows"), (2, None, "got 2 in 's0'"), (3, 59, "got 1 in 's0'")],
)
def test_a_future_that_is_not_known(trained, tmp_path, future, gap, said):
    path = written(tmp_path / "new.csv", 60, future)
    text = path.read_text().splitlines()
    if gap:
        text[gap] = text[gap].replace(",1,", ",,").replace(",0,", ",,")
    path.write_text("\n".join(text))
    must = "promo and kind must be known for 3 steps after the last value of load in new.csv; "
    with pytest.raises(ValueError, match=must + said):
        predict(trained[1], path)


def test_rows_of_the_future_may_be_in_the_file_to_train_on(tmp_path):
    task = FileTask(written(tmp_path / "mine.csv", future=3), **OPTIONS)
    cut = FileTask(written(tmp_path / "mine.csv", 147), **OPTIONS)
    assert task.sizes == cut.sizes and not task.preprocessing.masked


ALONE = {"horizon": None, "window": None, "forecast": ()}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"known": ("prono",)}, "did you mean 'promo'"),
        ({"known": ("promo", "kind", "load")}, "none that are known in advance"),
        ({"window": 2}, "window must be at least horizon=3"),
        (ALONE | {"quantiles": ()}, "known must be left out without hori"),
        (ALONE | {"known": ()}, "quantiles .*without horizon"),
        ({"known": ("day",), "time_column": "day"}, "name it once"),
        ({"forecast": ("promo",)}, "none that are known in advance"),
        ({"quantiles": (0.1, 0.9)}, "0.5 among them"),
        ({"quantiles": (0.5, 0.1)}, "rising"),
        ({"quantiles": (0.5, 1.0)}, "rising"),
        ({"quantiles": (0.5,), "metric": "rmse"}, "metric with quantiles"),
    ],
)
def test_what_cannot_be_known_or_forecast(tmp_path, options, said):
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
    model = SequenceForecaster("LEM", **OPTIONS, max_steps=300, random_state=0)
    frame = pandas.read_csv(written(tmp_path / "mine.csv"), parse_dates=["day"])
    model.fit(frame)
    assert model.score(frame) > 0.5
    path = written(tmp_path / "new.csv", 60, future=3)
    new = pandas.read_csv(path, parse_dates=["day"])
    # With the weights of the run its forecasts are those of the run.
    kept = load(folder)
    model.model_, model.preprocessing_ = kept.model, kept.preparation
    found = model.predict(new)
    assert found.shape == (2, 1, 3, 3)
    rows = predict(folder, path).values.reshape(2, 3, 3)
    np.testing.assert_allclose(found[:, 0], rows.transpose(0, 2, 1), rtol=1e-5)
    with pytest.raises(ValueError, match="must be known for 3 steps"):
        model.predict(new[new["load"].notna()])


@pytest.mark.parametrize(
    ("days", "interval", "ahead"),
    [
        ("2023-11-30 2023-12-31 2024-01-31", 31, "2024-02-29 2024-03-31 2024-04-30"),
        ("2023-10-15 2023-11-15 2023-12-15", 30, "2024-01-15 2024-02-15 2024-03-15"),
        ("2023-10-30 2023-11-30 2023-12-30", 30, "2024-01-30 2024-02-29 2024-03-30"),
        ("2023-04-01 2023-07-01 2023-10-01", 91, "2024-01-01 2024-04-01 2024-07-01"),
        ("2023-08-31 2023-09-30 2023-12-31", 31, "2024-01-31 2024-02-29 2024-03-31"),
        ("2023-04-01 2023-06-01", 61, "2023-08-01 2023-10-01 2023-12-01"),
        ("2017-01-01 2018-01-01 2019-01-01", 365, "2020-01-01 2021-01-01 2022-01-01"),
        ("2024-02-01 2024-03-01", 1, "2024-03-02 2024-03-03 2024-03-04"),
        ("2024-02-01 2024-02-08 2024-02-15", 7, "2024-02-22 2024-02-29 2024-03-07"),
    ],
)
def test_months_go_on_as_months(days, interval, ahead):
    days = np.array(days.split(), "M8[D]")
    gaps = np.concatenate([[0], np.diff(days).astype(int) * 86400]).astype("f4")
    x, ends = np.zeros((len(days), 1), "f4"), np.array([0, len(days)])
    part = Sequences("here", x, ends, elapsed=gaps, times=days[:1], interval=interval * 86400.0)
    assert future_times(part, 3)[0].astype("M8[D]").astype(str).tolist() == ahead.split()


def test_numbers_go_on_and_unknown_times_stay_unknown():
    x, ends = np.zeros((6, 1), "f4"), np.array([0, 6])
    part = Sequences("here", x, ends, times=np.array([2.0]), interval=0.5)
    assert future_times(part, 2).tolist() == [[5.0, 5.5]]
    assert future_times(part, 2, np.array([3])).tolist() == [[3.5, 4.0]]
    assert future_times(dataclasses.replace(part, times=None), 2) is None
    # Faster than a millisecond; a tenth of a second keeps the rounding of float32 hidden.
    start = np.array(["2024-05-01T00:00:00"], "M8[ns]")
    for interval, expected in ((2.5e-4, "00:00:00.001750"), (0.1, "00:00:00.700")):
        elapsed = np.full(6, interval, np.float32)
        fast = dataclasses.replace(part, times=start, interval=interval, elapsed=elapsed)
        assert str(future_times(fast, 2)[0, 1]) == f"2024-05-01T{expected}"
