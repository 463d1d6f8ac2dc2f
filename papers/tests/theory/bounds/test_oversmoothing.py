"""What oversmoothing is, on random graphs, beyond the examples."""

import pytest
import torch

from anharmonic.diagnostics.smoothing import dirichlet_energy
from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.bounds.oversmoothing import (
    dirichlet,
    gating_point_printed,
    gating_set,
    oversmoothing_point_printed,
    oversmoothing_set,
    similarity_subadditive,
    similarity_subadditive_printed,
    similarity_zero,
)
from anharmonic_papers.theory.graphs import metropolis_matrix, random_graph, undirected

TIMES = torch.linspace(0, 40, 81).double()


def test_the_energy_is_that_of_the_diagnostics():
    edges = random_graph(9, 4, 0)
    x = features(9, 3, 0)
    assert torch.isclose(dirichlet(x, metropolis_matrix(edges, 9)), dirichlet_energy(x, edges))


@pytest.mark.parametrize("seed", range(5))
def test_the_measure_is_zero_on_constants_only(seed):
    edges = random_graph(10, 3 * seed, seed)
    check = similarity_zero(features(10, 2, seed), edges)
    assert check.applies and check.holds
    constant = similarity_zero(torch.full((10, 2), 0.5).double(), edges)
    assert constant.measured == 0


def test_the_lower_bound_is_reached_by_the_slowest_mode():
    edges = random_graph(10, 3, 0)
    from anharmonic_papers.theory.graphs import neighbours

    weights = neighbours(edges, 10)
    _, modes = torch.linalg.eigh(torch.diag(weights.sum(1)) - weights)
    assert similarity_zero(modes[:, 1:2], edges).ratio == pytest.approx(1)


def test_two_graphs_are_outside():
    check = similarity_zero(
        torch.tensor([[0.0], [0.0], [1.0], [1.0]]).double(), undirected([(0, 1), (2, 3)])
    )
    assert not check.applies and check.measured == 0


@pytest.mark.parametrize("seed", range(5))
def test_the_root_is_subadditive(seed):
    edges = random_graph(10, 5, seed)
    x, y = features(10, 2, seed), features(10, 2, 40 + seed)
    assert similarity_subadditive(x, y, edges).holds
    assert similarity_subadditive(x, 3 * x, edges).ratio == pytest.approx(1)
    printed = similarity_subadditive_printed(x, x, edges)
    assert not printed.holds and printed.ratio == pytest.approx(2)


@pytest.mark.parametrize("seed", range(3))
def test_differences_die_and_constants_stay(seed):
    coupling = metropolis_matrix(random_graph(10, 8, seed), 10)
    x = 0.1 * features(10, 1, seed)
    for point, whole in (
        (
            oversmoothing_point_printed(coupling, x, TIMES, 0.7),
            oversmoothing_set(coupling, x, TIMES, 0.7),
        ),
        (gating_point_printed(coupling, x, TIMES), gating_set(coupling, x, TIMES)),
    ):
        assert point.applies and not point.holds
        assert point.measured[-1] == pytest.approx(float(x.mean().abs()) * 10**0.5, rel=1e-2)
        assert whole.applies and whole.holds and whole.measured[:, -1].max() < 1e-3


def test_without_damping_nothing_decays():
    coupling = metropolis_matrix(random_graph(10, 8, 0), 10)
    check = oversmoothing_point_printed(coupling, features(10, 1, 0), TIMES, 0.0)
    assert not check.applies
