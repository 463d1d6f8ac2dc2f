"""GraphCON's steady states, bounds and limits on random networks, beyond the examples."""

import pytest
import torch
from torch import nn

from anharmonic import GraphCON
from anharmonic.nn.graph.attention import AttentionCoupling
from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.bounds.graphcon_states import (
    plain_limit,
    right_stochastic,
    right_stochastic_gcn,
    state_bound,
    state_bound_printed,
    steady_state,
)
from anharmonic_papers.theory.graphs import (
    MatrixCoupling,
    cycle,
    gcn_matrix,
    path,
    random_graph,
    random_walk_matrix,
)


class Mixing(nn.Module):
    """A X W + b."""

    def __init__(self, coupling, width, scale, seed):
        super().__init__()
        self.coupling = coupling
        self.weight = scale * features(width, width, seed)
        self.bias = scale * features(1, width, 50 + seed)

    def forward(self, x, edge_index):
        return self.coupling @ x @ self.weight + self.bias


@pytest.mark.parametrize(("seed", "dt", "damping"), [(0, 0.1, 0.0), (1, 1.3, 0.2), (2, 0.5, 3.0)])
def test_steady_states_stay_for_any_step_and_damping(seed, dt, damping):
    edges = random_graph(7, 3, seed)
    conv, gamma = Mixing(gcn_matrix(edges, 7), 2, 0.3, seed), 1.5
    x = torch.zeros(7, 2).double()
    for _ in range(300):
        x = torch.tanh(conv(x, edges)) / gamma
    layer = GraphCON(conv, 20, dt, gamma, damping, activation="tanh", initial_velocity="zero")
    check = steady_state(layer, x, edges)
    assert check.applies and check.holds and x.abs().max() > 0.05
    assert not steady_state(layer, x + 0.1, edges).applies
    moving = GraphCON(conv, 20, dt, gamma, damping, activation="tanh")
    assert not steady_state(moving, x, edges).holds


def test_rows_of_attention_and_of_the_random_walk_sum_to_one():
    edges = random_graph(9, 4, 1)
    torch.manual_seed(0)
    assert right_stochastic(AttentionCoupling(4, heads=2).double(), features(9, 4, 0), edges).holds
    assert right_stochastic(
        MatrixCoupling(random_walk_matrix(edges, 9)), features(9, 1, 0), edges
    ).holds


def test_rows_of_gcn_sum_to_one_on_regular_graphs_only():
    ring = MatrixCoupling(gcn_matrix(cycle(6), 6))
    assert right_stochastic_gcn(ring, features(6, 1, 0), cycle(6)).holds
    row = right_stochastic_gcn(MatrixCoupling(gcn_matrix(path(3), 3)), features(3, 1, 0), path(3))
    assert row.measured.tolist() == pytest.approx([0.908, 1.150, 0.908], abs=5e-4)


@pytest.mark.parametrize("seed", range(8))
def test_the_state_bound_on_random_networks(seed):
    torch.manual_seed(seed)
    gamma, alpha = (float(10 ** torch.empty(()).uniform_(-1, 0.5)) for _ in range(2))
    dt = 0.95 * min(alpha / gamma, 1 / alpha)
    edges = random_graph(8, 4, seed)
    convs = [Mixing(gcn_matrix(edges, 8), 3, 10.0, 100 * seed + n) for n in range(60)]
    layer = GraphCON(convs, 60, dt, gamma, alpha, activation="tanh")
    check = state_bound(layer, 0.1 * features(8, 3, seed), edges)
    assert check.applies and check.holds and check.ratio > 1e-3


def test_a_worst_drive_passes_the_printed_state_bound_only():
    class Push(nn.Module):
        def forward(self, x, edge_index):
            return torch.full_like(x, 40.0)

    for gamma, alpha, dt in ((0.1, 1.0, 0.9), (0.05, 2.0, 0.45), (0.3, 0.9, 0.8)):
        layer = GraphCON(Push(), 40, dt, gamma, alpha, activation="tanh", initial_velocity="zero")
        x = torch.zeros(2, 1).double()
        printed = state_bound_printed(layer, x, path(2))
        assert printed.applies and not printed.holds
        assert state_bound(layer, x, path(2)).holds
    # γ X² + Y² after one layer is dt²(1 + γ dt²), the bound dt/(α - γ dt).
    assert printed.measured[1] == pytest.approx(dt**2 * (1 + gamma * dt**2))
    assert printed.bound[1] == pytest.approx(dt / (2 * (alpha - gamma * dt)))


# PPI-GCN, ZINC-GAT, Cora and the WebKB graphs, all with dt = 1.
@pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
@pytest.mark.parametrize(("gamma", "alpha"), [(1.0, 0.242), (1.324, 1.475), (1.0, 1.0), (0.0, 0.0)])
def test_tuned_settings_are_outside_the_state_bound(gamma, alpha):
    layer = GraphCON(Mixing(torch.eye(3).double(), 1, 1.0, 0), 5, 1.0, gamma, alpha)
    assert not state_bound(layer, features(3, 1, 0), path(3)).applies


def test_at_one_the_scheme_is_the_plain_network_and_elsewhere_not():
    edges = random_graph(7, 3, 0)
    convs = [Mixing(gcn_matrix(edges, 7), 2, 0.8, n) for n in range(12)]
    check = plain_limit(GraphCON(convs, 12, 1.0), features(7, 2, 0), edges)
    assert check.applies and check.holds
    off = plain_limit(GraphCON(convs, 12, dt=0.9), features(7, 2, 0), edges)
    assert not off.applies and not off.holds
