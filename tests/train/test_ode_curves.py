"""Training on tables: NFE and adjoint score of every epoch, exact resume, wrong options."""

from types import SimpleNamespace

import pytest
import torch

import anharmonic as ah
from anharmonic.data.registry import make_task
from anharmonic.diagnostics.adjoint import adjoint_norms, adjoint_score
from anharmonic.train import Run
from anharmonic.train.losses import summed_loss
from anharmonic.train.ode_curves import OdeCurves

pytest.importorskip("torchdiffeq", reason="solves need the extra 'ode'")
pytestmark = pytest.mark.papers  # its table of numbers is one of theirs


def run(**changes):
    options = {"hidden_size": 4, "width": 4, "rtol": 1e-2, "atol": 1e-3}
    values = {"epochs": 2, "batch_size": 128, "lr": 0.03, "model_options": options}
    return Run("breast-cancer", "NeuralODE", **{**values, **changes})


def test_an_interrupted_run_ends_with_the_same_bits(environment, goes_on):
    goes_on(run(), environment)


def test_the_measures_are_those_of_the_model():
    torch.manual_seed(0)
    model, task = ah.NeuralODENetwork(30, 2, hidden_size=4), make_task("breast-cancer")
    batches = task.loaders(0, 64).valid
    curves = OdeCurves(model, batches[0])

    def watch():
        return curves.measure(SimpleNamespace(task=task, device=torch.device("cpu")))

    counts = []
    for batch in batches:
        model(batch.x)
        counts.append(model.ode.nfe)
    model.eval()
    model(batches[0].x)  # is not counted
    model.train()
    found = watch()
    assert found["nfe"] == pytest.approx(sum(counts) / len(counts))
    model.eval()
    batch = batches[0]
    z = model.encoder(batch.x).detach()
    norms = adjoint_norms(
        model.ode, z, lambda end: summed_loss(model.decoder(end), batch, task.loss)
    )
    assert found["adjoint_score"] == pytest.approx(float(adjoint_score(norms).mean()))
    assert watch()["nfe"] == 0.0  # an epoch starts from nothing
    model.train()
    watch()
    assert model.training
