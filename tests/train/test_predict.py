"""What a trained run says of new data, and how it is measured where their targets are known."""

import dataclasses
import json

import numpy as np
import pytest
import sklearn.metrics
import torch

from anharmonic.cli.predict import csv_text
from anharmonic.nn.store import from_pretrained
from anharmonic.train import evaluate_run, fit, predict, read_report, run_folder
from anharmonic.train.results import Result


def sequences(count, features=2, seed=0):
    return 5 + 3 * np.random.default_rng(seed).random((count, 6, features))


def names_of(x):
    return np.where(x.mean((1, 2)) > 6.5, "high", "low")


def test_classes(trained, stored, tmp_path):
    x, new = sequences(30), sequences(11, seed=1)
    y = names_of(new)
    folder = trained(x=x, y=names_of(x))
    found = predict(folder, stored(x=new))
    assert found.class_names == ("high", "low")
    assert found.labels == tuple(found.class_names[i] for i in found.values.argmax(1))
    # The inputs were standardised with the constants of training.
    kept = json.loads((folder / "task.json").read_text())
    constants = kept["preprocessing"]
    assert kept["file"] == "mine.npz"
    assert "mine.npz" not in (folder / "run.json").read_text()
    scaled = (new - np.array(constants["mean"])) / np.array(constants["std"])
    output = from_pretrained(folder / "best").eval()(torch.tensor(scaled, dtype=torch.float32))
    np.testing.assert_allclose(found.values, output.softmax(1).detach(), rtol=1e-4)
    # Batches do not change predictions beyond float32 rounding.
    again = predict(folder, stored(x=new), batch_size=2)
    np.testing.assert_allclose(again.values, found.values, rtol=1e-5)

    measured = evaluate_run(folder, stored(x=new, y=y))
    assert measured.predictions.labels == found.labels
    metrics, trivial = measured.scores.metrics, measured.trivial.metrics
    accuracy = sklearn.metrics.accuracy_score(y, found.labels)
    assert metrics["accuracy"] == pytest.approx(100 * accuracy)
    most = max(["high", "low"], key=list(y).count)
    assert measured.trivial_answer == f"always {most!r}"
    assert trivial["accuracy"] == pytest.approx(100 * np.mean(y == most))
    assert measured.is_better == (metrics["accuracy"] > trivial["accuracy"])
    with pytest.warns(UserWarning, match=r"is the training file.*result.json"):
        evaluate_run(folder, tmp_path / "mine.npz")
    for arrays, said in (
        ({"y": np.array(["high", "new", "odd"])}, r"high and low; got \['new', 'odd'\]"),
        ({"y": np.array([0.5, 1.5, 2.5])}, "whole numbers or strings"),
        ({"y": np.array([["high"] * 6] * 3)}, "one per sequence, as in training; got 'one per s"),
    ):
        with pytest.raises(ValueError, match=said):
            evaluate_run(folder, stored(x=x[:3], **arrays))


def test_values_are_predicted_in_their_units(trained, stored):
    x, new = sequences(30), sequences(11, seed=1)
    folder = trained({"scale_target": True}, x=x, y=1000 + 10 * x.mean(1))
    result = json.loads((folder / "result.json").read_text())
    assert result["metric"] == "rmse" and 0 < result["test"] < 50
    y = 1000 + 10 * new.mean(1)
    found = evaluate_run(folder, stored(x=new, y=y))
    guess, metrics = found.predictions.values, found.scores.metrics
    assert abs(guess - y).max() < 50
    assert metrics["mse"] == pytest.approx(np.square(guess - y).mean(), rel=1e-3)
    assert found.trivial.metrics["mse"] == pytest.approx(y.var(axis=0).mean(), rel=1e-3)
    with pytest.raises(ValueError, match="2, as in training; got 1"):
        evaluate_run(folder, stored(x=x, y=x.mean((1, 2))))


def test_rare_classes_are_judged_by_balanced_accuracy(trained, stored):
    data = {"x": sequences(30), "y": np.array(["rest"] * 27 + ["fall"] * 3)}
    found = evaluate_run(trained(**data), stored(**data))
    assert found.judged_by == "balanced_accuracy"
    assert found.trivial.metrics["balanced_accuracy"] == 50
    assert dataclasses.replace(found, metric="accuracy").judged_by == "accuracy"


