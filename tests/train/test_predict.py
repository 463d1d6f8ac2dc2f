import dataclasses
import json

import numpy as np
import pytest
import torch

from anharmonic.cli.predict import csv_text
from anharmonic.data.readers import file_digest
from anharmonic.nn.store import from_pretrained, save_pretrained
from anharmonic.train import fit, predict
from anharmonic.train.folder import run_folder


@pytest.fixture
def trained(tiny, environment, tmp_path):
    """Trains on a file with the given arrays; returns the run's folder."""

    def train(options=None, model="LSTM", **arrays):
        path = tmp_path / "mine.npz"
        np.savez(path, **arrays)
        given = {"sha256": file_digest(path)} | (options or {})
        run = tiny(task="file", task_options=given, model=model, epochs=1)
        fit(run, dataclasses.replace(environment, file=path))
        return run_folder(run, environment)

    return train


def sequences(count, features=2):
    return 5 + 3 * np.random.default_rng(0).random((count, 6, features))


def test_classes(trained, tmp_path):
    x = sequences(30)
    folder = trained(x=x, y=np.where(x.mean((1, 2)) > 6.5, "high", "low"))
    new = tmp_path / "new.npz"
    np.savez(new, x=x[:7])
    found = predict(folder, new)
    assert found.class_names == ("high", "low")
    assert found.values.shape == (7, 2)
    np.testing.assert_allclose(found.values.sum(1), 1, rtol=1e-5)
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
    np.testing.assert_allclose(predict(folder, new, batch_size=2).values, found.values, rtol=1e-5)


def test_values(trained, tmp_path):
    x = sequences(30)
    folder = trained(x=x, y=x.mean(1))
    found = predict(folder, tmp_path / "mine.npz")
    assert (found.labels, found.class_names, found.values.shape) == (None, (), (30, 2))


def test_values_per_step_of_ragged_sequences(trained, tmp_path):
    lengths = [3, 6, 2, 5] * 5
    x = np.random.default_rng(0).random((sum(lengths), 2))
    folder = trained(x=x, y=x[:, :1] + 0.5, offsets=np.cumsum([0, *lengths]))
    found = predict(folder, tmp_path / "mine.npz", batch_size=3)
    assert [row.shape for row in found.values] == [(n, 1) for n in lengths]
    assert found.labels is None


def test_classes_per_step(trained, tmp_path):
    lengths = [3, 6, 2, 5] * 5
    x = np.random.default_rng(0).random((sum(lengths), 2))
    y = np.where(x[:, 0] > 0.5, "high", "low")
    folder = trained(x=x, y=y, offsets=np.cumsum([0, *lengths]))
    found = predict(folder, tmp_path / "mine.npz", batch_size=3)
    assert found.class_names == ("high", "low")
    assert [len(steps) for steps in found.labels] == lengths
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
def test_the_time_between_samples_counts(trained, tmp_path, way, model):
    x, elapsed = sequences(30), np.tile([0.0, 2, 2, 2, 1, 2], (30, 1))
    folder = trained({"elapsed": way}, model, x=x, y=x[:, 0, 0] > 6.5, elapsed=elapsed)
    first = predict(folder, tmp_path / "mine.npz").values
    np.savez(tmp_path / "fast.npz", x=x, elapsed=elapsed / 2)
    with pytest.warns(UserWarning, match="median time is 1 between samples, in training 2"):
        fast = predict(folder, tmp_path / "fast.npz").values
    assert not np.allclose(fast, first, rtol=1e-3)
    np.savez(tmp_path / "bare.npz", x=x)
    with pytest.raises(ValueError, match=r"bare.npz must hold the time between samples"):
        predict(folder, tmp_path / "bare.npz")


def test_a_recording_gets_the_mean_of_its_windows(trained, tmp_path):
    x = np.random.default_rng(0).random((20, 23, 2))
    folder = trained({"window": 5}, x=x, y=x[:, 0, 0] > 0.5)
    whole = predict(folder, tmp_path / "mine.npz")
    assert whole.values.shape == (20, 2)
    np.savez(tmp_path / "few.npz", x=x[3, [*range(20), *range(18, 23)]].reshape(5, 5, 2))
    few = predict(folder, tmp_path / "few.npz").values
    np.testing.assert_allclose(whole.values[3], few.mean(axis=0), rtol=1e-5)


def test_every_step_of_a_recording_is_predicted_once(trained, tmp_path):
    x = np.random.default_rng(0).random((2, 103, 2))
    folder = trained({"window": 10}, x=x, y=(x[:, :, 0] > 0.5).astype(int))
    found = predict(folder, tmp_path / "mine.npz")
    assert [len(steps) for steps in found.labels] == [103, 103]
    np.savez(tmp_path / "end.npz", x=x[:, -10:])
    end = predict(folder, tmp_path / "end.npz").values
    np.testing.assert_allclose(found.values[1][-3:], end[1][-3:], rtol=1e-5)


def test_forecast(trained, tmp_path):
    t = np.arange(120.0)
    folder = trained({"horizon": 2}, x=np.stack([t, t + 50]))
    found = predict(folder, tmp_path / "mine.npz")
    assert found.labels is None
    assert found.values.shape == (2, 2)
    np.testing.assert_allclose(found.values - [[119], [169]], 0, atol=6)


