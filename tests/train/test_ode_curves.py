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
