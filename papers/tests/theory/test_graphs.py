"""Graphs, coupling matrices and differences against sums by hand."""

import pytest
import torch

from anharmonic_papers.theory import graphs


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs_are_connected_and_have_their_chords(seed):
    edges = graphs.random_graph(15, 6, seed)
    assert edges.shape == (2, 2 * (14 + 6))
    assert graphs.laplacian_values(graphs.neighbours(edges, 15))[1] > 1e-6
    assert graphs.eccentricity(edges, 15) < 15


def test_coupling_matrices():
    edges = graphs.random_graph(9, 5, 0)
    degree = graphs.neighbours(edges, 9).sum(1)
    gcn, walk, metropolis = (
        m(edges, 9)
        for m in (graphs.gcn_matrix, graphs.random_walk_matrix, graphs.metropolis_matrix)
    )
    i, j = edges[:, 0]
    assert gcn[i, j] == pytest.approx(float(((degree[i] + 1) * (degree[j] + 1)) ** -0.5))
    assert gcn[i, i] == pytest.approx(float(1 / (degree[i] + 1)))
    assert walk[i, j] == pytest.approx(float(1 / degree[i]))
    assert torch.allclose(walk.sum(1), torch.ones(9).double())
    assert torch.equal(metropolis, metropolis.T) and (metropolis >= 0).all()
    assert torch.allclose(metropolis.sum(1), torch.ones(9).double())
    for matrix in (gcn, walk, metropolis):
        assert torch.equal(graphs.joined(matrix), graphs.neighbours(edges, 9))


def test_difference_sum_counts_every_edge_twice():
    x = torch.tensor([[0.0, 1.0], [2.0, 1.0], [2.0, 4.0]]).double()
    weights = graphs.neighbours(graphs.path(3), 3)
    assert graphs.difference_sum(x, weights) == 2 * (4 + 9)
    assert graphs.difference_sum(torch.stack([x, 2 * x]), weights).tolist() == [26, 104]


def test_graphs_have_distances_and_neither_directions_nor_loops():
    assert graphs.eccentricity(graphs.cycle(7), 7) == 3
    for edges in ([[0], [1]], [[0, 0], [0, 0]]):
        with pytest.raises(ValueError, match="undirected and without loops"):
            graphs.neighbours(torch.tensor(edges), 2)


def test_matrix_coupling_learns_its_weight():
    coupling = graphs.MatrixCoupling(2 * torch.eye(2).double(), 3.0)
    coupling(torch.ones(2, 1).double()).sum().backward()
    assert coupling.weight.grad == 4
