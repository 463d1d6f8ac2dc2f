"""GraphCON: closed forms, waves, settings and errors."""

import re
import warnings

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

import anharmonic as ah
from anharmonic import Adjacency, GraphCON
from anharmonic.nn.graph.attention import AttentionCoupling
from anharmonic.nn.graph.convolutions import make_conv
from anharmonic.nn.graph.couplings import RandomWalk
from anharmonic.nn.stability import StabilityWarning


class Neighbours(nn.Module):
    """A X with fixed weights per edge."""

    def __init__(self, weight=None):
        super().__init__()
        self.weight = weight

    def forward(self, x, edge_index):
        message = x[edge_index[0]]
        if self.weight is not None:
            message = message * self.weight[:, None]
        return torch.zeros_like(x).index_add(0, edge_index[1], message)


class Nothing(nn.Module):
    def forward(self, x, edge_index):
        return torch.zeros_like(x)


def cycle(nodes):
    """A ring: with weights 1/2, symmetric and row-stochastic."""
    i = torch.arange(nodes)
    return torch.cat([torch.stack([i, (i + 1) % nodes]), torch.stack([(i + 1) % nodes, i])], dim=1)


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("velocity", ["features", "zero"])
def test_one_layer_by_hand(velocity):
    x, edge_index = draw(5, 2), cycle(5)
    f, y = torch.relu(Neighbours()(x, edge_index)), x if velocity == "features" else 0.0
    y = y + 0.5 * (f - 0.7 * x - 0.2 * y)
    layer = GraphCON(Neighbours(), 1, 0.5, 0.7, 0.2, initial_velocity=velocity)
    assert torch.allclose(layer(x, edge_index), x + 0.5 * y, rtol=0, atol=1e-14)


def test_with_all_settings_one_the_layers_are_those_of_the_plain_network():
    x, edge_index = draw(5, 2), cycle(5)
    conv = Neighbours(torch.full((10,), 0.3, dtype=torch.float64))
    plain = x
    for _ in range(6):
        plain = torch.relu(conv(plain, edge_index))
    assert torch.allclose(GraphCON(conv, 6, 1.0)(x, edge_index), plain, rtol=0, atol=1e-14)
    assert not torch.allclose(GraphCON(conv, 6)(x, edge_index), plain, atol=1e-2)


def test_learned_scalars_get_gradients_and_stay_nonnegative():
    learned = {"trainable_frequency": True, "trainable_damping": True}
    layer, fixed = (GraphCON(Neighbours(), 3, 0.3, 0.8, 0.4, **one) for one in (learned, {}))
    x = draw(5, 2).abs()
    out = layer.double()(x, cycle(5))
    assert torch.allclose(out, fixed(x, cycle(5)), rtol=1e-6)
    out.sum().backward()
    assert layer.raw_frequency.grad != 0 and layer.raw_damping.grad != 0
    with torch.no_grad():
        layer.raw_damping.fill_(-1.0)
    assert torch.isfinite(layer(x, cycle(5))).all()
    layer.reset_parameters()
    assert layer.raw_damping.item() == pytest.approx(0.4)


def test_dropout_acts_on_both_states_independently_and_only_in_training():
    torch.manual_seed(0)
    layer, x = GraphCON(Nothing(), 1, 1.0, 0.0, 0.0, dropout=0.5), torch.ones(200, 50)
    _, states = layer(x, cycle(200), return_states=True)
    assert set(states.x[0].unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(states.x[0], states.y[0])
    assert abs((states.x[0] == 0).double().mean() - 0.5) < 0.02
    assert torch.equal(layer.eval()(x, cycle(200)), 2 * x)


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
    assert border(torch.ones(2, 1), cycle(2)).abs().max() < 10


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
    conv = own[name]() if name in own else make_conv(name, 8)
    x, edges = torch.rand(4, 8), cycle(4)
    for layer in (
        GraphCON(conv, 3),
        ah.GradientGating(conv, 2, p=1, aggr="mean"),
        ah.GradientGating(conv, 2, p=3, aggr="max"),
    ):
        exact = layer(x, edges)
        with torch.inference_mode():
            assert torch.allclose(layer(x, edges.clone()), exact)
        for graph in (edges, Adjacency(edges, 4)):
            with torch.autocast("cpu", torch.bfloat16):
                found = [layer(x, graph)]
                with ah.use_backend("reference"), GpuAutocast():
                    found.append(layer(x, graph))
            assert all(torch.allclose(half.float(), exact, atol=0.1) for half in found)


# ---- waves ---------------------------------------------------------------------------------------
def wave(layers, dt=1.0, scale=2.0, **options):
    return GraphCON(
        RandomWalk(scale), layers, dt, scale, 0.0, activation="identity",
        initial_velocity="rest", **options,
    )  # fmt: skip


def crossed(nodes):
    """A ring with some chords, whose nodes have two, three or four neighbours."""
    chords = torch.tensor([[0, 3, 5], [5, 7, 1]])
    return torch.cat([cycle(nodes), chords, chords.flip(0)], dim=1)


@pytest.mark.parametrize("edges", [cycle(9), crossed(9)], ids=["ring", "crossed"])
def test_layers_of_a_wave_are_chebyshev_polynomials(edges):
    P, x = torch.zeros(9, 9, dtype=torch.float64), draw(9, 3)
    P[edges[1], edges[0]] = 1
    P /= P.sum(1, keepdim=True)
    before, now = x, P @ x
    _, states = wave(30)(x, edges, return_states=True)
    for n in range(1, 31):
        torch.testing.assert_close(states.x[n], now, rtol=1e-11, atol=1e-11)
        before, now = now, 2 * P @ now - before
    # The same wave by another name: unit speed, and a step of sqrt(2).
    torch.testing.assert_close(wave(30, 2**0.5, 1.0)(x, edges), states.x[-1])


def test_waves_start_from_rest_under_checkpoints_and_vmap():
    x, edges = draw(9, 3), crossed(9)
    expected = wave(10)(x, edges)
    torch.testing.assert_close(
        wave(10, checkpoint=True)(x.clone().requires_grad_(), edges), expected
    )
    both = torch.func.vmap(lambda part: wave(10)(part, edges))(torch.stack([x, 2 * x]))
    torch.testing.assert_close(both, torch.stack([expected, 2 * expected]))


def test_a_node_without_neighbours_hears_nothing():
    walk = RandomWalk()(draw(3, 2), torch.tensor([[0, 1], [1, 0]]))
    assert torch.equal(walk[2], torch.zeros(2).double())
