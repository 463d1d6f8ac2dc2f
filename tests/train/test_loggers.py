"""Curves in the logs of Lightning's loggers."""

import csv
import dataclasses
import math
import struct
from pathlib import Path

import pytest
import torch
import yaml

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
    assert yaml.safe_load((folder / "hparams.yaml").read_text())["model_options"]["dropout"] == 0.3


def test_weights_and_result_are_the_same_bits(tiny, environment, tmp_path):
    found = []
    for logger in ("none", "csv"):
        where = dataclasses.replace(environment, logger=logger, out=tmp_path / logger)
        result = fit(tiny(), where)
        weights = from_pretrained(run_folder(tiny(), where) / "best").state_dict()
        found.append((result.hash, result.test, result.curve, weights))
    assert found[0][:3] == found[1][:3]
    assert all(torch.equal(found[0][3][name], found[1][3][name]) for name in found[0][3])


@pytest.mark.parametrize("logger", ["tensorboard", "wandb", "mlflow"])
def test_a_missing_package_is_named_before_any_work(tiny, environment, monkeypatch, logger):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=f"pip install {logger}"):
        fit(tiny(), dataclasses.replace(environment, logger=logger))
    assert not environment.out.exists()


def test_unknown_loggers_are_refused(environment):
    with pytest.raises(ValueError, match=r"logger.*'tensorboard'.*'tensorbord'"):
        dataclasses.replace(environment, logger="tensorbord")


def events(folder):
    """The scalars of TensorBoard's files in the order written; a purge removes what was before."""
    from tensorboardX.proto.event_pb2 import Event

    found = {}
    for file in sorted(folder.glob("events*"), key=lambda path: path.stat().st_mtime_ns):
        data = file.read_bytes()
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            event, data = Event.FromString(data[12 : 12 + size]), data[16 + size :]
            if event.HasField("session_log") and event.session_log.status == 1:
                found.clear()
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_tensorboard(interrupted, environment):
    pytest.importorskip("tensorboardX", reason="reads what TensorBoard's logger wrote")
    run, where = interrupted("tensorboard")
    result = fit(run, where)
    found = events(environment.out / "logs" / "adding-LSTM" / run.hash)
    assert NAMES <= set(found)
    assert [step for step, _ in found["valid"]] == [1, 2, 3, 4]
    assert [value for _, value in found["valid"]] == pytest.approx(result.curve["valid"], rel=1e-5)


def test_mlflow(interrupted, environment):
    mlflow = pytest.importorskip("mlflow", reason="reads what MLflow's logger wrote")
    pytest.importorskip("sqlalchemy", reason="MLflow keeps local runs in a data base")
    run, where = interrupted("mlflow")
    result = fit(run, where)
    client = mlflow.tracking.MlflowClient(f"sqlite:///{(environment.out / 'mlflow.db').absolute()}")
    (experiment,) = [e for e in client.search_experiments() if e.name == "anharmonic"]
    (kept,) = client.search_runs([experiment.experiment_id])
    assert kept.data.params["model_options/dropout"] == "0.3"
    logged = client.get_metric_history(kept.info.run_id, "valid")
    assert [entry.step for entry in logged] == [1, 2, 3, 4]
    assert [entry.value for entry in logged] == pytest.approx(result.curve["valid"], rel=1e-5)


def test_wandb(tiny, environment, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="writes with it")
    monkeypatch.setenv("WANDB_MODE", "offline")
    where = dataclasses.replace(environment, logger="wandb")
    for seed in (1, 2):
        result = fit(tiny(seed=seed), where)
        assert math.isfinite(result.test) and wandb.run is None
    kept = [Path(path).name for path in environment.out.glob("wandb/offline-run-*")]
    assert sorted(name.rpartition("-")[2] for name in kept) == sorted(
        tiny(seed=seed).hash for seed in (1, 2)
    )
