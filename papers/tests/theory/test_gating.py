"""Statements of gating, beyond their examples."""

import math

import pytest
import torch
from torch import nn

from anharmonic import GradientGating
from anharmonic_papers.theory.gating import (
    deviations,
    g2_euler,
    g2_gated_decay,
    g2_gated_decay_printed,
    g2_gated_lower,
    g2_limit_exponent,
    g2_limit_plain,
    g2_no_gating,
    g2_no_gating_printed,
    g2_poincare,
    g2_poincare_printed,
    g2_range,
    g2_range_printed,
    g2_relaxed,
    ramp,
    slow_times,
)
from anharmonic_papers.theory.graphs import (
    cycle,
    features,
    gcn_matrix,
    metropolis_matrix,
    path,
    random_graph,
    random_walk_matrix,
    undirected,
)


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("seed", range(2))
def test_gated_nodes_never_decay_exponentially(p, seed):
    coupling = random_walk_matrix(random_graph(10, 6, seed), 10)
    check = g2_gated_lower(coupling, features(10, 1, seed).abs(), p, slow_times(1e4, 21))
    assert check.applies and check.holds
    later = check.measured[1:] > 0.2 * check.measured[0]
    assert not later.all()  # it did move


@pytest.mark.parametrize(
    ("p", "size", "spread"), [(2.0, 1.0, 0.64 / 0.46), (4.0, 1 / 3, 0.85 / 0.38)]
)
def test_gated_decay_is_algebraic(p, size, spread):
    # The notes: S t^(2/p) within 0.46 to 0.64 (p = 2) and 0.38 to 0.85 (p = 4) from t = 1e2 to 1e5.
    coupling = metropolis_matrix(random_graph(10, 6, 0), 10)
    times = slow_times(1e5, 41)
    check = g2_gated_decay(coupling, size * deviations(10, 0), p, times, steps=12)
    assert check.applies and check.holds
    kept = (check.measured * times ** (2 / p))[times > 1e2]
    assert float(kept.max() / kept.min()) < spread


def test_the_printed_constant_is_passed_on_a_long_path():
    coupling = metropolis_matrix(path(40), 40)
    arguments = coupling, ramp(40) / 40, 2.0, slow_times(3e4, 11), 50
    printed = g2_gated_decay_printed(*arguments)
    assert printed.applies and not printed.holds
    assert g2_gated_decay(*arguments).holds


def test_gating_is_slower_than_none():
    times = slow_times(1e3, 21)
    coupling = metropolis_matrix(random_graph(10, 6, 0), 10)
    check = g2_gated_decay(coupling, deviations(10, 0), 2.0, times)
    assert check.measured[-1] > 1e-4 * check.measured[0]


def test_bad_input():
    coupling = metropolis_matrix(path(4), 4)
    with pytest.raises(ValueError, match="scalar features"):
        g2_gated_lower(coupling, features(4, 2, 0), 2.0, slow_times(10, 5))
    with pytest.raises(ValueError, match="scalar features"):
        g2_gated_decay(coupling, features(4, 2, 0), 2.0, slow_times(10, 5))
    assert not g2_gated_lower(coupling, -ramp(4), 2.0, slow_times(10, 5)).applies
    assert not g2_gated_decay(coupling, ramp(4) + 1, 2.0, slow_times(10, 5)).applies
    with pytest.raises(ValueError, match=r"the solution must stay finite.*steps=1"):
        g2_gated_decay(coupling, 9 * ramp(4), 2.0, slow_times(1e6, 3), steps=1)
    assert torch.allclose(slow_times(99, 3), torch.tensor([0.0, 9.0, 99.0]).double())


EDGES = random_graph(9, 5, 3)


class Mixing(nn.Module):
    def __init__(self, scale, seed):
        super().__init__()
        self.weight = scale * features(2, 2, seed)

    def forward(self, x, edge_index):
        return gcn_matrix(EDGES, 9) @ x @ self.weight


def layer(scale=4.0, layers=150, **options):
    settings = {"activation": "tanh", "gate_activation": "tanh"} | options
    return GradientGating([Mixing(scale, n) for n in range(layers)], layers, **settings)