def test_run_on_another_task(tiny, environment, tmp_path):
    fit(tiny(epochs=1), environment)
    new = tmp_path / "new.npz"
    np.savez(new, x=sequences(3))
    kept = json.loads((run_folder(tiny(epochs=1), environment) / "task.json").read_text())
    assert kept["file"] is None
    assert predict(run_folder(tiny(epochs=1), environment), new).values.shape == (3, 1)


def test_errors(tiny, environment, tmp_path):
    run = tiny(epochs=1)
    folder = run_folder(run, environment)
    new = tmp_path / "new.npz"
    np.savez(new, x=sequences(3, features=3))
    with pytest.raises(
        FileNotFoundError, match=r"folder of a finished run.*where nothing is; pass"
    ):
        predict(folder, new)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"got an empty folder; .*anharmonic train"):
        predict(tmp_path / "empty", new)
    with pytest.raises(FileNotFoundError, match=r"got a folder with .*new\.npz"):
        predict(tmp_path, new)
    fit(run, environment)
    with pytest.raises(FileNotFoundError, match=r"the data .* must be .*got a folder"):
        predict(folder, tmp_path)
    with pytest.raises(ValueError, match="must be 2, as in training; got 3"):
        predict(folder, new)
    with pytest.raises(FileNotFoundError, match="no-such"):
        predict(folder, tmp_path / "no-such.npz")
    with pytest.raises(ValueError, match="batch_size must be"):
        predict(folder, new, batch_size=0)
    (folder / "task.json").write_text("{}")
    with pytest.raises(ValueError, match=r"task\.json must be what fit wrote; got KeyError"):
        predict(folder, new)


def test_a_new_table_is_read_as_the_one_of_training(tiny, environment, tmp_path):
    pytest.importorskip("pyarrow")
    x = np.random.default_rng(0).random((30, 6))
    rows = [[*row, "high" if sum(row) > 3 else "low"] for row in x.round(3).tolist()]

    def write(name, columns, rows):
        lines = [",".join(map(str, row)) for row in (columns, *rows)]
        (tmp_path / name).write_text("\n".join(lines))
        return tmp_path / name

    values = [f"v{i}" for i in range(6)]
    path = write("mine.csv", [*values, "kind"], rows)
    options = {"sha256": file_digest(path), "target_column": "kind"}
    run = tiny(task="file", task_options=options, epochs=1)
    fit(run, dataclasses.replace(environment, file=path))
    folder = run_folder(run, environment)
    whole = predict(folder, path)
    bare = predict(folder, write("new.csv", values, [row[:-1] for row in rows]))
    np.testing.assert_array_equal(bare.values, whole.values)
    assert set(whole.labels) <= {"high", "low"}
    (tmp_path / "no.csv").write_text("0.5,0.2,0.3\n0.1,0.2,0.3")
    with pytest.raises(ValueError, match=r"first row of no\.csv .*names of columns"):
        predict(folder, tmp_path / "no.csv")


def test_a_long_table_is_read_by_its_names(tiny, environment, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    ids = np.repeat([f"r{i}" for i in range(20)], 5)
    table = {
        "id": ids,
        "a": rng.random(100),
        "b": 5 + rng.random(100),
        "label": np.repeat(["up", "down"] * 10, 5),
    }
    path = tmp_path / "mine.parquet"
    parquet.write_table(pa.table(table), path)
    run = tiny(task="file", task_options={"sha256": file_digest(path)}, epochs=1)
    fit(run, dataclasses.replace(environment, file=path))
    folder = run_folder(run, environment)
    new = tmp_path / "new.parquet"
    parquet.write_table(pa.table({name: table[name] for name in ("b", "a", "id")}), new)
    found = predict(folder, new)
    np.testing.assert_array_equal(found.values, predict(folder, path).values)
    assert found.ids == tuple(f"r{i}" for i in range(20))
    assert csv_text(found).split("\n")[2].startswith("1,r1,")


@pytest.mark.parametrize(
    "change",
    [
        {"class_names": ["low"]},
        {"class_names": [1, 2]},
        {"class_names": 3},
        {"output_size": 0},
        {"input_size": 10**15, "preprocessing": None},
    ],
)
def test_a_changed_task_file_is_refused(trained, tmp_path, change):
    folder = trained(x=sequences(30), y=["a", "b"] * 15)
    kept = json.loads((folder / "task.json").read_text())
    (folder / "task.json").write_text(json.dumps(kept | change))
    with pytest.raises(ValueError, match=r"task\.json must be what fit wrote; got "):
        predict(folder, tmp_path / "mine.npz")
    (folder / "task.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="RecursionError"):
        predict(folder, tmp_path / "mine.npz")


def test_another_readout_or_bad_weights_are_refused(trained, tmp_path):
    folder = trained(x=sequences(30), y=["a", "b"] * 15)
    kept = json.loads((folder / "task.json").read_text())
    (folder / "task.json").write_text(json.dumps(kept | {"readout": "all"}))
    with pytest.raises(ValueError, match=r"readout 'all' in task\.json"):
        predict(folder, tmp_path / "mine.npz")
    (folder / "task.json").write_text(json.dumps(kept))
    model = from_pretrained(folder / "best")
    with torch.no_grad():
        next(model.parameters()).fill_(torch.nan)
    save_pretrained(model, folder / "best")
    with pytest.raises(ValueError, match=r"predictions must be finite; got 'NaN"):
        predict(folder, tmp_path / "mine.npz")
