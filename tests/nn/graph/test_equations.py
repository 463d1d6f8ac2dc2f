"""Graph networks against their equations, written with dense matrices; waves in closed form."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from anharmonic.nn import GradientGating, GraphCON
from anharmonic.nn.graph import gradient_gating
from anharmonic.nn.graph.couplings import RandomWalk, ResidualCoupling
from anharmonic.nn.graph.textbook import GAT, GCN
from anharmonic.nn.registry import model_class

pyg = pytest.importorskip("torch_geometric.nn", reason="convolutions by name are PyG's")

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3, 4], [1, 0, 2, 1, 1, 2, 3]])  # node 4 has no in-edges
SIGMA = {"relu": torch.relu, "tanh": torch.tanh, "identity": lambda f: f}


def draw(*shape):
    return torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def make(kind, **options):
    """A network whose norms are not at their start, where they would be easy to mistake."""
    torch.manual_seed(0)
    if isinstance(kind, str):
        kind, options = model_class(kind), {"hidden_size": 8, "num_layers": 3, **options}
    model = kind(6, 3, dtype=torch.float64, **options)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm | nn.BatchNorm1d):
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.uniform_(-0.5, 0.5)
    return model


def adjacency():
    """Edges by target, with self-loops."""
    a = torch.eye(5, dtype=torch.float64)
    a[EDGES[1], EDGES[0]] = 1
    return a


def averaged(x):
    """GCN's operator, D^-1/2 (A + I) D^-1/2 with in-degrees, times x."""
    d = adjacency().sum(1).rsqrt()
    return d[:, None] * adjacency() * d @ x


def gcn(conv, x):
    if isinstance(conv, ResidualCoupling):
        return gcn(conv.conv, x) + x @ conv.residual.weight.T + conv.residual.bias
    return averaged(conv.lin(x)) + conv.bias


def coupled(convs, norms, norm, n, x, sigma):
    """σ(F(X)) of layer n, whose norm is over the features of a node or one feature of all nodes."""
    x = gcn(convs[n if len(convs) > 1 else 0], x)
    if norm is not None:
        dim = 1 if norm == "layer" else 0
        centred = x - x.mean(dim, keepdim=True)
        x = centred / (centred.square().mean(dim, keepdim=True) + 1e-5).sqrt()
        x = x * norms[n].weight + norms[n].bias
    return SIGMA[sigma](x)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shared": True},
        {"jump": "cat"},
        {"jump": "max"},
        {"norm": "layer", "residual": "plain"},
        {"norm": "batch", "residual": "plain"},
    ],
    ids=str,
)
def test_a_plain_network(options):
    model, x = make("PlainGNN", **options), draw(5, 6)
    h, found = model.encoder(x).relu(), []
    assert len(model.convs) == (1 if "shared" in options else 3)
    for n in range(3):
        h = coupled(model.convs, model.norms, options.get("norm"), n, h, "relu")
        found.append(h)
    if "jump" in options:
        h = torch.cat(found, 1) if options["jump"] == "cat" else torch.stack(found).amax(0)
    torch.testing.assert_close(model(x, EDGES), model.decoder(h), rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "options",
    [
        {"norm": "layer", "shared": True},
        {"norm": "batch", "shared": False},
        {"frequency": 0.4, "damping": 1.1, "activation": "tanh", "initial_velocity": "zero"},
        {"initial_velocity": "rest", "checkpoint": True},
        {"trainable_frequency": True, "trainable_damping": True},
    ],
    ids=str,
)
def test_graphcon(options):
    options = {"dt": 0.3, "frequency": 0.75, "damping": 0.25, **options}
    model, x = make("GraphCON", **options), draw(5, 6)
    start = options.get("initial_velocity", "features")
    norm, sigma = options.get("norm"), options.get("activation", "relu")
    h = model.encoder(x).relu()
    y = h if start == "features" else torch.zeros_like(h)
    for n in range(3):
        f = coupled(model.block.convs, model.block.norms, norm, n, h, sigma)
        dt = 0.15 if start == "rest" and n == 0 else 0.3
        y = y + dt * (f - options["frequency"] * h - options["damping"] * y)
        h = h + 0.3 * y
    torch.testing.assert_close(model(x, EDGES), model.decoder(h), rtol=0, atol=1e-13)


def gated(
    block, n, h, p=2.0, neighbours="in", single_rate=False, rate_exponent=1.0, gate_scale=1.0,
    activation="relu", gate_activation=None, norm=None, **options,
):  # fmt: skip
    """One layer of gradient gating and its rates."""
    f = coupled(block.convs, block.norms, norm, n, h, activation)
    gates = (block.gate_convs, block.gate_norms) if block.gate_convs else (block.convs, block.norms)
    g = gate_scale * coupled(*gates, norm, n, h, gate_activation or activation)
    tau = torch.zeros_like(h)
    for j, i in EDGES.T.tolist() if neighbours == "in" else EDGES.flip(0).T.tolist():
        tau[i] += (g[j] - g[i]).abs() ** p
    tau = (tau.sum(1, keepdim=True) if single_rate else tau).tanh()
    return torch.lerp(h, f, (tau**rate_exponent).expand_as(h)), tau


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"p": 0.7, "gate_scale": 0.5},
        {"p": 3.3, "separate_gate": True, "norm": "batch"},
        {"norm": "layer", "residual": "plain", "shared": False},
        {"neighbours": "out", "activation": "tanh"},
        {"single_rate": True},
        {"rate_exponent": 0.5},
        {"rate_exponent": 0.0},  # the plain network, without gates
    ],
    ids=str,
)
def test_gradient_gating(options):
    model, x = make("GradientGating", **options), draw(5, 6)
    h, rates = model.encoder(x).relu(), []
    _, states = model.block(h, EDGES, return_states=True)
    for n in range(3):
        h, tau = gated(model.block, n, h, **options)
        rates.append(tau)
    torch.testing.assert_close(model(x, EDGES), model.decoder(h), rtol=0, atol=1e-13)
    torch.testing.assert_close(states.tau, torch.stack(rates), rtol=0, atol=1e-13)


