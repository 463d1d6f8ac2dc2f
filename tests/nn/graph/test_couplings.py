"""Couplings against their formulas, and what they refuse."""

import pytest
import torch

from anharmonic import Adjacency
from anharmonic.nn.graph.attention import AttentionCoupling
from anharmonic.nn.graph.convolutions import make_conv
from anharmonic.nn.graph.couplings import (
    Propagation,
    RandomWalk,
    ResidualCoupling,
)

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3], [1, 0, 2, 1, 1, 1]])  # the last edge twice


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", ["v1", "v2", "plain"])
def test_residual_terms(kind):
    pytest.importorskip("torch_geometric", reason="the convolution is PyG's")
    torch.manual_seed(0)
    conv, x = make_conv("GCN", 4).double(), draw(4, 4)
    coupling = ResidualCoupling(conv, 4, 4, kind).double()
    mapped, convolved = x @ conv.lin.weight.T, conv(x, EDGES)
    expected = {
        "v1": convolved - coupling.residual(mapped),
        "v2": convolved - mapped + coupling.residual(x),
        "plain": convolved + coupling.residual(x),
    }[kind]
    assert torch.allclose(coupling(x, EDGES), expected, rtol=0, atol=1e-14)
    before = coupling.residual.weight.clone()
    coupling.reset_parameters()
    assert not torch.equal(before, coupling.residual.weight)


def test_heads_are_averaged_and_count():
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    for name in ("GAT", "GATMean"):
        few, many = make_conv(name, 4, heads=1), make_conv(name, 4, heads=4)
        assert few(draw(4, 4).float(), EDGES).shape == many(draw(4, 4).float(), EDGES).shape
        assert sum(map(torch.numel, many.parameters())) > sum(map(torch.numel, few.parameters()))


def test_propagation_is_gcn_without_its_weights():
    pytest.importorskip("torch_geometric", reason="compared with PyG's GCN")
    from torch_geometric.nn import GCNConv

    conv, x = GCNConv(3, 3, bias=False), torch.rand(4, 3)
    conv.lin.weight.data = torch.eye(3)
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    assert torch.allclose(Propagation()(x, edges), conv(x, edges), atol=1e-6)
    assert torch.allclose(Propagation()(x, Adjacency(edges, 4)), conv(x, edges), atol=1e-6)


def test_weights_of_a_sparse_adjacency_count_or_are_refused():
    x, weight = draw(4, 3), torch.tensor([0.5, 2.0, 0.1], dtype=torch.float64)
    edges = torch.tensor([[1, 0, 2], [0, 1, 1]])  # sorted by target, as a sparse tensor's are
    sparse = torch.sparse_coo_tensor(edges.flip(0), weight, (4, 4), check_invariants=True)
    given = Adjacency(edges, 4, weight)
    assert torch.equal(Propagation()(x, sparse), Propagation()(x, given))
    assert not torch.allclose(Propagation()(x, sparse), Propagation()(x, edges))
    for coupling in (RandomWalk(), AttentionCoupling(3).double()):
        for graph in (sparse, given):
            with pytest.raises(ValueError, match="edge_index must be edges without weights"):
                coupling(x, graph)
