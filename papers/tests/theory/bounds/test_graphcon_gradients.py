"""GraphCON's gradients on random networks, beyond the examples."""

import pytest
import torch

from anharmonic import GraphCON
from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.bounds.graphcon_gradients import (
    gcn_layer,
    gradient,
    gradient_printed,
    leading_gradient,
    leading_gradient_printed,
)
from anharmonic_papers.theory.graphs import MatrixCoupling, cycle, path, random_graph


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dt", [0.01, 0.5])
def test_the_bound_without_the_number_of_nodes_on_random_networks(seed, dt):
    edges = random_graph(20, 15, seed)
    layer = gcn_layer(edges, 20, features(15, 1, seed)[:, 0], dt)
    check = gradient(layer, features(20, 1, seed), edges, features(20, 1, 70 + seed))
    assert check.applies and check.holds and check.ratio > 1e-6


def test_the_printed_bound_falls_below_a_gradient_that_does_not():
    for nodes in (50, 100, 1000):
        x, edges = torch.ones(nodes, 1).double(), cycle(nodes)
        layer = gcn_layer(edges, nodes, torch.full((10,), 0.5), 0.01)
        printed = gradient_printed(layer, x, edges, -x)
        assert printed.measured[0] == pytest.approx(1.6e-3, rel=0.05)
        assert printed.bound[0] == pytest.approx(0.183 / nodes, rel=0.01)
        assert printed.applies and printed.holds == (nodes <= 100)


def test_with_steps_of_one_the_printed_bound_is_outside_its_range():
    edges = random_graph(20, 15, 0)
    layer = gcn_layer(edges, 20, torch.ones(10), 1.0)
    check = gradient_printed(layer, features(20, 1, 0), edges, features(20, 1, 1))
    assert not check.applies and "Γ N dt ≤ 2.51" in str(check)


@pytest.mark.parametrize(("layers", "ratio"), [(5, 3.9994), (20, 18.98)])
@pytest.mark.parametrize("seed", range(2))
def test_the_leading_gradient_carries_the_number_of_layers_above(layers, ratio, seed):
    # The notes' ratios 3.9994 and 18.98 for l = 2 are N - l + 1 up to their dt.
    edges = random_graph(8, 4, seed)
    layer = gcn_layer(edges, 8, features(layers, 1, seed)[:, 0], 1e-5)
    x, target = features(8, 1, seed), features(8, 1, 30 + seed)
    check = leading_gradient(layer, x, edges, target)
    assert check.applies and check.holds
    printed = leading_gradient_printed(layer, x, edges, target)
    assert printed.applies and not printed.holds
    assert float(printed.measured[1] / printed.bound[1]) == pytest.approx(ratio, rel=5e-3)


def test_what_is_no_scalar_layer_is_refused():
    x = features(3, 1, 0)
    shared = GraphCON(MatrixCoupling(torch.eye(3).double()), 4, 0.1, activation="tanh")
    with pytest.raises(ValueError, match="4 convolutions of one weight each"):
        gradient(shared, x, path(3), x)
    layer = gcn_layer(path(3), 3, torch.ones(2), 0.1)
    with pytest.raises(ValueError, match="scalar features"):
        leading_gradient(layer, features(3, 2, 0), path(3), features(3, 2, 1))


def test_other_operators_and_dampings_are_outside():
    x, edges = features(4, 1, 0), path(4)
    other = GraphCON([MatrixCoupling(torch.eye(4).double())] * 1, 1, 0.01, activation="tanh")
    assert not gradient(other, x, edges, x).applies
    damped = gcn_layer(edges, 4, torch.ones(2), 0.01)
    damped.damping = 0.5
    assert not leading_gradient(damped, x, edges, 0 * x).applies
    unbounded = gcn_layer(edges, 4, torch.ones(2), 0.01)
    unbounded._sigma = torch.relu
    assert not gradient_printed(unbounded, x, edges, x).applies
    assert gradient(unbounded, x, edges, x).applies
    unbounded._sigma = lambda values: 2 * values
    assert not gradient(unbounded, x, edges, x).applies
