"""Measuring and logging while training change nothing that a run is known by."""

import csv
import json
from dataclasses import replace

import pytest

from anharmonic.train import RunEnvironment, fit, run_folder
from anharmonic.train.probes import read_diagnostics

NAMES = {"train_loss", "valid", "valid_loss", "grad_norm", "grad_norm_max", "lr"}


def diagnosed(run, environment):
    return read_diagnostics(run_folder(run, environment) / "diagnostics.jsonl")


@pytest.mark.parametrize(
    ("model", "everything"),
    [
        ("LSTM", ("gradients", "timescales", "lyapunov")),
        ("UnICORNN", ("gradients", "timescales", "energy", "weights", "lyapunov")),
        ("CoRNN", ("gradients", "energy", "weights", "lyapunov")),
    ],
)
def test_measures_change_no_bit(tiny, environment, tmp_path, outcome, model, everything):
    run = tiny(model=model, epochs=2)
    fit(run, environment)
    watched = replace(environment, out=tmp_path / "watched", diagnose=everything)
    fit(run, watched)
    assert outcome(run, watched) == outcome(run, environment)
    log = diagnosed(run, watched)
    assert [entry["epoch"] for entry in log] == [0, 1, 2]
    for entry in log:
        assert entry.keys() == {"epoch", *everything}
        assert not any("failed" in entry[name] for name in everything)
    assert log[0]["gradients"] != log[2]["gradients"]
    assert not (run_folder(run, environment) / "diagnostics.jsonl").exists()


def test_now_and_then_and_the_last(tiny, environment):
    run = tiny(epochs=3)
    fit(run, replace(environment, diagnose=("gradients",), diagnose_every=2))
    assert [entry["epoch"] for entry in diagnosed(run, environment)] == [0, 2, 3]
    run = tiny(epochs=9, patience=1, lr=1.0)
    result = fit(run, replace(environment, diagnose=("gradients",), diagnose_every=50))
    assert result.stopped == "early"
    assert [entry["epoch"] for entry in diagnosed(run, environment)] == [0, result.epochs_run]


def test_the_place_checks_the_names():
    assert RunEnvironment(diagnose=["weights", "weights"]).diagnose == ("weights",)
    with pytest.raises(ValueError, match=r"a name in diagnose must be one of.*did you mean 'ener"):
        RunEnvironment(diagnose=("enregy",))
    with pytest.raises(TypeError, match="diagnose must be a list of names"):
        RunEnvironment(diagnose="energy")
    with pytest.raises(ValueError, match="diagnose_every must be an int >= 1"):
        RunEnvironment(diagnose_every=0)


def in_csv(folder):
    rows = list(csv.DictReader((folder / "metrics.csv").open()))
    assert json.loads((folder / "run.json").read_text())["model_options"]["dropout"] == 0.3
    return {name: [float(row[name]) for row in rows] for name in ("step", *NAMES)}


def in_tensorboard(folder):
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulators.EventAccumulator(str(folder)).Reload()
    logged = {name: [event.value for event in found.Scalars(name)] for name in NAMES}
    return {"step": [event.step for event in found.Scalars("valid")], **logged}


@pytest.mark.parametrize(("logger", "read"), [("csv", in_csv), ("tensorboard", in_tensorboard)])
def test_a_resumed_run_goes_on_in_its_log_which_changes_no_bit(
    tiny, environment, tmp_path, interrupted, outcome, logger, read
):
    run, where = tiny(lr_drop_epoch=2), replace(environment, logger=logger)
    if logger == "tensorboard":
        pytest.importorskip("tensorboard", reason="writes and reads its files")
    interrupted(run, where, "train 2 3")
    result = fit(run, where)
    logged = read(environment.out / "logs" / "adding-LSTM" / run.hash)
    assert logged["step"] == [1, 2, 3, 4]
    assert logged["lr"] == pytest.approx([0.01, 0.01, 0.001, 0.001])
    for name in NAMES - {"lr"}:
        assert logged[name] == pytest.approx(result.curve[name], rel=1e-5)  # the curve is rounded
    fit(run, plain := replace(environment, out=tmp_path / "plain"))
    assert outcome(run, where) == outcome(run, plain)


def test_a_missing_package_is_named_before_any_work(tiny, environment, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        fit(tiny(), replace(environment, logger="tensorboard"))
    assert not environment.out.exists()
