"""GraphCON: learned scalars, dropout, stability, lower precision."""

import re
import warnings

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

import anharmonic as ah
from anharmonic import Adjacency, GraphCON
from anharmonic.nn.graph.attention import AttentionCoupling
from anharmonic.nn.graph.convolutions import NodewiseLinear, make_conv
from anharmonic.nn.graph.couplings import RandomWalk
from anharmonic.nn.stability import StabilityWarning


class Nothing(nn.Module):
    def forward(self, x, edge_index):
        return torch.zeros_like(x)


RING = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])


def test_learned_scalars_get_gradients_and_stay_nonnegative():
    learned = {"trainable_frequency": True, "trainable_damping": True}
    layer, x = GraphCON(NodewiseLinear(2, 2), 3, 0.3, 0.75, 0.25, **learned), torch.rand(4, 2)
    layer(x, RING).sum().backward()
    assert layer.raw_frequency.grad != 0 and layer.raw_damping.grad != 0
    with torch.no_grad():
        layer.raw_damping.fill_(-1.0)
    free = GraphCON(layer.convs[0], 3, 0.3, 0.75, 0.0)
    assert torch.allclose(layer(x, RING), free(x, RING))
    layer.reset_parameters()
    assert layer.raw_damping.item() == 0.25


def test_dropout_acts_on_both_states_independently_and_only_in_training():
    torch.manual_seed(0)
    layer, x = GraphCON(Nothing(), 1, 1.0, 0.0, 0.0, dropout=0.5), torch.ones(200, 50)
    _, states = layer(x, RING, return_states=True)
    assert set(states.x[0].unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(states.x[0], states.y[0])
    assert abs((states.x[0] == 0).double().mean() - 0.5) < 0.02
    assert torch.equal(layer.eval()(x, RING), 2 * x)


@pytest.mark.parametrize(
    "layers, options, words",
    [
        (2, {"dt": 1.0, "damping": 2.0}, r"dt\^2 \* frequency \+ 2 \* dt \* damping <= 4"),
        # grows with the layers
        (2, {"dt": 1.0, "frequency": 4.0, "damping": 0.0}, "< 4 without damping"),
        (1000, {}, r"about 4; got .* leaves less than 3e-109 of"),
        (64, {}, r"use dt=0\.062"),
        (32, {}, None),
        (64, {"dt": 4 / 64}, None),
        (64, {"norm": nn.LayerNorm(4)}, None),
        (500, {"damping": 0.0, "dt": 0.1}, None),
        (500, {"frequency": 0.0, "dt": 0.1}, None),
    ],
)
def test_unstable_settings_are_said(layers, options, words):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        GraphCON(Nothing(), layers, **options)
    assert [warning.category for warning in said] == [StabilityWarning] * bool(words)
    assert words is None or re.search(words, str(said[0].message))


def test_the_largest_stable_step_is_stable():
    border = GraphCON(Nothing(), 500, dt=1.0, frequency=2.0, damping=1.0, norm=nn.Identity())
    assert border(torch.ones(4, 1), RING).abs().max() < 10


def test_an_activation_with_weights_is_one_module():
    layer = GraphCON(Nothing(), 2, activation=torch.nn.PReLU())
    assert list(layer.state_dict()) == ["_sigma.weight"]


class GpuAutocast(TorchFunctionMode):
    """Widen powers and exp as autocast does on GPUs, but not on CPUs."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if getattr(function, "__name__", "") in ("exp", "pow"):
            args = (args[0].float(), *args[1:])
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["GCN", "SAGE", "MLP", "attention", "walk"])
def test_under_inference_and_autocast(name):
    own = {"attention": lambda: AttentionCoupling(8), "walk": RandomWalk}
    if name not in own:
        pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    conv, x = own[name]() if name in own else make_conv(name, 8), torch.rand(4, 8)
    for layer in (
        GraphCON(conv, 3),
        ah.GradientGating(conv, 2, p=1, aggr="mean"),
        ah.GradientGating(conv, 2, p=3, aggr="max"),
    ):
        exact = layer(x, RING)
        with torch.inference_mode():
            assert torch.allclose(layer(x, RING.clone()), exact)
        # Training on edges that were first seen in inference mode.
        edges = RING.clone()
        with torch.inference_mode():
            layer(x, edges)
        layer(x.clone().requires_grad_(), edges).sum().backward()
        for graph in (RING, Adjacency(RING, 4)):
            with torch.autocast("cpu", torch.bfloat16):
                found = [layer(x, graph)]
                with ah.use_backend("reference"), GpuAutocast():
                    found.append(layer(x, graph))
            assert all(torch.allclose(half.float(), exact, atol=0.1) for half in found)
