"""Graphs, coupling matrices and differences against sums by hand."""

import pytest
import torch

from anharmonic_papers.theory.graphs import (
    MatrixCoupling,
    cycle,
    difference_sum,
    eccentricity,
    gcn_matrix,
    joined,
    laplacian_values,
    metropolis_matrix,
    neighbours,
    path,
    random_graph,
    random_walk_matrix,
    undirected,
)


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs_are_connected_and_have_their_chords(seed):
    edges = random_graph(15, 6, seed)
    assert edges.shape == (2, 2 * (14 + 6))
    assert laplacian_values(neighbours(edges, 15))[1] > 1e-6
    assert eccentricity(edges, 15) < 15


def test_coupling_matrices():
    edges = random_graph(9, 5, 0)
    degree = neighbours(edges, 9).sum(1)
    gcn, walk, metropolis = (
        m(edges, 9) for m in (gcn_matrix, random_walk_matrix, metropolis_matrix)
    )
    i, j = edges[:, 0]
    assert gcn[i, j] == pytest.approx(float(((degree[i] + 1) * (degree[j] + 1)) ** -0.5))
    assert gcn[i, i] == pytest.approx(float(1 / (degree[i] + 1)))
    assert walk[i, j] == pytest.approx(float(1 / degree[i]))
    assert torch.allclose(walk.sum(1), torch.ones(9).double())
    assert torch.equal(metropolis, metropolis.T) and (metropolis >= 0).all()
    assert torch.allclose(metropolis.sum(1), torch.ones(9).double())
    for matrix in (gcn, walk, metropolis):
        assert torch.equal(joined(matrix), neighbours(edges, 9))


def test_difference_sum_counts_every_edge_twice():
    x = torch.tensor([[0.0, 1.0], [2.0, 1.0], [2.0, 4.0]]).double()
    weights = neighbours(path(3), 3)
    assert difference_sum(x, weights) == 2 * (4 + 9)
    assert difference_sum(torch.stack([x, 2 * x]), weights).tolist() == [26, 104]


def test_distances():
    assert eccentricity(cycle(7), 7) == 3
    with pytest.raises(ValueError, match="the graph must be connected"):
        eccentricity(undirected([(0, 1), (2, 3)]), 4)


@pytest.mark.parametrize("edges", [[[0], [1]], [[0, 0], [0, 0]]])
def test_graphs_must_be_undirected_without_loops(edges):
    with pytest.raises(ValueError, match="undirected and without loops"):
        neighbours(torch.tensor(edges), 2)


def test_matrix_coupling_learns_its_weight():
    coupling = MatrixCoupling(2 * torch.eye(2).double(), 3.0)
    coupling(torch.ones(2, 1).double()).sum().backward()
    assert coupling.weight.grad == 4
