"""Forecasts of quantiles, and when the steps ahead are."""

import csv
import dataclasses
import io

import numpy as np
import pytest
import sklearn.metrics
import torch

from anharmonic.cli.predict import csv_text
from anharmonic.data.base import Batch
from anharmonic.data.metrics import TaskMetric
from anharmonic.data.own import FileTask
from anharmonic.data.scores import score_table
from anharmonic.data.sequences import Sequences
from anharmonic.data.windows import future_times
from anharmonic.train import RunEnvironment, evaluate_run, predict, read_report

LEVELS = (0.1, 0.5, 0.9)
OPTIONS = {"horizon": 2, "window": 6, "quantiles": LEVELS}


def table(series=2, steps=150):
    rng = np.random.default_rng(0)
    rows = ["day,shop,load,heat"]
    for shop in range(series):
        for t in range(steps):
            day = np.datetime64("2024-01-01") + t
            load, heat = 50 + 5 * rng.normal(), 10 + np.sin(t)
            rows.append(f"{day},s{shop},{load:.3f},{heat:.3f}")
    return "\n".join(rows)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, filled):
    out = tmp_path_factory.mktemp("quantiles")
    (out / "mine.csv").write_text(table())
    here = RunEnvironment(out=out, file=out / "mine.csv", threads=1, progress=False)
    given = {
        "model_options": {"hidden_size": 6, "bidirectional": False},
        "task_options": OPTIONS,
        **{"epochs": 3, "lr": 0.02, "batch_size": 32},
    }
    return *filled("LEM", given, here), here.file


def test_losses_metric_and_report_are_those_of_scikit_learn(trained):
    result, folder, task, _ = trained
    assert result.metric == "pinball" and not result.higher_is_better
    report = read_report(folder)
    assert report.metrics["pinball"] == pytest.approx(result.test)
    assert [one.quantile for one in report.quantiles] == list(LEVELS)
    assert [one.name for one in report.outputs] == ["load", "heat"]
    assert result.test < 1.2 * result.trivial
    batch = task.loaders(0, 64).test[0]
    guess = batch.select(torch.randn(batch.y.shape, generator=torch.Generator().manual_seed(0)))
    metric = TaskMetric("pinball")
    metric.update(guess, batch)
    width = guess.shape[1] // 3
    y = batch.y[:, :width]
    assert torch.equal(batch.y, y.repeat(1, 3))
    parts = guess.split(width, 1)
    losses = [
        sklearn.metrics.mean_pinball_loss(y.ravel(), part.ravel(), alpha=q)
        for q, part in zip(LEVELS, parts, strict=True)
    ]
    assert metric.value() == pytest.approx(np.mean(losses), rel=1e-5)
    found = score_table("value", guess, y, ("load", "heat"), 2, LEVELS)
    assert [one.pinball for one in found.quantiles] == pytest.approx(losses, rel=1e-5)
    inside = (parts[0] <= y) & (y <= parts[2])
    assert found.metrics["coverage"] == pytest.approx(100 * float(inside.float().mean()))
    rmse = sklearn.metrics.root_mean_squared_error(y.ravel(), parts[1].ravel())
    assert found.metrics["rmse"] == pytest.approx(rmse, rel=1e-5)


def test_quantiles_never_cross():
    quantiles = torch.tensor([LEVELS]).expand(4, -1)
    units = (torch.zeros(4, 6), torch.ones(4, 6))
    batch = Batch(torch.zeros(4, 1, 1), torch.zeros(4, 6), None, None, *units, quantiles=quantiles)
    found = batch.select(torch.randn(4, 6)).reshape(4, 3, 2)
    assert (found.diff(dim=1) >= 0).all()


def test_predictions_are_rows_with_dates(trained):
    _, folder, _, path = trained
    found = predict(folder, path)
    assert found.values.shape == (2, 3 * 2 * 2)
    rows = list(csv.DictReader(io.StringIO(csv_text(found))))
    assert len(rows) == 4
    assert [row["time"] for row in rows] == 2 * ["2024-05-30", "2024-05-31"]
    assert [row["id"] for row in rows] == ["s0", "s0", "s1", "s1"]
    assert [row["step"] for row in rows] == ["1", "2", "1", "2"]
    values = found.values.reshape(2, 3, 2, 2)
    for i, row in enumerate(rows):
        for c, name in enumerate(("load", "heat")):
            for q, level in enumerate(LEVELS):
                wanted = values[i // 2, q, i % 2, c]
                assert float(row[f"{name}_q{level:g}"]) == pytest.approx(wanted, rel=1e-6)
    again = evaluate_run(folder, path)
    assert again.judged_by == "pinball" and again.scores.quantiles
    assert csv_text(again.predictions) == csv_text(found)
    # The baseline is that of training, so about 80 % of the values lie in its interval.
    assert again.trivial_answer == "the last known value plus quantiles of its changes"
    assert again.trivial.metrics["coverage"] == pytest.approx(80, abs=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"quantiles": (0.1, 0.9)}, "0.5 among them"),
        ({"quantiles": (0.5, 0.1)}, "rising"),
        ({"quantiles": (0.5, 1.0)}, "rising"),
        ({"quantiles": (0.5,), "metric": "rmse"}, "metric with quantiles"),
        ({"quantiles": (0.5,), "horizon": None, "window": None}, "without horizon"),
    ],
)
def test_what_are_no_quantiles(tmp_path, options, said):
    (tmp_path / "mine.csv").write_text(table(1))
    with pytest.raises(ValueError, match=said):
        FileTask(tmp_path / "mine.csv", **{**OPTIONS, **options})


def dated(days, interval):
    days = np.array(days, "M8[D]")
    gaps = np.concatenate([[0], np.diff(days).astype(int) * 86400]).astype("f4")
    x, ends = np.zeros((len(days), 1), "f4"), np.array([0, len(days)])
    part = Sequences("here", x, ends, elapsed=gaps, times=days[:1], interval=interval * 86400.0)
    return future_times(part, 3)[0].astype("M8[D]").astype(str).tolist()


@pytest.mark.parametrize(
    ("days", "interval", "ahead"),
    [
        ("2023-11-30 2023-12-31 2024-01-31", 31, "2024-02-29 2024-03-31 2024-04-30"),
        ("2023-10-15 2023-11-15 2023-12-15", 30, "2024-01-15 2024-02-15 2024-03-15"),
        ("2023-10-30 2023-11-30 2023-12-30", 30, "2024-01-30 2024-02-29 2024-03-30"),
        ("2023-04-01 2023-07-01 2023-10-01", 91, "2024-01-01 2024-04-01 2024-07-01"),
        ("2024-02-01 2024-02-08 2024-02-15", 7, "2024-02-22 2024-02-29 2024-03-07"),
    ],
)
def test_months_go_on_as_months(days, interval, ahead):
    assert dated(days.split(), interval) == ahead.split()


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
