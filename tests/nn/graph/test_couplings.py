"""Couplings against their formulas, and what they refuse."""

import math

import pytest
import torch
from torch.nn import functional

from anharmonic import Adjacency
from anharmonic.nn.graph.attention import AdditiveAttentionCoupling, AttentionCoupling
from anharmonic.nn.graph.couplings import Propagation, RandomWalk, ResidualCoupling

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3], [1, 0, 2, 1, 1, 1]])  # the last edge twice


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def pyg():
    return pytest.importorskip("torch_geometric.nn", reason="the reference is PyG's")


@pytest.mark.parametrize("kind", ["v1", "v2", "plain"])
def test_residual_terms(kind, pyg):
    torch.manual_seed(0)
    conv, x = pyg.GCNConv(4, 4).double(), draw(4, 4)
    coupling = ResidualCoupling(conv, 4, 4, kind).double()
    mapped, residual = x @ conv.lin.weight.T, coupling.residual
    added = {"v1": -residual(mapped), "v2": residual(x) - mapped, "plain": residual(x)}[kind]
    assert torch.allclose(coupling(x, EDGES), conv(x, EDGES) + added, rtol=0, atol=1e-14)


def test_propagation_is_gcn_without_its_weights(pyg):
    conv, x = pyg.GCNConv(3, 3, bias=False), torch.rand(4, 3)
    conv.lin.weight.data = torch.eye(3)
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    for graph in (edges, Adjacency(edges, 4)):
        assert torch.allclose(Propagation()(x, graph), conv(x, edges), atol=1e-6)


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


def test_attention_is_the_mean_of_dense_softmaxes_that_count_a_node_once():
    torch.manual_seed(0)
    coupling, x = AttentionCoupling(4, 6, heads=2).double(), draw(4, 4)
    count = torch.eye(4, dtype=torch.float64)
    for j, i in EDGES.T.tolist():
        count[i, j] += 1
    rows = 0.0
    for q, k in zip(coupling.query(x).split(3, 1), coupling.key(x).split(3, 1), strict=True):
        score = q @ k.T / math.sqrt(3) + count.log()  # an edge listed twice has twice the weight
        rows = rows + functional.softmax(score, dim=1) / 2
    looped = torch.cat([EDGES, torch.tensor([[1, 1, 3], [1, 1, 3]])], dim=1)
    for graph in (EDGES, Adjacency(EDGES, 4), looped, Adjacency(looped, 4)):
        assert torch.allclose(coupling(x, graph), rows @ x, rtol=0, atol=1e-13)


@pytest.mark.fast("AdditiveAttentionCoupling-edge_index")
@pytest.mark.parametrize("graph", [EDGES, Adjacency(EDGES, 4)], ids=["edge_index", "Adjacency"])
@pytest.mark.parametrize("make", [AttentionCoupling, AdditiveAttentionCoupling])
def test_attention_compiles_and_has_second_derivatives(make, graph):
    torch.manual_seed(0)
    coupling, x = make(2, heads=2).double(), draw(4, 2).requires_grad_()
    expected = coupling(x, graph)
    traced = torch.compile(coupling, backend="aot_eager", fullgraph=True)
    assert torch.allclose(traced(x, graph), expected, rtol=0, atol=1e-14)
    assert torch.autograd.gradgradcheck(lambda x: coupling(x, graph), x)


def test_attention_stays_finite_for_large_scores():
    x = (1e3 * draw(4, 4)).requires_grad_()
    out = AttentionCoupling(4).double()(x, EDGES)
    out.sum().backward()
    assert torch.isfinite(out).all() and torch.isfinite(x.grad).all()


def test_additive_attention_has_the_weights_of_gat(pyg):
    torch.manual_seed(0)
    gat, x = pyg.GATConv(4, 3, heads=2).double(), draw(4, 4)
    _, (edges, weight) = gat(x, EDGES, return_attention_weights=True)
    coupling = AdditiveAttentionCoupling(4, heads=2).double()
    with torch.no_grad():
        for part, attention in ((coupling.query, gat.att_dst), (coupling.key, gat.att_src)):
            part.weight.copy_((gat.lin.weight.view(2, 3, 4) * attention[0, :, :, None]).sum(1))
    rows = torch.zeros(4, 4, dtype=torch.float64)
    rows.index_put_((edges[1], edges[0]), weight.mean(1), accumulate=True)
    for graph in (EDGES, Adjacency(EDGES, 4)):
        assert torch.allclose(coupling(x, graph), rows @ x, rtol=0, atol=1e-13)
