"""Calls of convolutions: which are computed on sorted rows, and that they give the same numbers."""

import copy

import pytest
import torch

import anharmonic as ah
from anharmonic import Adjacency
from anharmonic.nn.graph import convolve as convolve_file
from anharmonic.nn.graph.convolve import convolve, convolve_with_start, sparse_form
from anharmonic.ops import graph as graph_ops
from anharmonic.ops import library

pyg = pytest.importorskip("torch_geometric.nn", reason="the convolutions are PyG's")
set_masks = pytest.importorskip("torch_geometric.explain.algorithm.utils").set_masks

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
GRAPH = Adjacency(EDGES, 3)
FAST = {
    "GCNConv": lambda: pyg.GCNConv(4, 4),
    "SAGEConv": lambda: pyg.SAGEConv(4, 4),
    "GCN2Conv": lambda: pyg.GCN2Conv(4, 0.2),
}


def draw():
    return torch.rand(3, 4, generator=torch.Generator().manual_seed(0))


CHANGES = {
    "own message": lambda conv: setattr(conv, "message", lambda x_j: -x_j),
    "own forward": lambda conv: setattr(conv, "forward", lambda x, edge_index: x),
    "mask": lambda conv: set_masks(conv, torch.ones(4), EDGES),
    "aggregation": lambda conv: conv.aggr_module.register_forward_hook(lambda m, i, out: 2 * out),
    "own aggregation": lambda conv: setattr(conv, "aggr_module", pyg.MaxAggregation()),
}


@pytest.mark.parametrize("new", FAST.values(), ids=FAST)
def test_this_version_of_pyg_has_what_is_looked_at(new):
    """Fails where a new PyG names or keeps things differently, so that ``sparse_form`` is None."""
    for conv in (new(), new().eval(), new().double(), copy.deepcopy(new())):
        assert sparse_form(conv, GRAPH) is not None
    assert set(convolve_file._METHODS) <= set(dir(pyg.MessagePassing))
    assert {"flow", "explain", "aggr_module"} <= set(dir(conv))
    ways = [way for way in dir(conv) if way.startswith("register_") and way.endswith("_hook")]
    assert len(ways) >= 14  # PyTorch's of modules, and PyG's of messages
    for way in ways:
        if "state_dict" in way or "module" in way.split("_"):
            continue  # these act on files of weights, or on all modules
        hooked = new()
        getattr(hooked, way)(lambda *arguments: None)
        assert sparse_form(hooked, GRAPH) is None, way
    for name, change in CHANGES.items():
        changed = new()
        change(changed)
        assert sparse_form(changed, GRAPH) is None, name


@pytest.mark.skipif(library.library() is None, reason=f"needs the C library: {library.why_not()}")
@pytest.mark.parametrize("name", ["GCN", "SAGE"])
@pytest.mark.parametrize("model", ["GraphCON", "GradientGating", "PlainGNN"])
def test_networks_sum_in_the_c_library(monkeypatch, name, model):
    calls, invoke = [], graph_ops.invoke
    monkeypatch.setattr(graph_ops, "invoke", lambda *a: calls.append(a[0]) or invoke(*a))
    network = ah.nn.model_class(model)(4, 2, conv=name, hidden_size=4, num_layers=3)
    with torch.no_grad():
        network(draw(), GRAPH)
    assert calls == ["an_neighbour_sum"] * 3


@pytest.fixture
def messages(monkeypatch):
    """Counts the calls in which a kind of convolution passes messages edge by edge."""

    def count(kind):
        calls, propagate = [], kind.propagate
        monkeypatch.setattr(
            kind, "propagate", lambda *a, **k: calls.append(1) or propagate(*a, **k)
        )
        return calls

    return count


@pytest.mark.parametrize(
    ("name", "options", "sparse"),
    [
        ("GCNConv", {}, True),
        ("GCNConv", {"bias": False}, True),
        ("GCNConv", {"normalize": False}, False),
        ("GCNConv", {"improved": True}, False),
        ("GCNConv", {"aggr": "sum"}, True),
        ("GCNConv", {"aggr": "max"}, False),
        ("GCNConv", {"aggr": "mean"}, False),
        ("SAGEConv", {}, True),
        ("SAGEConv", {"root_weight": False}, True),
        ("SAGEConv", {"aggr": "max"}, False),
        ("GATConv", {}, False),
    ],
)
def test_the_sparse_path_is_taken_where_it_fits(messages, name, options, sparse):
    torch.manual_seed(0)
    conv, x = getattr(pyg, name)(4, 4, **options), draw()
    expected, calls = conv(x, EDGES), messages(type(conv))
    assert torch.allclose(convolve(conv, x, GRAPH), expected, atol=1e-6)
    assert len(calls) == (0 if sparse else 1)


LOOPED = torch.tensor([[0, 1, 1, 2, 3, 3, 3], [1, 0, 2, 1, 1, 1, 3]])  # one edge twice, a loop


@pytest.mark.covering(2)
@pytest.mark.parametrize(
    ("options", "sparse"),
    [
        ({}, True),
        ({"theta": 0.5, "layer": 3}, True),
        ({"shared_weights": False}, False),
        ({"normalize": False}, False),
        ({"add_self_loops": False}, False),
        ({"cached": True}, False),
        ({"flow": "target_to_source"}, False),
    ],
)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_gcnii_has_the_gradients_of_the_messages(messages, options, sparse, weighted):
    torch.manual_seed(0)
    conv = pyg.GCN2Conv(4, 0.2, **options).double()
    x, start = torch.randn(2, 5, 4, dtype=torch.float64).requires_grad_()
    weight = torch.rand(7, dtype=torch.float64) if weighted else None
    graph, calls, found = Adjacency(LOOPED, 5, weight), messages(pyg.GCN2Conv), []
    for y in (conv(x, start, LOOPED, weight), convolve_with_start(conv, x, start, graph)):
        found.append((y, *torch.autograd.grad(y.square().sum(), [x, start, conv.weight1])))
    assert len(calls) == (1 if sparse else 2)
    torch.testing.assert_close(found[1], found[0], rtol=1e-11, atol=1e-13)
    assert torch.equal(convolve_with_start(conv, x, start, LOOPED), conv(x, start, LOOPED))
