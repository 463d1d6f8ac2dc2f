"""Graphs with a node held fixed, beyond the examples."""

import pytest
import torch

from anharmonic_papers.theory.bounds.held_node import (
    deviations,
    no_gating,
    no_gating_printed,
    poincare,
    poincare_printed,
    ramp,
    relaxed,
)
from anharmonic_papers.theory.graphs import (
    cycle,
    metropolis_matrix,
    path,
    random_graph,
    random_walk_matrix,
    undirected,
)

TIMES = torch.linspace(0, 50, 51).double()


@pytest.mark.parametrize(("nodes", "squares", "bound"), [(20, 2470, 1444), (40, 20540, 6084)])
def test_paths_pass_the_printed_inequality(nodes, squares, bound):
    check = poincare_printed(ramp(nodes), path(nodes))
    assert check.applies and not check.holds
    assert (float(check.measured), float(check.bound)) == (squares, bound)
    assert poincare(ramp(nodes), path(nodes)).holds


@pytest.mark.parametrize("seed", range(10))
def test_the_corrected_inequality_on_random_graphs(seed):
    edges = random_graph(15, seed, seed)
    assert poincare(deviations(15, seed), edges).holds
    # The worst Y of a graph: the lowest mode without the first node.
    from anharmonic_papers.theory.graphs import neighbours

    weights = neighbours(edges, 15)
    laplacian = (torch.diag(weights.sum(1)) - weights)[1:, 1:]
    worst = torch.cat([torch.zeros(1, 1).double(), torch.linalg.eigh(laplacian)[1][:, :1]])
    check = poincare(worst, edges)
    assert check.applies and check.holds and check.ratio > 0.05


def test_a_node_that_is_not_held_is_outside():
    assert not poincare(ramp(5) + 1, path(5)).applies
    assert not no_gating(metropolis_matrix(path(5), 5), ramp(5) + 1, TIMES).applies


@pytest.mark.parametrize("seed", range(5))
def test_ungated_nodes_decay_at_least_at_the_corrected_rate(seed):
    coupling = metropolis_matrix(random_graph(12, 2 * seed, seed), 12)
    check = no_gating(coupling, deviations(12, seed), TIMES)
    assert check.applies and check.holds and check.measured[-1] < check.measured[0]


def test_long_paths_decay_more_slowly_than_printed():
    for nodes in (20, 40):
        coupling = metropolis_matrix(path(nodes), nodes)
        printed = no_gating_printed(coupling, ramp(nodes), 20 * TIMES)
        assert printed.applies and not printed.holds
        assert no_gating(coupling, ramp(nodes), 20 * TIMES).holds
    short = metropolis_matrix(cycle(5), 5)
    assert no_gating_printed(short, deviations(5, 0), TIMES).holds


def test_an_asymmetric_coupling_is_outside_and_still_decays():
    coupling = random_walk_matrix(random_graph(10, 6, 1), 10)
    assert not no_gating(coupling, deviations(10, 1), TIMES).applies
    check = relaxed(coupling, deviations(10, 1), TIMES)
    assert check.applies and check.holds and check.ratio > 0.01


def test_graphs_in_parts_are_refused():
    with pytest.raises(ValueError, match="the graph must be connected"):
        poincare(ramp(4), undirected([(0, 1), (2, 3)]))
