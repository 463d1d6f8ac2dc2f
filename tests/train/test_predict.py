import json

import numpy as np
import pytest
import torch

from anharmonic.cli.predict import csv_text
from anharmonic.nn.store import from_pretrained, save_pretrained
from anharmonic.train import fit, predict
from anharmonic.train.folder import run_folder


def sequences(count, features=2):
    return 5 + 3 * np.random.default_rng(0).random((count, 6, features))


def test_classes(trained, stored):
    x = sequences(30)
    folder = trained(x=x, y=np.where(x.mean((1, 2)) > 6.5, "high", "low"))
    found = predict(folder, stored(x=x[:7]))
    assert found.class_names == ("high", "low")
    assert found.labels == tuple(found.class_names[i] for i in found.values.argmax(1))
    # The inputs were standardised with the constants of training.
    kept = json.loads((folder / "task.json").read_text())
    constants = kept["preprocessing"]
    assert kept["file"] == "mine.npz"
    assert "mine.npz" not in (folder / "run.json").read_text()
    scaled = (x[:7] - np.array(constants["mean"])) / np.array(constants["std"])
    output = from_pretrained(folder / "best").eval()(torch.tensor(scaled, dtype=torch.float32))
    np.testing.assert_allclose(found.values, output.softmax(1).detach(), rtol=1e-4)
    # Batches do not change predictions beyond float32 rounding.
    again = predict(folder, stored(x=x[:7]), batch_size=2)
    np.testing.assert_allclose(again.values, found.values, rtol=1e-5)


@pytest.mark.parametrize("are_classes", [True, False])
def test_every_step_of_ragged_sequences_is_predicted(trained, tmp_path, are_classes):
    lengths = [3, 6, 2, 5] * 5
    x = np.random.default_rng(0).random((sum(lengths), 2))
    y = np.where(x[:, 0] > 0.5, "high", "low") if are_classes else x[:, :1]
    folder = trained(x=x, y=y, offsets=np.cumsum([0, *lengths]))
    found = predict(folder, tmp_path / "mine.npz", batch_size=3)
    assert [row.shape for row in found.values] == [(n, 1 + are_classes) for n in lengths]
    if not are_classes:
        assert found.labels is None
        return
    assert found.class_names == ("high", "low")
    for steps, rows in zip(found.labels, found.values, strict=True):
        assert steps == tuple(found.class_names[i] for i in rows.argmax(1))
        np.testing.assert_allclose(rows.sum(1), 1, rtol=1e-5)


def test_scaled_targets_are_predicted_in_their_units(trained, tmp_path):
    x = sequences(30)
    folder = trained({"scale_target": True}, x=x, y=1e6 + 10 * x.mean((1, 2)))
    found = predict(folder, tmp_path / "mine.npz")
    assert abs(found.values - 1e6).max() < 500
    result = json.loads((folder / "result.json").read_text())
    assert result["metric"] == "rmse" and 0 < result["test"] < 500


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


def test_forecast(trained, tmp_path):
    t = np.arange(120.0)
    folder = trained({"horizon": 2}, x=np.stack([t, t + 50]))
    found = predict(folder, tmp_path / "mine.npz")
    assert found.labels is None
    assert found.values.shape == (2, 2)
    np.testing.assert_allclose(found.values - [[119], [169]], 0, atol=6)


def test_errors(tiny, environment, tmp_path, stored):
    run = tiny(epochs=1)
    folder = run_folder(run, environment)
    new = stored(x=sequences(3, features=3))
    (tmp_path / "empty").mkdir()
    for place, said in (
        (folder, r"folder of a finished run.*where nothing is; pass"),
        (tmp_path / "empty", r"got an empty folder; .*anharmonic train"),
        (tmp_path, r"got a folder with .*new\.npz"),
    ):
        with pytest.raises(FileNotFoundError, match=said):
            predict(place, new)
    fit(run, environment)
    for place, said in ((tmp_path, "the data .* must be .*got a folder"), ("no-such", "no-such")):
        with pytest.raises(FileNotFoundError, match=said):
            predict(folder, place)
    with pytest.raises(ValueError, match="must be 2, as in training; got 3"):
        predict(folder, new)
    with pytest.raises(ValueError, match="batch_size must be"):
        predict(folder, new, batch_size=0)
    assert predict(folder, stored(x=sequences(3))).values.shape == (3, 1)
    model = from_pretrained(folder / "best")
    with torch.no_grad():
        next(model.parameters()).fill_(torch.nan)
    save_pretrained(model, folder / "best")
    with pytest.raises(ValueError, match=r"predictions must be finite; got 'NaN"):
        predict(folder, new)


def test_a_new_table_is_read_as_the_one_of_training(trained, tmp_path):
    x = np.random.default_rng(0).random((30, 6)).round(3)
    values = ",".join(f"v{i}" for i in range(6))
    rows = [",".join(map(str, row)) for row in x.tolist()]
    kinds = ["high" if total > 3 else "low" for total in x.sum(1)]
    named = [f"{row},{kind}" for row, kind in zip(rows, kinds, strict=True)]
    text = "\n".join([f"{values},kind", *named])
    folder = trained({"target_column": "kind"}, name="mine.csv", text=text)
    whole = predict(folder, tmp_path / "mine.csv")
    assert set(whole.labels) <= {"high", "low"}
    (tmp_path / "new.csv").write_text("\n".join([values, *rows]))
    np.testing.assert_array_equal(predict(folder, tmp_path / "new.csv").values, whole.values)
    (tmp_path / "no.csv").write_text("0.5,0.2,0.3\n0.1,0.2,0.3")
    with pytest.raises(ValueError, match=r"first row of no\.csv .*names of columns"):
        predict(folder, tmp_path / "no.csv")


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
