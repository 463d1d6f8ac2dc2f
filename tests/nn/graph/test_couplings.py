"""Couplings against their formulas, and what they refuse."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from anharmonic import Adjacency
from anharmonic.nn.graph.convolutions import make_conv
from anharmonic.nn.graph.couplings import (
    AttentionCoupling,
    ChannelGroupMean,
    Propagation,
    ResidualCoupling,
)

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3], [1, 0, 2, 1, 1, 1]])  # the last edge twice


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_attention_is_the_mean_of_dense_softmaxes():
    torch.manual_seed(0)
    coupling, x = AttentionCoupling(4, 6, heads=2).double(), draw(4, 4)
    count = torch.eye(4, dtype=torch.float64)
    for j, i in EDGES.T.tolist():
        count[i, j] += 1
    heads = []
    for q, k in zip(coupling.query(x).split(3, 1), coupling.key(x).split(3, 1), strict=True):
        score = q @ k.T / math.sqrt(3) + count.log()  # an edge listed twice has twice the weight
        heads.append(functional.softmax(score, dim=1))
    rows = sum(heads) / 2
    assert torch.allclose(rows.sum(1), torch.ones(4, dtype=torch.float64))
    assert torch.allclose(coupling(x, EDGES), rows @ x, rtol=0, atol=1e-13)
    assert torch.allclose(coupling(x + 0, Adjacency(EDGES, 4)), rows @ x, rtol=0, atol=1e-13)
    constant = torch.full((4, 4), 0.7, dtype=torch.float64)
    assert torch.allclose(coupling(constant, EDGES), constant)


@pytest.mark.parametrize("graph", [EDGES, Adjacency(EDGES, 4)], ids=["edge_index", "Adjacency"])
def test_attention_counts_a_node_once(graph):
    torch.manual_seed(0)
    coupling, x = AttentionCoupling(4, heads=2).double(), draw(4, 4)
    looped = torch.cat([EDGES, torch.tensor([[1, 1, 3], [1, 1, 3]])], dim=1)
    looped = looped if isinstance(graph, torch.Tensor) else Adjacency(looped, 4)
    assert torch.allclose(coupling(x, looped), coupling(x, graph), rtol=0, atol=1e-14)


@pytest.mark.parametrize("graph", [EDGES, Adjacency(EDGES, 4)], ids=["edge_index", "Adjacency"])
def test_attention_compiles_and_has_second_derivatives(graph):
    torch.manual_seed(0)
    coupling, x = AttentionCoupling(2, heads=2).double(), draw(4, 2).requires_grad_()
    expected = coupling(x, graph)
    traced = torch.compile(coupling, backend="aot_eager", fullgraph=True)
    assert torch.allclose(traced(x, graph), expected, rtol=0, atol=1e-14)
    assert torch.autograd.gradgradcheck(lambda x: coupling(x, graph), x)


def test_attention_refuses_features_of_another_graph():
    for nodes in (2, 200_000):
        with pytest.raises(ValueError, match=r"^x must be a tensor \[N=4, F\]"):
            AttentionCoupling(4)(torch.zeros(nodes, 4), Adjacency(EDGES, 4))


def test_attention_stays_finite_for_large_scores():
    coupling, x = AttentionCoupling(4).double(), 1e3 * draw(4, 4)
    out = coupling(x.requires_grad_(), EDGES)
    out.sum().backward()
    assert torch.isfinite(out).all()
    assert torch.isfinite(x.grad).all()


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


class Wide(nn.Module):
    """Six channels from two, without weights of its own."""

    def forward(self, x, edge_index):
        return torch.cat([x, 2 * x, -x], dim=1)


def test_group_mean_averages_neighbouring_channels():
    x = torch.tensor([[1.0, 2.0]])
    coupling = ChannelGroupMean(Wide(), 3)
    low = [math.expm1(-1.0), math.expm1(-2.0)]
    expected = torch.tensor([[(1 + 2 + 2) / 3, (4 + low[0] + low[1]) / 3]])
    assert torch.allclose(coupling(x, EDGES[:, :0]), expected)
    coupling.reset_parameters()  # a convolution that cannot be drawn anew is left as it is


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: AttentionCoupling(4, 5, heads=2), ValueError, "multiple of heads=2; got 5"),
        (lambda: AttentionCoupling(0), ValueError, "channels must be an int >= 1"),
        (lambda: ResidualCoupling(Wide(), 2, 2, "v1"), ValueError, "linear map as attribute lin"),
        (lambda: ResidualCoupling(Wide(), 2, 2, "v4"), ValueError, "kind must be one of"),
        (lambda: ChannelGroupMean(Wide(), 0), ValueError, "group_size must be an int >= 1"),
        (
            lambda: ChannelGroupMean(Wide(), 4)(torch.ones(1, 2), EDGES[:, :0]),
            ValueError,
            "multiple of group_size=4; got 6",
        ),
    ],
)
def test_bad_arguments(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_propagation_is_gcn_without_its_weights():
    pytest.importorskip("torch_geometric", reason="compared with PyG's GCN")
    from torch_geometric.nn import GCNConv

    conv, x = GCNConv(3, 3, bias=False), torch.rand(4, 3)
    conv.lin.weight.data = torch.eye(3)
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    assert torch.allclose(Propagation()(x, edges), conv(x, edges), atol=1e-6)
    assert torch.allclose(Propagation()(x, Adjacency(edges, 4)), conv(x, edges), atol=1e-6)
