"""Curves in a CSV file and in TensorBoard."""

import csv
import dataclasses
import json

import pytest

from anharmonic.train import fit, read_results

NAMES = {"train_loss", "valid", "valid_loss", "grad_norm", "grad_norm_max", "lr"}


def test_a_resumed_run_goes_on_in_its_csv_file(tiny, environment, interrupted):
    run, where = tiny(lr_drop_epoch=2), dataclasses.replace(environment, logger="csv")
    interrupted(run, where, "train 2 3")
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


def test_a_log_changes_no_bit(tiny, whole, environment, weights_of):
    logged = dataclasses.replace(environment, logger="csv")
    (plain,) = read_results(whole.results_path)
    result = fit(tiny(), logged)
    assert (result.hash, result.test, result.curve) == (plain.hash, plain.test, plain.curve)
    assert weights_of(tiny(), logged) == weights_of(tiny(), whole)


def test_a_missing_package_is_named_before_any_work(tiny, environment, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        fit(tiny(), dataclasses.replace(environment, logger="tensorboard"))
    assert not environment.out.exists()


def test_a_resumed_run_goes_on_in_tensorboard(tiny, environment, interrupted):
    pytest.importorskip("tensorboard", reason="writes and reads its files")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run, where = tiny(), dataclasses.replace(environment, logger="tensorboard")
    interrupted(run, where, "train 2 3")
    result = fit(run, where)
    found = EventAccumulator(str(environment.out / "logs" / "adding-LSTM" / run.hash)).Reload()
    assert NAMES <= set(found.Tags()["scalars"])
    assert [event.step for event in found.Scalars("valid")] == [1, 2, 3, 4]
    logged = [event.value for event in found.Scalars("valid")]
    assert logged == pytest.approx(result.curve["valid"], rel=1e-5)
