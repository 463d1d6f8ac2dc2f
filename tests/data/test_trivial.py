import numpy as np
import pytest
import torch

from anharmonic.data import FileTask
from anharmonic.data.answers import constant_answer, trivial_score


def task_of(path, **arrays):
    np.savez(path, **arrays)
    return FileTask(path)


def test_most_frequent_class_of_training(tmp_path):
    y_train, y_test = [0, 1, 1, 1, 0, 1, 1, 2, 1, 1], [1, 1, 0, 0, 0, 2, 0, 0, 1, 0]
    y = {"y_train": y_train, "y_valid": y_train, "y_test": y_test}
    x = {f"x_{part}": np.zeros((10, 4, 1)) for part in ("train", "valid", "test")}
    task = task_of(tmp_path / "a.npz", **x, **y)
    assert trivial_score(task, task.loaders(0, 3)) == pytest.approx(30.0)


@pytest.mark.parametrize("lengths", [[5] * 6, [5, 4, 3, 2, 5, 1]])
def test_mean_of_training_per_step(tmp_path, lengths):
    rng = np.random.default_rng(0)
    parts = {}
    for part in ("train", "valid", "test"):
        parts |= {f"x_{part}": rng.random((6, 5, 1)), f"y_{part}": rng.random((6, 5, 2))}
        parts[f"lengths_{part}"] = np.array(lengths)
    task = task_of(tmp_path / "a.npz", **parts)
    real = np.arange(5) < np.array(lengths)[:, None]
    train, test = parts["y_train"][real], parts["y_test"][real]
    expected = np.sqrt(((test - train.mean(0)) ** 2).mean())
    assert trivial_score(task, task.loaders(0, 4)) == pytest.approx(expected, rel=1e-5)


def test_labels_and_absolute_errors():
    frequent = constant_answer("labels", torch.tensor([[1.0, 0], [1, 0], [0, 0]]), 2) > 0
    assert frequent.tolist() == [True, False]
    values = torch.tensor([[1.0], [2.0], [9.0]])
    assert constant_answer("value", values, 1, "mae").tolist() == [2.0]
    assert constant_answer("value", values, 1).tolist() == [4.0]


def test_classes_per_step_and_forecasts(tmp_path):
    # Of the 3 real steps 2 are of class 1; the rest is padding.
    y = np.tile([1, 0, 1, 0, 0], (20, 1))
    task = task_of(tmp_path / "steps.npz", x=np.zeros((20, 5)), y=y, lengths=[3] * 20)
    assert trivial_score(task, task.loaders(0, 4)) == pytest.approx(200 / 3)
    ragged = task_of(tmp_path / "steps.npz", x=np.zeros((20, 5)), y=y, lengths=[3, 1] * 10)
    assert trivial_score(ragged, ragged.loaders(0, 4)) > 65
    np.savez(tmp_path / "ramp.npz", x=np.arange(100.0)[None])
    ramp = FileTask(tmp_path / "ramp.npz", horizon=2)
    # The last value of a ramp is wrong by 1, then by 2.
    assert trivial_score(ramp, ramp.loaders(0, 8)) == pytest.approx(np.sqrt(2.5))
