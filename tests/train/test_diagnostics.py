"""Measuring and logging while training change nothing that a run is known by."""

import csv
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import anharmonic as ah
from anharmonic.data.dataset import Batch, Batches
from anharmonic.data.registry import make_task
from anharmonic.diagnostics.adjoint import adjoint_norms, adjoint_score
from anharmonic.train import Run, RunEnvironment, fit, run_folder
from anharmonic.train.losses import summed_loss
from anharmonic.train.ode_curves import OdeCurves
from anharmonic.train.probes import probe_of, read_diagnostics

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
    assert RunEnvironment(diagnose=["weights", "weights"]).diagnose == ("weights",)
    run = tiny(epochs=3)
    fit(run, replace(environment, diagnose=("gradients",), diagnose_every=2))
    assert [entry["epoch"] for entry in diagnosed(run, environment)] == [0, 2, 3]
    run = tiny(epochs=9, patience=1, lr=1.0)
    result = fit(run, replace(environment, diagnose=("gradients",), diagnose_every=50))
    assert result.stopped == "early"
    assert [entry["epoch"] for entry in diagnosed(run, environment)] == [0, result.epochs_run]


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
    run = tiny(lr_drop_epoch=2)
    where = replace(environment, logger=logger, diagnose=("gradients",))
    if logger == "tensorboard":
        pytest.importorskip("tensorboard", reason="writes and reads its files")
    interrupted(run, where, "train 2 3")
    result = fit(run, where)
    logged = read(environment.out / "logs" / "adding-LSTM" / run.hash)
    assert logged["step"] == [1, 2, 3, 4]
    assert [entry["epoch"] for entry in diagnosed(run, where)] == [0, 1, 2, 3, 4]
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


def probe(loss, *batch):
    return probe_of(Batches(1, lambda index: Batch(*batch)), loss)


def test_the_first_sequences_cut_to_the_shortest_with_the_loss_of_their_last_targets():
    x, y, logits = torch.randn(10, 7, 2), torch.arange(10) % 3, torch.randn(8, 3)
    found = probe("cross_entropy", x, y, None)
    assert len(found.inputs) == 1 and torch.equal(found.inputs[0], x[:8])
    expected = torch.nn.functional.cross_entropy(logits, y[:8], reduction="sum")
    assert torch.equal(found.loss(logits), expected)
    x, y, lengths = torch.randn(3, 7, 2), torch.randn(3, 7, 1), torch.tensor([7, 4, 5])
    found = probe("squared_error", x, y[:, 0], lengths)
    assert torch.equal(found.inputs[0], x[:, :4])
    assert found.loss(y[:, 0] + 2).item() == pytest.approx(12.0)
    assert probe("absolute_error", x, y, None).loss(y[:, -1] + 2).item() == pytest.approx(6.0)
    assert probe("absolute_error", x, y, lengths).loss(y[:, 3]).item() == 0


def test_a_damaged_line_is_left_out_and_the_last_of_an_epoch_counts(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"epoch": 1, "a": 1}\n{"epoch": 0}\n{"epoch": 1, "a": 2}\n{"epo')
    with pytest.warns(UserWarning, match="line 4 is skipped"):
        assert read_diagnostics(path) == [{"epoch": 0}, {"epoch": 1, "a": 2}]
    path.write_text('{"epoch": 0}\n', encoding="utf-8-sig")
    assert read_diagnostics(path) == [{"epoch": 0}]


@pytest.fixture
def ode():
    pytest.importorskip("torchdiffeq", reason="solves need the extra 'ode'")


@pytest.mark.papers  # the table of numbers is one of theirs
@pytest.mark.usefixtures("ode")
def test_an_interrupted_run_of_a_neural_ode_ends_with_the_same_bits(environment, goes_on):
    options = {"hidden_size": 4, "width": 4, "rtol": 1e-2, "atol": 1e-3}
    fields = {"epochs": 2, "batch_size": 128, "lr": 0.03, "model_options": options}
    goes_on(Run("breast-cancer", "NeuralODE", **fields), environment)


@pytest.mark.papers
@pytest.mark.usefixtures("ode")
def test_the_measures_of_a_neural_ode_are_those_of_the_model():
    torch.manual_seed(0)
    model, task = ah.NeuralODENetwork(30, 2, hidden_size=4), make_task("breast-cancer")
    batches = task.loaders(0, 64).valid
    first, curves = batches[0], OdeCurves(model, batches[0])
    loop, counts = SimpleNamespace(task=task, device=torch.device("cpu")), []
    for batch in batches:
        model(batch.x)
        counts.append(model.ode.nfe)
    model.eval()
    model(first.x)  # is not counted
    model.train()
    found = curves.measure(loop)
    assert model.training and found["nfe"] == pytest.approx(sum(counts) / len(counts))
    assert curves.measure(loop)["nfe"] == 0.0  # an epoch starts from nothing

    def loss(end):
        return summed_loss(model.decoder(end), first, task.loss)

    norms = adjoint_norms(model.eval().ode, model.encoder(first.x).detach(), loss)
    assert found["adjoint_score"] == pytest.approx(float(adjoint_score(norms).mean()))
