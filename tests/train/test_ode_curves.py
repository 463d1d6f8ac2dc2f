"""Training on tables: NFE and adjoint score of every epoch, exact resume, wrong options."""

from types import SimpleNamespace

import pytest
import torch

import anharmonic as ah
from anharmonic.data.registry import make_task
from anharmonic.diagnostics.adjoint import adjoint_norms, adjoint_score
from anharmonic.train import Run, fit
from anharmonic.train.losses import share_of, summed_loss
from anharmonic.train.ode_curves import OdeCurves

pytest.importorskip("torchdiffeq", reason="solves need the extra 'ode'")
pytestmark = pytest.mark.papers  # its table of numbers is one of theirs


def run(**changes):
    options = {"hidden_size": 4, "width": 4, "rtol": 1e-2, "atol": 1e-3}
    values = {"epochs": 2, "batch_size": 128, "lr": 0.03, "model_options": options}
    return Run("breast-cancer", "NeuralODE", **{**values, **changes})


def test_it_learns_and_its_curve_has_the_measures(environment):
    result = fit(run(epochs=5, lr=0.05), environment)
    assert result.test > 85 and result.metric == "accuracy"
    assert {"epoch", "train_loss", "valid", "nfe", "adjoint_score"} <= set(result.curve)
    assert {len(values) for values in result.curve.values()} == {5}
    assert all(value >= 8 for value in result.curve["nfe"])  # two to start, six a step
    assert all(value >= 1 for value in result.curve["adjoint_score"])


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


def test_shares_of_rows_stay_rows():
    batch = make_task("breast-cancer").loaders(0, 9).valid[0]
    shares = [share_of(batch, rank, 2, "cross_entropy") for rank in (0, 1)]
    assert [len(share.batch.inputs) for share in shares] == [1, 1]
    assert torch.equal(torch.cat([share.batch.x for share in shares]), batch.x)
