"""Statements of graphcon, beyond their examples."""

import math

import pytest
import torch
from torch import nn

from anharmonic import GraphCON
from anharmonic.diagnostics.smoothing import dirichlet_energy
from anharmonic_papers.theory import graphcon
from anharmonic_papers.theory.graphs import (
    MatrixCoupling,
    difference_sum,
    features,
    metropolis_matrix,
    neighbours,
    path,
    random_graph,
    random_walk_matrix,
)
from anharmonic_papers.theory.integrate import rk4

TIMES = torch.tensor([0.0, 10.0, 20.0, 40.0, 80.0]).double()


def test_damped_energies_fall_as_the_notes_measured():
    # 14.8, 7e-2, 4e-4, 1e-8, 3e-17 there for another draw: e^(-t/2), times a number of order one.
    coupling = metropolis_matrix(random_graph(12, 8, 0), 12)
    energy = graphcon.graphcon_damped_decay(
        coupling, features(12, 2, 0), features(12, 2, 1), TIMES, 0.5
    ).measured
    for here, noted in zip(energy / energy[0], (1, 7e-2, 4e-4, 1e-8, 3e-17), strict=True):
        assert abs(math.log10(float(here) * 14.8 / noted)) < 1.2


@pytest.mark.parametrize(("seed", "layers"), [(0, 160), (1, 160), (2, 400)])
def test_relu_with_damping_oversmooths_in_a_hundred_layers(seed, layers):
    # The notes: from 10 to 5e-11, a factor 5e-12; how fast is a matter of the graph.
    edges = random_graph(12, 8, seed)
    conv = MatrixCoupling(random_walk_matrix(edges, 12))
    x = 2 + 2 * features(12, 1, seed).abs()
    check = graphcon.graphcon_algebraic_printed(GraphCON(conv, layers, 0.2), x, edges)
    assert check.applies and not check.holds
    _, (xs, _) = GraphCON(conv, 100, 0.2)(x, edges, return_states=True)
    half, end = (difference_sum(xs[n], neighbours(edges, 12)) for n in (50, 100))
    start = difference_sum(x, neighbours(edges, 12))
    assert end / start < 1e-6 and half / start < 1e-2
    undamped = graphcon.graphcon_algebraic_printed(
        GraphCON(conv, layers, 0.2, damping=0.0), x, edges
    )
    assert not undamped.applies and float(undamped.measured) < 1  # D stays


@pytest.mark.parametrize("power", [0.5, 4.0, 30.0])
def test_an_algebraic_decay_of_any_power_loses_as_much_in_every_doubling(power):
    t = 0.2 * torch.arange(1, 161, dtype=torch.float64)
    before, after = graphcon.lost_in_doublings(t**-power * (1.5 + t.cos()))
    assert after < 1.5 * before
    before, after = graphcon.lost_in_doublings((-0.01 * power * t).exp())
    assert float(after / before) == pytest.approx(2.0)


EARLY = torch.tensor([0.0, 1.0, 2.0, 5.0]).double()


def case(seed, width=3):
    edges = random_graph(10 + seed, 2 * seed, seed)
    nodes = 10 + seed
    x, y = features(nodes, width, seed), features(nodes, width, 100 + seed)
    return edges, metropolis_matrix(edges, nodes), x, y


def test_the_exact_solution_is_that_of_a_solver():
    _, coupling, x, y = case(1)

    def field(state, t):
        return torch.stack([state[1], coupling @ state[0] - state[0] - 0.3 * state[1]])

    solved = rk4(field, torch.stack([x, y]), EARLY, steps=200)
    xs, ys = graphcon.oscillation(coupling, x, y, EARLY, 0.3)
    assert torch.allclose(solved, torch.stack([xs, ys], 1), atol=1e-8)


def test_uncoupled_nodes_swing_to_first_order():
    x, gaps = features(3, 2, 0), []
    for dt in (0.02, 0.01):
        layer = GraphCON(
            MatrixCoupling(torch.eye(3).double()),
            round(5 / dt),
            dt,
            damping=0.0,
            activation=torch.zeros_like,
        )
        check = graphcon.graphcon_uncoupled(layer, x, path(3))
        assert check.applies and check.holds
        gaps.append((check.measured - check.bound).abs().max())
    assert gaps[0] / gaps[1] == pytest.approx(2, rel=0.05)


def test_the_mean_potential_of_one_mode():
    """Two nodes apart by 2 cos t: of cos², the mean is 1/2 + sin(2t)/(4t)."""
    coupling = torch.tensor([[0.5, 0.5], [0.5, 0.5]]).double()  # λ = 0 and 1
    x = torch.tensor([[1.0], [-1.0]]).double()
    times = torch.linspace(0, 40, 4001).double()
    check = graphcon.graphcon_undamped_spread(coupling, x, 0 * x, times)
    t = times[times > 1]
    expected = 2 * (0.5 + (2 * t).sin() / (4 * t))
    torch.testing.assert_close(check.measured, expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize(("layers", "ratio"), [(5, 3.9994), (20, 18.98)])
@pytest.mark.parametrize("seed", range(2))
def test_the_leading_gradient_carries_the_number_of_layers_above(layers, ratio, seed):
    # The notes' ratios 3.9994 and 18.98 for l = 2 are N - l + 1 up to their dt.
    edges = random_graph(8, 4, seed)
    layer = graphcon.gcn_layer(edges, 8, features(layers, 1, seed)[:, 0], 1e-5)
    x, target = features(8, 1, seed), features(8, 1, 30 + seed)
    check = graphcon.graphcon_gradient_leading(layer, x, edges, target)
    assert check.applies and check.holds
    printed = graphcon.graphcon_gradient_leading_printed(layer, x, edges, target)
    assert printed.applies and not printed.holds
    assert float(printed.measured[1] / printed.bound[1]) == pytest.approx(ratio, rel=5e-3)


def test_a_worst_drive_passes_the_printed_state_bound_only():
    class Push(nn.Module):
        def forward(self, x, edge_index):
            return torch.full_like(x, 40.0)

    for gamma, alpha, dt in ((0.1, 1.0, 0.9), (0.05, 2.0, 0.45), (0.3, 0.9, 0.8)):
        layer = GraphCON(Push(), 40, dt, gamma, alpha, activation="tanh", initial_velocity="zero")
        x = torch.zeros(2, 1).double()
        printed = graphcon.graphcon_state_bound_printed(layer, x, path(2))
        assert printed.applies and not printed.holds
        assert graphcon.graphcon_state_bound(layer, x, path(2)).holds
    # γ X² + Y² after one layer is dt²(1 + γ dt²), the bound dt/(α - γ dt).
    assert printed.measured[1] == pytest.approx(dt**2 * (1 + gamma * dt**2))
    assert printed.bound[1] == pytest.approx(dt / (2 * (alpha - gamma * dt)))


def test_the_energy_is_that_of_the_diagnostics():
    edges = random_graph(9, 4, 0)
    x = features(9, 3, 0)
    assert torch.isclose(
        graphcon.dirichlet(x, metropolis_matrix(edges, 9)), dirichlet_energy(x, edges)
    )