@pytest.mark.parametrize("p", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("size", [0.5, 4.0])
def test_features_keep_their_range(p, size):
    x = size * features(9, 2, 1)
    check = g2_range(layer(p=p), x, EDGES, -1.0, 1.0)
    assert check.applies and check.holds and check.ratio > 0.9
    printed = g2_range_printed(layer(p=p), x, EDGES, -1.0, 1.0)
    assert printed.applies and printed.holds == bool(x.abs().max() <= 1)


def test_inside_the_unit_range_the_printed_bound_holds():
    x = features(9, 2, 1).tanh()
    assert g2_range_printed(layer(), x, EDGES, -1.0, 1.0).holds


def test_relu_is_bounded_from_below_only():
    x = features(9, 2, 1)
    grown = g2_range(layer(1.0, 30, activation="relu"), x, EDGES, 0.0, math.inf)
    assert grown.applies and grown.holds
    # With a range that the activation leaves, the statement does not apply.
    assert not g2_range(layer(1.0, 30, activation="relu"), x, EDGES, -1.0, 1.0).applies


def test_limits_are_the_plain_network_and_g2_is_not():
    x = features(9, 2, 0)
    check = g2_limit_exponent(layer(0.7, 15, rate_exponent=0.0), x, EDGES)
    assert check.applies and check.holds
    gated = g2_limit_exponent(layer(0.7, 15), x, EDGES)
    assert not gated.applies and not gated.holds
    assert not g2_limit_plain(layer(0.7, 15), x, EDGES).applies


@pytest.mark.parametrize("p", [1.0, 2.5])
def test_a_layer_is_one_step_of_euler(p):
    same = GradientGating(Mixing(0.9, 0), 20, p=p, activation="tanh", gate_activation="relu")
    check = g2_euler(same, features(9, 2, 0), EDGES)
    assert check.applies and check.holds
    mean = GradientGating(Mixing(0.9, 0), 20, p=p, aggr="mean", activation="tanh")
    off = g2_euler(mean, features(9, 2, 0), EDGES)
    assert not off.applies and not off.holds


TIMES = torch.linspace(0, 50, 51).double()


@pytest.mark.parametrize(("nodes", "squares", "bound"), [(20, 2470, 1444), (40, 20540, 6084)])
def test_paths_pass_the_printed_inequality(nodes, squares, bound):
    check = g2_poincare_printed(ramp(nodes), path(nodes))
    assert check.applies and not check.holds
    assert (float(check.measured), float(check.bound)) == (squares, bound)
    assert g2_poincare(ramp(nodes), path(nodes)).holds


@pytest.mark.parametrize("seed", range(10))
def test_the_corrected_inequality_on_random_graphs(seed):
    edges = random_graph(15, seed, seed)
    assert g2_poincare(deviations(15, seed), edges).holds
    # The worst Y of a graph: the lowest mode without the first node.
    from anharmonic_papers.theory.graphs import neighbours

    weights = neighbours(edges, 15)
    laplacian = (torch.diag(weights.sum(1)) - weights)[1:, 1:]
    worst = torch.cat([torch.zeros(1, 1).double(), torch.linalg.eigh(laplacian)[1][:, :1]])
    check = g2_poincare(worst, edges)
    assert check.applies and check.holds and check.ratio > 0.05


def test_a_node_that_is_not_held_is_outside():
    assert not g2_poincare(ramp(5) + 1, path(5)).applies
    assert not g2_no_gating(metropolis_matrix(path(5), 5), ramp(5) + 1, TIMES).applies


@pytest.mark.parametrize("seed", range(5))
def test_ungated_nodes_decay_at_least_at_the_corrected_rate(seed):
    coupling = metropolis_matrix(random_graph(12, 2 * seed, seed), 12)
    check = g2_no_gating(coupling, deviations(12, seed), TIMES)
    assert check.applies and check.holds and check.measured[-1] < check.measured[0]


def test_long_paths_decay_more_slowly_than_printed():
    for nodes in (20, 40):
        coupling = metropolis_matrix(path(nodes), nodes)
        printed = g2_no_gating_printed(coupling, ramp(nodes), 20 * TIMES)
        assert printed.applies and not printed.holds
        assert g2_no_gating(coupling, ramp(nodes), 20 * TIMES).holds
    short = metropolis_matrix(cycle(5), 5)
    assert g2_no_gating_printed(short, deviations(5, 0), TIMES).holds


def test_an_asymmetric_coupling_is_outside_and_still_decays():
    coupling = random_walk_matrix(random_graph(10, 6, 1), 10)
    assert not g2_no_gating(coupling, deviations(10, 1), TIMES).applies
    check = g2_relaxed(coupling, deviations(10, 1), TIMES)
    assert check.applies and check.holds and check.ratio > 0.01


def test_graphs_in_parts_are_refused():
    with pytest.raises(ValueError, match="the graph must be connected"):
        g2_poincare(ramp(4), undirected([(0, 1), (2, 3)]))
