"""The diagnostics by name: for the right models, as JSON, changing nothing."""

import json

import pytest
import torch

from anharmonic.diagnostics import adjoint, timescales
from anharmonic.diagnostics.base import Probe
from anharmonic.diagnostics.registry import (
    _histograms,
    applicable,
    check_applicable,
    describe,
    measure,
)
from anharmonic.diagnostics.smoothing import grid_graph
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.ode.network import NeuralODENetwork
from anharmonic.nn.ode.solve import StiffError
from anharmonic.nn.registry import list_models, model_class
from anharmonic.nn.sequence.lem import LEM


def loss(prediction):
    return (prediction - 1).square().sum()


@pytest.mark.parametrize("name", [n for n in list_models() if n != "LinOSSNetwork"])
def test_every_diagnostic_of_every_layer_is_json_and_changes_nothing(name):
    model = SequenceModel(name, 2, 3, hidden_size=4, num_layers=2, dropout=0.5)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    probe = Probe((torch.randn(2, 12, 2),), loss)
    state = torch.get_rng_state()
    found = measure(model, probe, applicable(name))
    assert list(found) == applicable(name)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert not any("failed" in entry for entry in found.values())
    assert model.training and all(weight.grad is None for weight in model.parameters())
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())
    assert found["gradients"]["distance"][-1] == 12 and len(found["gradients"]["size"]) > 9


def test_an_energy_leaves_a_model_in_its_precision():
    model = SequenceModel("UnICORNN", 2, 3, hidden_size=4).double()
    before = model.state_dict()
    probe = Probe((torch.randn(2, 12, 2, dtype=torch.float64),), loss)
    assert describe(model, probe, "energy", []).panels
    assert all(v.dtype is torch.float64 for v in model.state_dict().values())
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_gradients_are_those_of_the_loss_of_the_prediction():
    model = SequenceModel("RNN", 1, 1, hidden_size=3)
    x = torch.randn(1, 6, 1)
    size = measure(model, Probe((x,), loss), ["gradients"])["gradients"]["size"]
    output, _ = model.layer(x)
    last = output[:, -1].detach().requires_grad_()
    loss(model.linear(last)).backward()
    assert size[0] == pytest.approx(last.grad.norm().item(), rel=1e-5)
    # Without a loss, of half the square of the output.
    size = measure(model, Probe((x,)), ["gradients"])["gradients"]["size"]
    assert size[0] == pytest.approx(last.detach().norm().item(), rel=1e-5)


@pytest.mark.parametrize("name", list_models("graph"))
def test_graph_networks_have_smoothing(name):
    pytest.importorskip("torch_geometric", reason="the convolutions are PyG's")
    assert applicable(name) == ["smoothing"]
    model = model_class(name)(3, 2, hidden_size=8, num_layers=5)
    found = measure(model, Probe((torch.rand(9, 3), grid_graph(3, 3), None, 1)), ["smoothing"])
    assert {len(values) for values in found["smoothing"].values()} == {6}


def test_what_cannot_be_measured_says_why_and_the_others_go_on():
    model = SequenceModel("UnICORNN", 1, 1, hidden_size=2)
    found = measure(model, Probe((torch.zeros(1, 3, 2),)), ["energy", "weights"])
    assert "x must be of shape [T, B, 1]" in found["energy"]["failed"]
    assert len(found["weights"]["norms"]) == 1
    blocks = SequenceModel("LinOSSNetwork", 2, 3, hidden_size=4)
    found = measure(blocks, Probe((torch.randn(5, 30, 2),), loss), ["gradients"])
    assert "part of its state" in found["gradients"]["failed"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("UnICORNN", {"num_layers": 3, "skipped_layers": 2, "bidirectional": True}),
        ("UnICORNN", {"num_layers": 2, "dt": [0.1, 0.2], "bidirectional": True}),
        ("MultiLayerNeuralOscillator",
         {"num_layers": 2, "hidden_sizes": [8, 3], "bidirectional": True}),
        ("MultiLayerNeuralOscillator", {"num_layers": 2, "hidden_sizes": [8, 3]}),
    ],
)  # fmt: skip
def test_options_of_several_layers(name, options):
    model = SequenceModel(name, 2, 1, hidden_size=3, **options)
    found = measure(model, Probe((torch.randn(1, 5, 2),), loss), ["gradients"])
    assert len(found["gradients"]["size"]) == 6


@pytest.mark.parametrize("value", [1e-6, 0.9999999])
def test_gates_beyond_the_bins_are_counted(monkeypatch, value):
    gates = {"gate": torch.full((4, 5), 0.3 * value)}
    monkeypatch.setattr(timescales, "gates", lambda layer, x: gates)
    layer = LEM(2, 3, dt=0.3)
    (found,) = _histograms(layer, Probe((torch.zeros(1, 5, 2),))).values()
    assert sum(found.counts) == 20


@pytest.mark.parametrize("name", ["LEM", "UnICORNN", "GRU"])
def test_of_two_directions_the_first_layers_forward_one_is_measured(name):
    both = SequenceModel(name, 2, 1, hidden_size=3, num_layers=2, bidirectional=True)
    one = SequenceModel(name, 2, 1, hidden_size=3)
    weights = both.layer.state_dict()
    one.layer.load_state_dict({key: weights[key] for key in one.layer.state_dict()})
    probe = Probe((torch.randn(4, 20, 2),))
    assert measure(both, probe, ["gradients"]) == measure(one, probe, ["gradients"])


def test_a_stiff_adjoint_does_not_end_a_training(monkeypatch):
    def stiff(*arguments):
        raise StiffError("too many evaluations")

    monkeypatch.setattr(adjoint, "network_adjoint_norms", stiff)
    network = NeuralODENetwork(2, 1, hidden_size=2)
    found = measure(network, Probe((torch.zeros(1, 2),)), ["adjoint"])
    assert found["adjoint"] == {"failed": "too many evaluations"}


def test_numbers_that_are_not_finite_are_none():
    model = SequenceModel("RNN", 1, 1, hidden_size=2)
    with torch.no_grad():
        model.layer.weight_hh_l0.zero_()
    found = measure(model, Probe((torch.zeros(1, 10, 1),)), ["lyapunov"])
    assert found["lyapunov"] == {"exponent": None, "steps": 8}  # minus infinity


def test_a_diagnostic_of_another_model_is_refused():
    assert applicable("NeuralODE") == ["adjoint"]
    assert applicable("SkewRNN") == ["gradients", "lyapunov"]
    said = r"diagnose .* GraphCON has: smoothing; got 'gradients, energy'"
    with pytest.raises(ValueError, match=said):
        check_applicable("GraphCON", ["gradients", "smoothing", "energy"])