def test_a_gate_may_have_an_activation_of_its_own():
    sigmas = {"activation": "tanh", "gate_activation": "identity"}
    block, h = GradientGating(make("PlainGNN").convs, 3, **sigmas), draw(5, 8)
    _, states = block(h, EDGES, return_states=True)
    torch.testing.assert_close((states.x[1], states.tau[0]), gated(block, 0, h, **sigmas))


@pytest.mark.covering
@pytest.mark.parametrize("rate", [0.0, 1e-38, 1e-25, 1e-12, 0.5])
@pytest.mark.parametrize("exponent", [0.001, 0.5, 1.5])
def test_a_power_of_a_small_rate_keeps_its_value_and_a_finite_gradient(rate, exponent):
    tau = torch.tensor([rate], requires_grad=True)
    power = gradient_gating._power(tau, exponent)
    assert torch.allclose(power, tau.double().pow(exponent).float(), rtol=1e-5, atol=0)
    (1e15 * power).sum().backward()
    assert torch.isfinite(tau.grad).all()
    if rate > 1e-18:  # below, τ^(a - 1) times what comes from above overflows, and 0 stands for it
        slope = 1e15 * exponent * tau.detach().double() ** (exponent - 1)
        assert torch.allclose(tau.grad.double(), slope, rtol=1e-5)


@pytest.mark.papers
def test_gcn2():
    model, x = make("GCNII", num_layers=4, alpha=0.3, theta=0.7), draw(5, 6)
    h = start = model.encoder(x).relu()
    for n, conv in enumerate(model.convs, 1):
        beta = math.log(0.7 / n + 1)
        mixed = 0.7 * averaged(h) + 0.3 * start
        h = ((1 - beta) * mixed + beta * mixed @ conv.weight1).relu()
    assert torch.allclose(model(x, EDGES), model.decoder(h), atol=1e-14)


def test_gcn():
    model, x = make(GCN, num_layers=3).eval(), draw(5, 6)
    h = gcn(model.convs[1], gcn(model.convs[0], x).relu()).relu()
    assert torch.allclose(model(x, EDGES), gcn(model.convs[2], h), atol=1e-14)
    assert [conv.lin.weight.shape for conv in model.convs] == [(16, 6), (16, 16), (3, 16)]
    assert model.output_layer is model.convs[2]


def test_gat_puts_heads_side_by_side_and_averages_the_last():
    model, x = make(GAT, heads=2, hidden_size=8, output_heads=3).eval(), draw(5, 6)
    first, last = model.convs
    assert [type(conv) for conv in model.convs] == [pyg.GATConv] * 2
    assert (first.heads, first.out_channels, first.concat) == (2, 4, True)
    assert (last.heads, last.out_channels, last.concat) == (3, 3, False)
    h = last(functional.elu(first(x, EDGES)), EDGES)
    assert torch.allclose(model(x, EDGES), h, atol=1e-14)
    assert model.output_layer is last


def wave(layers, dt=1.0, scale=2.0):
    return GraphCON(
        RandomWalk(scale), layers, dt, scale, 0.0, activation="identity", initial_velocity="rest"
    )


def test_layers_of_a_wave_are_chebyshev_polynomials():
    """On a ring with some chords, beside which a node without neighbours hears nothing."""
    i = torch.arange(9)
    edges = torch.cat([torch.stack([i, (i + 1) % 9]), torch.tensor([[0, 3, 5], [5, 7, 1]])], dim=1)
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    P, x = torch.zeros(10, 10, dtype=torch.float64), draw(10, 3)
    P[edges[1], edges[0]] = 1
    P /= P.sum(1, keepdim=True).clamp(min=1)
    before, now = x, P @ x
    _, states = wave(30)(x, edges, return_states=True)
    for n in range(1, 31):
        torch.testing.assert_close(states.x[n], now, rtol=1e-11, atol=1e-11)
        before, now = now, 2 * P @ now - before
    # The same wave by another name: unit speed, and a step of sqrt(2).
    torch.testing.assert_close(wave(30, 2**0.5, 1.0)(x, edges), states.x[-1])
    both = torch.func.vmap(lambda part: wave(30)(part, edges))(torch.stack([x, 2 * x]))
    torch.testing.assert_close(both, torch.stack([states.x[-1], 2 * states.x[-1]]))
