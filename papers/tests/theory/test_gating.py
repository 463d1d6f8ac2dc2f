"""Statements of gating, beyond their examples."""

import math

import pytest
import torch
from torch import nn

from anharmonic import GradientGating
from anharmonic_papers.theory import gating
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


@pytest.mark.parametrize(
    ("p", "size", "spread"), [(2.0, 1.0, 0.64 / 0.46), (4.0, 1 / 3, 0.85 / 0.38)]
)
def test_gated_decay_is_algebraic(p, size, spread):
    # The notes: S t^(2/p) within 0.46 to 0.64 (p = 2) and 0.38 to 0.85 (p = 4) from t = 1e2 to 1e5.
    coupling = metropolis_matrix(random_graph(10, 6, 0), 10)
    times = gating.slow_times(1e5, 41)
    check = gating.g2_gated_decay(coupling, size * gating.deviations(10, 0), p, times, steps=12)
    assert check.applies and check.holds
    kept = (check.measured * times ** (2 / p))[times > 1e2]
    assert float(kept.max() / kept.min()) < spread


def test_the_printed_constant_is_passed_on_a_long_path():
    coupling = metropolis_matrix(path(40), 40)
    arguments = coupling, gating.ramp(40) / 40, 2.0, gating.slow_times(3e4, 11), 50
    printed = gating.g2_gated_decay_printed(*arguments)
    assert printed.applies and not printed.holds
    assert gating.g2_gated_decay(*arguments).holds


def test_bad_input():
    coupling = metropolis_matrix(path(4), 4)
    with pytest.raises(ValueError, match="scalar features"):
        gating.g2_gated_lower(coupling, features(4, 2, 0), 2.0, gating.slow_times(10, 5))
    with pytest.raises(ValueError, match="scalar features"):
        gating.g2_gated_decay(coupling, features(4, 2, 0), 2.0, gating.slow_times(10, 5))
    assert not gating.g2_gated_lower(
        coupling, -gating.ramp(4), 2.0, gating.slow_times(10, 5)
    ).applies
    assert not gating.g2_gated_decay(
        coupling, gating.ramp(4) + 1, 2.0, gating.slow_times(10, 5)
    ).applies
    with pytest.raises(
        ValueError, match=r"steps must be so many that the solution stays finite; got 1"
    ):
        gating.g2_gated_decay(coupling, 9 * gating.ramp(4), 2.0, gating.slow_times(1e6, 3), steps=1)
    assert torch.allclose(gating.slow_times(99, 3), torch.tensor([0.0, 9.0, 99.0]).double())


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
    check = gating.g2_range(layer(p=p), x, EDGES, -1.0, 1.0)
    assert check.applies and check.holds and check.ratio > 0.9
    printed = gating.g2_range_printed(layer(p=p), x, EDGES, -1.0, 1.0)
    assert printed.applies and printed.holds == bool(x.abs().max() <= 1)


def test_inside_the_unit_range_the_printed_bound_holds():
    x = features(9, 2, 1).tanh()
    assert gating.g2_range_printed(layer(), x, EDGES, -1.0, 1.0).holds


def test_relu_is_bounded_from_below_only():
    x = features(9, 2, 1)
    grown = gating.g2_range(layer(1.0, 30, activation="relu"), x, EDGES, 0.0, math.inf)
    assert grown.applies and grown.holds
    # With a range that the activation leaves, the statement does not apply.
    assert not gating.g2_range(layer(1.0, 30, activation="relu"), x, EDGES, -1.0, 1.0).applies


def test_limits_are_the_plain_network_and_g2_is_not():
    x = features(9, 2, 0)
    check = gating.g2_limit_exponent(layer(0.7, 15, rate_exponent=0.0), x, EDGES)
    assert check.applies and check.holds
    gated = gating.g2_limit_exponent(layer(0.7, 15), x, EDGES)
    assert not gated.applies and not gated.holds
    assert not gating.g2_limit_plain(layer(0.7, 15), x, EDGES).applies


@pytest.mark.parametrize("p", [1.0, 2.5])
def test_a_layer_is_one_step_of_euler(p):
    same = GradientGating(Mixing(0.9, 0), 20, p=p, activation="tanh", gate_activation="relu")
    check = gating.g2_euler(same, features(9, 2, 0), EDGES)
    assert check.applies and check.holds
    mean = GradientGating(Mixing(0.9, 0), 20, p=p, aggr="mean", activation="tanh")
    off = gating.g2_euler(mean, features(9, 2, 0), EDGES)
    assert not off.applies and not off.holds


TIMES = torch.linspace(0, 50, 51).double()


@pytest.mark.parametrize(("nodes", "squares", "bound"), [(20, 2470, 1444), (40, 20540, 6084)])
def test_paths_pass_the_printed_inequality(nodes, squares, bound):
    check = gating.g2_poincare_printed(gating.ramp(nodes), path(nodes))
    assert check.applies and not check.holds
    assert (float(check.measured), float(check.bound)) == (squares, bound)
    assert gating.g2_poincare(gating.ramp(nodes), path(nodes)).holds


def test_a_node_that_is_not_held_is_outside():
    assert not gating.g2_poincare(gating.ramp(5) + 1, path(5)).applies
    assert not gating.g2_no_gating(metropolis_matrix(path(5), 5), gating.ramp(5) + 1, TIMES).applies


def test_long_paths_decay_more_slowly_than_printed():
    for nodes in (20, 40):
        coupling = metropolis_matrix(path(nodes), nodes)
        printed = gating.g2_no_gating_printed(coupling, gating.ramp(nodes), 20 * TIMES)
        assert printed.applies and not printed.holds
        assert gating.g2_no_gating(coupling, gating.ramp(nodes), 20 * TIMES).holds
    short = metropolis_matrix(cycle(5), 5)
    assert gating.g2_no_gating_printed(short, gating.deviations(5, 0), TIMES).holds


def test_an_asymmetric_coupling_is_outside_and_still_decays():
    coupling = random_walk_matrix(random_graph(10, 6, 1), 10)
    assert not gating.g2_no_gating(coupling, gating.deviations(10, 1), TIMES).applies
    check = gating.g2_relaxed(coupling, gating.deviations(10, 1), TIMES)
    assert check.applies and check.holds and check.ratio > 0.01


def test_graphs_in_parts_are_refused():
    with pytest.raises(ValueError, match="the graph must be connected"):
        gating.g2_poincare(gating.ramp(4), undirected([(0, 1), (2, 3)]))
