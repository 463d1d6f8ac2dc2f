"""Gradient gating: the equation by hand, its limits, settings and errors."""

import pytest
import torch
from torch import nn

from anharmonic import GradientGating
from anharmonic.nn.graph import gradient_gating


class Map(nn.Module):
    """(A X) W with A the plain sum over in-neighbours."""

    def __init__(self, width, seed=0, scale=1.0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(
            scale * torch.randn(width, width, dtype=torch.float64, generator=generator)
        )

    def forward(self, x, edge_index):
        message = x[edge_index[0]] @ self.weight
        return torch.zeros_like(x).index_add(0, edge_index[1], message)


EDGES = torch.tensor([[0, 1, 1, 2, 3, 3], [1, 0, 2, 1, 1, 2]])  # node 3 has no in-edges


def draw(*shape, seed=0):
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


SIGMA = {"relu": torch.relu, "tanh": torch.tanh, "identity": lambda f: f}


def by_hand(
    x, conv, gate, p=2.0, neighbours="in", single_rate=False, activation="relu",
    gate_activation="relu",
):  # fmt: skip
    """One layer and its rates."""
    f, g = SIGMA[activation](conv(x, EDGES)), SIGMA[gate_activation](gate(x, EDGES))
    tau = torch.zeros_like(x)
    for j, i in EDGES.T.tolist():
        if neighbours == "out":
            i, j = j, i
        tau[i] += (g[j] - g[i]).abs() ** p
    tau = (tau.sum(1, keepdim=True) if single_rate else tau).tanh()
    return (1 - tau) * x + tau * f, tau


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"p": 0.7},
        {"gate_conv": Map(3, seed=1), "p": 3.3},
        {"neighbours": "out"},
        {"single_rate": True},
        {"activation": "tanh", "gate_activation": "identity"},
    ],
    ids=str,
)
def test_two_layers_by_hand(options):
    x, conv = draw(4, 3), Map(3)
    out, states = GradientGating(conv, 2, **options)(x, EDGES, return_states=True)
    words = {name: value for name, value in options.items() if name != "gate_conv"}
    gate = options.get("gate_conv", conv)
    first, tau_1 = by_hand(x, conv, gate, **words)
    second, tau_2 = by_hand(first, conv, gate, **words)
    assert torch.allclose(out, second, rtol=0, atol=1e-13)
    assert torch.allclose(states.tau, torch.stack([tau_1, tau_2]), rtol=0, atol=1e-13)
    assert not options or not torch.allclose(out, GradientGating(conv, 2)(x, EDGES), atol=1e-3)


def test_exponent_zero_is_the_plain_network():
    x, conv = draw(4, 3), Map(3, scale=0.5)
    plain = x
    for _ in range(3):
        plain = conv(plain, EDGES).relu()
    off = GradientGating(conv, 3, rate_exponent=0.0)
    assert torch.allclose(off(x, EDGES), plain, rtol=0, atol=1e-13)
    rate = by_hand(x, conv, conv, 2.0)[1].sqrt()
    expected = (1 - rate) * x + rate * conv(x, EDGES).relu()
    half = GradientGating(conv, 1, rate_exponent=0.5)(x.requires_grad_(), EDGES)
    assert torch.allclose(half, expected, rtol=0, atol=1e-13)
    half.sum().backward()  # node 3 has rate 0, where the root is not differentiable
    assert torch.isfinite(x.grad).all()


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


def test_a_node_without_neighbours_and_equal_neighbours_keep_their_features():
    x = draw(4, 3)
    out = GradientGating(Map(3), 50)(x, EDGES)
    assert torch.equal(out[3], x[3])
    ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    same = torch.full((4, 3), 0.3, dtype=torch.float64)
    assert torch.equal(GradientGating(Map(3), 50)(same, ring), same)