def test_nodes_of_the_test_mask(trained, tmp_path):
    rng, y = np.random.default_rng(0), np.arange(30) % 3
    graph = {"x": rng.random((30, 4)), "edge_index": rng.integers(0, 30, (2, 90))}
    masks = {"train_mask": np.arange(30) < 20, "test_mask": np.arange(30) >= 24}
    folder = trained(model="GraphCON", y=y, **graph, **masks)
    found = evaluate_run(folder, tmp_path / "mine.npz")
    assert found.scores.count == read_report(folder).count == 6
    hits = np.mean(np.array(found.predictions.labels[24:]) == y[24:].astype(str))
    assert found.scores.metrics["accuracy"] == pytest.approx(100 * hits)
    np.savez(tmp_path / "other.npz", **graph, y=np.where(y == 1, -1, y))
    assert evaluate_run(folder, tmp_path / "other.npz").scores.count == 20


@pytest.mark.parametrize("are_classes", [True, False])
def test_every_step_of_ragged_sequences_is_predicted(trained, tmp_path, are_classes):
    lengths = [3, 6, 2, 5] * 5
    x = np.random.default_rng(0).random((sum(lengths), 2))
    y = np.where(x[:, 0] > 0.5, "high", "low") if are_classes else x[:, :1]
    folder = trained(x=x, y=y, offsets=np.cumsum([0, *lengths]))
    found = predict(folder, tmp_path / "mine.npz", batch_size=3)
    assert [row.shape for row in found.values] == [(n, 1 + are_classes) for n in lengths]
    assert (found.labels is None) != are_classes
    for steps, rows in zip(found.labels or (), found.values, strict=are_classes):
        assert steps == tuple(found.class_names[i] for i in rows.argmax(1))
        np.testing.assert_allclose(rows.sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize(("way", "model"), [("step", "LEM"), ("channel", "LSTM")])
def test_the_time_between_samples_counts(trained, tmp_path, stored, way, model):
    x, elapsed = sequences(30), np.tile([0.0, 2, 2, 2, 1, 2], (30, 1))
    folder = trained({"elapsed": way}, model, x=x, y=x[:, 0, 0] > 6.5, elapsed=elapsed)
    first = predict(folder, tmp_path / "mine.npz").values
    with pytest.warns(UserWarning, match="median time is 1 between samples, in training 2"):
        fast = predict(folder, stored(x=x, elapsed=elapsed / 2)).values
    assert not np.allclose(fast, first, rtol=1e-3)
    with pytest.raises(ValueError, match=r"new.npz must hold the time between samples"):
        predict(folder, stored(x=x))


def test_a_recording_gets_the_mean_of_its_windows(trained, tmp_path, stored):
    x = np.random.default_rng(0).random((20, 23, 2))
    folder = trained({"window": 5}, x=x, y=x[:, 0, 0] > 0.5)
    whole = predict(folder, tmp_path / "mine.npz")
    assert whole.values.shape == (20, 2)
    windows = x[3, [*range(20), *range(18, 23)]].reshape(5, 5, 2)
    few = predict(folder, stored(x=windows)).values
    np.testing.assert_allclose(whole.values[3], few.mean(axis=0), rtol=1e-5)


def test_every_step_of_a_recording_is_predicted_once(trained, tmp_path, stored):
    x = np.random.default_rng(0).random((2, 103, 2))
    folder = trained({"window": 10}, x=x, y=(x[:, :, 0] > 0.5).astype(int))
    found = predict(folder, tmp_path / "mine.npz")
    assert [len(steps) for steps in found.labels] == [103, 103]
    end = predict(folder, stored(x=x[:, -10:])).values
    np.testing.assert_allclose(found.values[1][-3:], end[1][-3:], rtol=1e-5)


def test_forecasts_are_compared_with_the_last_known_value(trained, stored):
    t = np.arange(120.0)
    folder = trained({"horizon": 2, "window": 4}, x=np.stack([t, t + 50]))
    found = predict(folder, stored(x=np.stack([t, t + 50])))
    assert found.labels is None and found.values.shape == (2, 2)
    np.testing.assert_allclose(found.values - [[119], [169]], 0, atol=6)
    x = np.sin(np.arange(20) / 5 + 1)
    measured = evaluate_run(folder, stored(x=x[None]))
    assert measured.scores.count == 20 - 4 - 2 + 1
    errors = np.stack([x[4:19], x[5:20]]) - x[3:18]
    rmse = np.sqrt(np.square(errors).mean())
    assert measured.trivial.metrics["rmse"] == pytest.approx(rmse, rel=1e-5)
    assert measured.predictions.values.shape == (1, 2)


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
    # Where the season does not go on, the last value is the better answer.
    steady = "\n".join(["a,b", *(f"{v},{100 * v}" for v in range(90))])
    (tmp_path / "new.csv").write_text(steady)
    assert evaluate_run(folder, tmp_path / "new.csv").trivial_answer == "the last known value"


def test_what_is_no_run_no_data_or_no_prediction_is_refused(tiny, environment, tmp_path, stored):
    run = tiny(epochs=1)
    folder, new = run_folder(run, environment), stored(x=sequences(3, features=3))
    with pytest.raises(
        FileNotFoundError, match=r"got a folder with .*new\.npz; .*anharmonic train"
    ):
        predict(tmp_path, new)
    fit(run, environment)
    for place, said in ((tmp_path, "the data .* must be .*got a folder"), ("no-such", "no-such")):
        with pytest.raises(FileNotFoundError, match=said):
            predict(folder, place)
    with pytest.raises(ValueError, match="must be 2, as in training; got 3"):
        predict(folder, new)
    with pytest.raises(ValueError, match="batch_size must be"):
        predict(folder, new, batch_size=0)
    assert predict(folder, stored(x=sequences(3))).values.shape == (3, 1)


def test_a_new_table_is_read_as_the_one_of_training(trained, tmp_path):
    def write(name, *lines):
        (tmp_path / name).write_text("\n".join(lines))
        return tmp_path / name

    x = np.random.default_rng(0).random((30, 6)).round(3)
    kinds = ["high" if total > 3 else "low" for total in x.sum(1)]
    bare = ["v0,v1,v2,v3,v4,v5", *(",".join(map(str, row)) for row in x.tolist())]
    named = [f"{row},{kind}" for row, kind in zip(bare, ["kind", *kinds], strict=True)]
    folder = trained({"target_column": "kind"}, name="mine.csv", text="\n".join(named))
    whole = predict(folder, tmp_path / "mine.csv")
    assert set(whole.labels) <= {"high", "low"}
    new = write("new.csv", *bare)
    np.testing.assert_array_equal(predict(folder, new).values, whole.values)
    with pytest.raises(ValueError, match=r"must have the target column 'kind'.*the columns v0, v1"):
        evaluate_run(folder, new)
    found = evaluate_run(folder, write("new.csv", *named[:6])).scores.classes
    assert [one.support for one in found] == [kinds[:5].count(name) for name in ("high", "low")]
    with pytest.raises(ValueError, match=r"first row of new\.csv .*names of columns"):
        predict(folder, write("new.csv", "0.5,0.2,0.3", "0.1,0.2,0.3"))


def test_a_long_table_is_read_by_its_names(trained, tmp_path):
    rng = np.random.default_rng(0)
    lines = [(f"r{i // 5}", rng.random(), 5 + rng.random(), i // 5 % 2) for i in range(100)]
    text = "\n".join(["id,a,b,label", *(f"{i},{a},{b},{'ud'[k]}" for i, a, b, k in lines)])
    folder = trained(name="mine.csv", text=text)
    new = tmp_path / "new.csv"
    new.write_text("\n".join(["b,a,id", *(f"{b},{a},{i}" for i, a, b, _ in lines)]))
    found = predict(folder, new)
    np.testing.assert_array_equal(found.values, predict(folder, tmp_path / "mine.csv").values)
    assert found.ids == tuple(f"r{i}" for i in range(20))
    assert csv_text(found).split("\n")[2].startswith("1,r1,")


def test_predictions_at_every_step_have_the_times_of_the_file(trained, tmp_path):
    seconds = [(i * 37) % 100 for i in range(100)]  # in any order
    rows = [f"2024-01-31T12:{s // 60:02d}:{s % 60:02d},{s % 7 / 7},{'ud'[s % 2]}" for s in seconds]
    text = "\n".join(["time,a,label", *rows])
    folder = trained({"window": 10, "split": "time"}, name="mine.csv", text=text)
    found = predict(folder, tmp_path / "mine.csv")
    lines = csv_text(found).splitlines()
    assert lines[0].startswith("index,step,time,prediction,")
    assert lines[62].startswith("0,61,2024-01-31T12:01:01,")
    assert found.times[0].dtype.kind == "M" and len(found.times[0]) == 100
    result = json.loads((folder / "result.json").read_text())
    assert result["tested"] > result["tested_sequences"] == 1
