"""What is said of a trained run on data with known targets."""

import dataclasses

import numpy as np
import pytest
import sklearn.metrics

from anharmonic.train import evaluate_run, predict, read_report
from anharmonic.train.results import Result


def sequences(count, seed=0):
    return np.random.default_rng(seed).random((count, 6, 2))


def names_of(x):
    return np.where(x.mean((1, 2)) > 0.5, "high", "low")


def test_classes(trained, stored, tmp_path):
    x, new = sequences(30), sequences(11, 1)
    folder = trained(x=x, y=names_of(x))
    y = names_of(new)
    found = evaluate_run(folder, stored(x=new, y=y))
    labels = found.predictions.labels
    assert labels == predict(folder, stored(x=new)).labels
    assert found.scores.metrics["accuracy"] == pytest.approx(
        100 * sklearn.metrics.accuracy_score(y, labels)
    )
    matrix = sklearn.metrics.confusion_matrix(y, labels, labels=["high", "low"])
    np.testing.assert_array_equal(found.scores.confusion, matrix)
    assert found.scores.metrics["auroc"] == pytest.approx(
        sklearn.metrics.roc_auc_score(y == "low", found.predictions.values[:, 1]), rel=1e-6
    )
    most = max(["high", "low"], key=list(y).count)
    assert found.trivial_answer == f"always {most!r}"
    assert found.trivial.metrics["accuracy"] == pytest.approx(100 * np.mean(y == most))
    assert found.trivial.metrics["auroc"] == 0.5
    better = found.scores.metrics["accuracy"] > found.trivial.metrics["accuracy"]
    assert found.is_better == better
    with pytest.warns(UserWarning, match=r"is the training file.*result.json"):
        evaluate_run(folder, tmp_path / "mine.npz")


def test_values(trained, stored):
    x, new = sequences(30), sequences(11, 1)
    folder = trained(x=x, y=x.mean(1))
    found = evaluate_run(folder, stored(x=new, y=new.mean(1)))
    guess, y = found.predictions.values, new.mean(1)
    assert found.scores.metrics["mse"] == pytest.approx(np.square(guess - y).mean(), rel=1e-5)
    assert found.scores.metrics["r2"] == pytest.approx(sklearn.metrics.r2_score(y, guess), rel=1e-4)
    assert found.trivial.metrics["r2"] == pytest.approx(0, abs=1e-5)
    assert found.trivial.metrics["mse"] == pytest.approx(y.var(axis=0).mean(), rel=1e-5)


def test_a_table_and_its_target_column(trained, tmp_path):
    rng = np.random.default_rng(0)
    head = "v0,v1,v2,outcome\n"
    rows = [",".join([*(f"{v:.3f}" for v in rng.random(3)), kind]) for kind in ["yes", "no"] * 15]
    folder = trained(name="mine.csv", text=head + "\n".join(rows))
    new = tmp_path / "new.csv"
    new.write_text(head + "\n".join(rows[:5]))
    assert [one.support for one in evaluate_run(folder, new).scores.classes] == [2, 3]
    new.write_text("v0,v1,v2\n0.1,0.2,0.3\n")
    with pytest.raises(
        ValueError,
        match=r"new.csv must have the target column 'outcome'.*got the columns v0, v1, v2;",
    ):
        evaluate_run(folder, new)


def test_forecasts_are_compared_with_the_last_known_value(trained, stored):
    steps = np.arange(300.0)
    folder = trained({"horizon": 2, "window": 4}, x=np.sin(steps / 5)[None])
    x = np.sin(np.arange(20) / 5 + 1)
    found = evaluate_run(folder, stored(x=x[None]))
    assert found.scores.count == 20 - 4 - 2 + 1
    now = x[3:18]
    errors = np.stack([x[4:19] - now, x[5:20] - now])
    assert found.trivial.metrics["rmse"] == pytest.approx(
        np.sqrt(np.square(errors).mean()), rel=1e-5
    )
    assert found.predictions.values.shape == (1, 2)


def test_forecasts_are_compared_with_the_season_and_by_channel(trained, tmp_path):
    rng = np.random.default_rng(0)
    again = np.tile(rng.normal(size=12) * 5, 30)
    text = "\n".join(["a,b", *(f"{v:.3f},{100 * v:.1f}" for v in again + rng.normal(size=360))])
    folder = trained({"horizon": 2, "window": 6}, name="mine.csv", text=text)
    (tmp_path / "new.csv").write_text(text)
    found = evaluate_run(folder, tmp_path / "new.csv")
    assert found.trivial_answer == "the value 12 steps before"
    first, second = found.trivial.outputs
    assert (first.name, second.name) == ("a", "b")
    assert second.rmse == pytest.approx(100 * first.rmse, rel=1e-2)
    assert first.rmse == pytest.approx(np.sqrt(2), rel=0.2)
    by_channel = Result.from_json((folder / "result.json").read_text()).by_channel
    report = read_report(folder)
    assert by_channel == {one.name: one.rmse for one in report.outputs}
    assert list(by_channel) == ["a", "b"] and len(report.outputs[0].rmse_by_step) == 2


def test_rare_classes_are_judged_by_balanced_accuracy(trained, stored):
    y = np.array(["rest"] * 27 + ["fall"] * 3)
    folder = trained(x=sequences(30), y=y)
    found = evaluate_run(folder, stored(x=sequences(30), y=y))
    assert found.judged_by == "balanced_accuracy"
    assert found.trivial.metrics["balanced_accuracy"] == 50
    assert dataclasses.replace(found, metric="accuracy").judged_by == "accuracy"


def test_nodes_of_the_test_mask(trained, tmp_path):
    rng = np.random.default_rng(0)
    graph = {
        "x": rng.random((30, 4)),
        "edge_index": rng.integers(0, 30, (2, 90)),
        "y": np.array([0, 1, 2] * 10),
    }
    masks = {"train_mask": np.arange(30) < 20, "test_mask": np.arange(30) >= 24}
    folder = trained(model="GraphCON", **graph, **masks)
    found = evaluate_run(folder, tmp_path / "mine.npz")
    assert found.scores.count == 6
    guess = np.array(found.predictions.labels[24:])
    hits = np.mean(guess == graph["y"][24:].astype(str))
    assert found.scores.metrics["accuracy"] == pytest.approx(100 * hits)
    np.savez(tmp_path / "other.npz", **graph | {"y": np.array([0, -1, 2] * 10)})
    assert evaluate_run(folder, tmp_path / "other.npz").scores.count == 20


def test_targets_that_do_not_fit(trained, stored):
    x = sequences(30)
    folder = trained(x=x, y=names_of(x))
    for y, said in (
        (np.array(["high", "new", "odd"]), r"high and low; got \['new', 'odd'\]"),
        (np.array([0.5, 1.5, 2.5]), "whole numbers or strings"),
        (np.array([["high"] * 6] * 3), "one per sequence, as in training; got 'one per step'"),
    ):
        with pytest.raises(ValueError, match=said):
            evaluate_run(folder, stored(x=x[:3], y=y))
    with pytest.raises(ValueError, match=r"new.npz must be x and y; got \['x'\]"):
        evaluate_run(folder, stored(x=x[:3]))
    folder = trained(x=x, y=x.mean(1))
    with pytest.raises(ValueError, match="2, as in training; got 1"):
        evaluate_run(folder, stored(x=x, y=x.mean((1, 2))))
