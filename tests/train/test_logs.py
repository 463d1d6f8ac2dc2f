"""Curves in a CSV file and in TensorBoard."""

import csv
import dataclasses
import json

import pytest
import torch

from anharmonic.nn.store import from_pretrained
from anharmonic.train import fit
from anharmonic.train.folder import run_folder

NAMES = {"train_loss", "valid", "valid_loss", "grad_norm", "grad_norm_max", "lr"}


@pytest.fixture
def interrupted(tiny, environment, hook_batches):
    """A run that is cut short in its third epoch, with the given logger."""

    def train(logger, **fields):
        def fail(name, batch):
            if name == "train 2 3":
                raise OSError("gone")

        run, where = tiny(**fields), dataclasses.replace(environment, logger=logger)
        hook_batches(fail)
        with pytest.raises(OSError, match="gone"):
            fit(run, where)
        hook_batches(lambda name, batch: None)
        return run, where

    return train


def test_a_resumed_run_goes_on_in_its_csv_file(interrupted, environment):
    run, where = interrupted("csv", lr_drop_epoch=2)
    result = fit(run, where)
    folder = environment.out / "logs" / "adding-LSTM" / run.hash
    with (folder / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["1", "2", "3", "4"]
    for name in NAMES - {"lr"}:
        logged = [float(row[name]) for row in rows]
        assert logged == pytest.approx(result.curve[name], rel=1e-5)  # the curve is rounded
    assert [float(row["lr"]) for row in rows] == pytest.approx([0.01, 0.01, 0.001, 0.001])
    assert json.loads((folder / "run.json").read_text())["model_options"]["dropout"] == 0.3


def test_weights_and_result_are_the_same_bits(tiny, environment, tmp_path):
    found = []
    for logger in ("none", "csv"):
        where = dataclasses.replace(environment, logger=logger, out=tmp_path / logger)
        result = fit(tiny(), where)
        weights = from_pretrained(run_folder(tiny(), where) / "best").state_dict()
        found.append((result.hash, result.test, result.curve, weights))
    assert found[0][:3] == found[1][:3]
    assert all(torch.equal(found[0][3][name], found[1][3][name]) for name in found[0][3])


def test_a_missing_package_is_named_before_any_work(tiny, environment, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        fit(tiny(), dataclasses.replace(environment, logger="tensorboard"))
    assert not environment.out.exists()


def test_a_resumed_run_goes_on_in_tensorboard(interrupted, environment):
    pytest.importorskip("tensorboard", reason="writes and reads its files")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run, where = interrupted("tensorboard")
    result = fit(run, where)
    found = EventAccumulator(str(environment.out / "logs" / "adding-LSTM" / run.hash)).Reload()
    assert NAMES <= set(found.Tags()["scalars"])
    assert [event.step for event in found.Scalars("valid")] == [1, 2, 3, 4]
    logged = [event.value for event in found.Scalars("valid")]
    assert logged == pytest.approx(result.curve["valid"], rel=1e-5)
