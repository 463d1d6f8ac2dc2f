"""What every deep graph layer promises around every convolution."""

import copy
import math
import pickle

import pytest
import torch
from torch import nn

from anharmonic import Adjacency, GradientGating, GraphCON
from anharmonic.nn.graph.convolve import convolve
from anharmonic.nn.graph.couplings import AttentionCoupling, ChannelGroupMean, ResidualCoupling

pyg = pytest.importorskip("torch_geometric.nn", reason="the layers wrap PyG's convolutions")

WIDTH = 8
CONVS = {
    "GCN": lambda: pyg.GCNConv(WIDTH, WIDTH),
    "GAT": lambda: pyg.GATConv(WIDTH, WIDTH, heads=2, concat=False),
    "GATv2": lambda: pyg.GATv2Conv(WIDTH, WIDTH // 2, heads=2),
    "SAGE": lambda: pyg.SAGEConv(WIDTH, WIDTH),
    "SAGE-max": lambda: pyg.SAGEConv(WIDTH, WIDTH, aggr="max"),
    "GIN": lambda: pyg.GINConv(
        nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
    ),
    "GatedGraph": lambda: pyg.GatedGraphConv(WIDTH, 2),
    "ResGated": lambda: pyg.ResGatedGraphConv(WIDTH, WIDTH),
    "Transformer": lambda: pyg.TransformerConv(WIDTH, WIDTH // 2, heads=2),
    "Attention": lambda: AttentionCoupling(WIDTH, 4, heads=2),
    "Residual-v1": lambda: ResidualCoupling(pyg.GCNConv(WIDTH, WIDTH), WIDTH, WIDTH, "v1"),
    "Residual-v2": lambda: ResidualCoupling(pyg.GCNConv(WIDTH, WIDTH), WIDTH, WIDTH, "v2"),
    "GroupMean-GAT": lambda: ChannelGroupMean(pyg.GATConv(WIDTH, WIDTH, heads=4)),
}
LAYERS = {
    "GraphCON": lambda conv, **o: GraphCON(conv, 4, 0.5, **o),
    "G2": lambda conv, **o: GradientGating(conv, 4, **o),
    "G2-mean-out": lambda conv, **o: GradientGating(
        conv, 4, 1.5, copy.deepcopy(conv), "mean", neighbours="out", **o
    ),
    "G2-max": lambda conv, **o: GradientGating(conv, 4, 1.0, aggr="max", **o),
    "G2-single": lambda conv, **o: GradientGating(conv, 4, 2.5, single_rate=True, **o),
}
# Sums over neighbours in another order; float64 with a few layers.
CLOSE = {"rtol": 1e-11, "atol": 1e-12}

over_all = pytest.mark.parametrize(("kind", "conv"), [(k, c) for k in LAYERS for c in CONVS])
over_layers = pytest.mark.parametrize("kind", list(LAYERS))


def make(kind, conv, **options):
    torch.manual_seed(0)
    return LAYERS[kind](CONVS[conv](), **options).double()


def features(nodes=7, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(nodes, WIDTH, dtype=torch.float64, generator=generator)


@pytest.fixture
def edges():
    """Directed and undirected edges, a self-loop, a duplicate; node 6 is isolated."""
    return torch.tensor([[0, 1, 1, 2, 3, 3, 4, 4, 5, 0], [1, 0, 2, 1, 3, 4, 5, 5, 2, 5]])


@over_all
def test_renumbering_the_nodes_renumbers_the_output(kind, conv, edges):
    layer, x = make(kind, conv), features()
    order = torch.randperm(7, generator=torch.Generator().manual_seed(1))
    place = order.argsort()
    assert torch.allclose(layer(x[order], place[edges]), layer(x, edges)[order], **CLOSE)


@over_all
def test_two_graphs_in_one_are_two_graphs(kind, conv, edges):
    layer, a, b = make(kind, conv), features(), features(5, seed=1)
    other = torch.tensor([[0, 1, 2, 4], [1, 2, 0, 3]])
    both = layer(torch.cat([a, b]), torch.cat([edges, other + 7], dim=1))
    assert torch.allclose(both, torch.cat([layer(a, edges), layer(b, other)]), **CLOSE)


@over_all
def test_adjacency_gives_the_same_as_edge_index(kind, conv, edges):
    layer, x = make(kind, conv), features().requires_grad_()
    graph = Adjacency(edges, 7)
    weights = [x, *layer.parameters()]
    outputs, gradients = [], []
    for given in (edges, graph):
        out = layer(x, given)
        outputs.append(out)
        gradients.append(torch.autograd.grad(out.square().sum(), weights, allow_unused=True))
    assert torch.allclose(*outputs, **CLOSE)
    for one, other in zip(*gradients, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            scale = one.abs().max().item()
            assert torch.allclose(one, other, rtol=1e-10, atol=1e-12 * max(1.0, scale))


@over_all
def test_no_edges_no_nodes_and_one_node(kind, conv):
    if conv.startswith(("SAGE-max", "GatedGraph")):
        pytest.skip("PyG's aggregation refuses a graph without nodes")
    layer = make(kind, conv)
    nothing = torch.zeros(2, 0, dtype=torch.int64)
    assert layer(features(3), nothing).shape == (3, WIDTH)
    assert layer(features(1), nothing).shape == (1, WIDTH)
    assert layer(torch.zeros(0, WIDTH, dtype=torch.float64), nothing).shape == (0, WIDTH)


@over_all
def test_gradients_are_finite_where_features_tie(kind, conv, edges):
    layer = make(kind, conv)
    x = torch.ones(7, WIDTH, dtype=torch.float64, requires_grad=True)
    layer(x, edges).square().sum().backward()
    for value in [x, *layer.parameters()]:
        assert value.grad is None or torch.isfinite(value.grad).all()


@pytest.mark.parametrize("conv", ["GCN", "GAT"])
@over_layers
def test_gradcheck(kind, conv, edges):
    layer = make(kind, conv, activation="tanh")
    x = features().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer(x, edges), x, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@over_layers
def test_checkpoint_computes_the_same_and_keeps_less(kind, sparse, edges):
    graph = Adjacency(edges, 7) if sparse else edges
    outputs, gradients, kept = [], [], []
    for checkpoint in (False, True):
        torch.manual_seed(0)
        gat = pyg.GATConv(WIDTH, WIDTH, heads=2, concat=False, dropout=0.4)
        conv = pyg.GCNConv(WIDTH, WIDTH) if sparse else gat
        layer = LAYERS[kind](conv, checkpoint=checkpoint).double()
        layer.num_layers = 25
        x, sizes = features().requires_grad_(), []

        def pack(tensor, sizes=sizes):
            sizes.append(tensor.numel())
            return tensor

        torch.manual_seed(1)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            out = layer(x, graph)
        kept.append(sum(sizes))
        outputs.append(out)
        gradients.append(
            torch.autograd.grad(out.sum(), [x, *layer.parameters()], allow_unused=True)
        )
    assert torch.equal(*outputs)
    for one, other in zip(*gradients, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)
    assert kept[1] < kept[0] / 4


@over_layers
@pytest.mark.parametrize("conv", ["GCN", "SAGE", "GAT"])
def test_sparse_adjacency_is_edge_index(kind, conv):
    layer, x = make(kind, conv), features(4)
    edges = torch.tensor([[0, 1, 2, 3, 3], [1, 0, 1, 2, 0]])
    dense = torch.zeros(4, 4, dtype=torch.float64)
    dense[edges[1], edges[0]] = 1.0
    assert torch.allclose(layer(x, dense.to_sparse_csr()), layer(x, edges), **CLOSE)


@over_layers
def test_one_convolution_per_layer(kind, edges):
    torch.manual_seed(0)
    convs = [pyg.GCNConv(WIDTH, WIDTH) for _ in range(4)]
    layer = LAYERS[kind](convs) if kind != "G2-mean-out" else GradientGating(convs, 4, 1.5)
    assert len(list(layer.convs)) == 4
    layer.double()(features(), edges).sum().backward()
    assert all(conv.lin.weight.grad is not None for conv in convs)


@over_layers
def test_edge_weights_reach_the_convolution(kind, edges):
    layer, x = make(kind, "GCN"), features()
    weight = torch.rand(10, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    plain, weighted = layer(x, edges), layer(x, edges, weight)
    assert not torch.allclose(plain, weighted, atol=1e-3)
    assert torch.allclose(weighted, layer(x, edges, edge_weight=weight), **CLOSE)
    assert torch.allclose(weighted, layer(x, Adjacency(edges, 7, weight)), **CLOSE)


@over_layers
def test_edge_attributes_reach_the_convolution(kind, edges):
    torch.manual_seed(0)
    layer = LAYERS[kind](pyg.GATConv(WIDTH, WIDTH, edge_dim=3)).double()
    attributes = torch.rand(10, 3, dtype=torch.float64)
    with_attributes = layer(features(), edges, edge_attr=attributes)
    assert with_attributes.shape == (7, WIDTH)
    assert not torch.allclose(with_attributes, layer(features(), edges), atol=1e-3)


def test_weights_of_an_adjacency_are_used_or_refused(edges):
    weighted = Adjacency(edges, 7, torch.rand(10, generator=torch.Generator().manual_seed(2)))
    x = features().float()
    for conv in (pyg.SAGEConv(WIDTH, WIDTH), AttentionCoupling(WIDTH)):
        with pytest.raises(ValueError, match=r"without weight|needs a graph without weights"):
            GraphCON(conv, 2)(x, weighted)
    graph_conv = pyg.GraphConv(WIDTH, WIDTH)
    expected = graph_conv(x, edges, weighted.weight)
    assert torch.allclose(convolve(graph_conv, x, weighted), expected)
    with pytest.raises(ValueError, match="takes edge_weight, once"):
        GraphCON(graph_conv, 2)(x, weighted, edge_weight=weighted.weight)


def test_hooks_of_a_convolution_are_run_on_an_adjacency_too(edges):
    conv, calls = pyg.GCNConv(WIDTH, WIDTH), []
    conv.register_forward_hook(lambda *a: calls.append(1))
    GraphCON(conv, 3)(features().float(), Adjacency(edges, 7))
    assert len(calls) == 3


@over_layers
def test_compiles_as_one_graph_on_an_adjacency_used_before(kind, edges):
    layer, x, graph = make(kind, "SAGE"), features(), Adjacency(edges, 7)
    expected = layer(x, graph)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(x, graph), expected)


@over_layers
def test_compiled_layers_see_edges_changed_in_place(kind, edges):
    layer, x, given = make(kind, "SAGE"), features(), edges.clone()
    torch._dynamo.reset()
    compiled = torch.compile(layer, backend="aot_eager")
    before = compiled(x, given)
    assert torch.allclose(compiled(x, given), before)
    given[0] = given[0].roll(1)
    assert torch.allclose(compiled(x, given), layer(x, given))
    assert not torch.allclose(compiled(x, given), before)


@over_layers
def test_inside_pyg_sequential_and_on_a_subgraph(kind, edges):
    from torch_geometric.utils import subgraph

    layer, x = make(kind, "GCN"), features()
    model = pyg.Sequential("x, edge_index", [(layer, "x, edge_index -> x"), nn.ReLU()])
    assert torch.equal(model(x, edges), layer(x, edges).relu())
    nodes = torch.tensor([0, 1, 2, 5])
    part, _ = subgraph(nodes, edges, relabel_nodes=True, num_nodes=7)
    assert layer(x[nodes], part).shape == (4, WIDTH)


@over_layers
def test_states_end_in_the_output(kind, edges):
    layer, x = make(kind, "GCN"), features()
    out, states = layer(x, edges, return_states=True)
    assert torch.equal(out, layer(x, edges))
    assert states.x.shape == (5, 7, WIDTH)
    assert torch.equal(states.x[0], x)
    assert torch.equal(states.x[-1], out)


@over_layers
def test_float32_stays_float32_and_a_thousand_layers_are_finite(kind, edges):
    layer, x = make(kind, "GCN").float(), features().float().requires_grad_()
    layer.num_layers = 1000
    out = layer(x, edges)
    assert out.dtype == torch.float32
    assert torch.isfinite(out).all()
    out.sum().backward()
    assert torch.isfinite(x.grad).all()


@over_layers
def test_copies_and_pickles(kind, edges):
    layer, x = make(kind, "GCN"), features()
    out = layer(x, edges)
    assert torch.equal(copy.deepcopy(layer)(x, edges), out)
    assert torch.equal(pickle.loads(pickle.dumps(layer))(x, edges), out)


class Own(nn.Module):
    """A convolution of one's own, around another."""

    def __init__(self, conv):
        super().__init__()
        self.conv = conv

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


@over_layers
@pytest.mark.parametrize("wrapped", [False, True])
def test_reset_parameters_draws_anew(kind, wrapped):
    conv = CONVS["GCN"]()
    layer = LAYERS[kind](Own(conv) if wrapped else conv).double()
    before = [w.clone() for w in layer.parameters() if w.dim() == 2]
    layer.reset_parameters()
    after = [w for w in layer.parameters() if w.dim() == 2]
    assert all(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


@over_layers
@pytest.mark.parametrize(
    ("x", "graph", "error", "text"),
    [
        (features(3), torch.tensor([[0, 3], [1, 2]]), ValueError, r"nodes in \[0, 3\).*0 to 3"),
        (features(3), torch.tensor([[0, -1], [1, 2]]), ValueError, r"nodes in \[0, 3\).*-1 to"),
        (features(3), torch.rand(2, 2), TypeError, "edge_index must be a torch.int64 tensor"),
        (features(3), torch.zeros(5, 2).long(), ValueError, r"tensor \[2, E\].*transpose it"),
        (features(3), "edges", TypeError, "edge_index must be"),
        (features(3)[0], torch.zeros(2, 0).long(), ValueError, r"x must be a floating-point"),
        (torch.zeros(3, WIDTH).long(), torch.zeros(2, 0).long(), TypeError, "x.float()"),
        (features(3) * math.nan, torch.zeros(2, 0).long(), ValueError, "must not contain NaN"),
        ((features(3), features(3)), torch.zeros(2, 0).long(), TypeError, "bipartite"),
        ({"paper": features(3)}, {}, TypeError, "heterogeneous"),
        (features(3), Adjacency(torch.zeros(2, 0).long(), 4), ValueError, "the 3 nodes of x"),
        (features(3), torch.eye(4).to_sparse_coo(), ValueError, "the 3 nodes of x"),
    ],
)
def test_bad_input(kind, x, graph, error, text):
    with pytest.raises(error, match=text):
        make(kind, "GCN")(x, graph)


@over_layers
def test_a_convolution_that_changes_the_width_is_refused(kind, edges):
    layer = LAYERS[kind](pyg.GATConv(WIDTH, WIDTH, heads=3)).double()
    with pytest.raises(ValueError, match=r"keep the shape.*\[7, 24\].*concat=False"):
        layer(features(), edges)


@over_layers
def test_wrong_feature_width_is_refused(kind, edges):
    with pytest.raises(ValueError, match=r"the 8 features per node that conv takes.*\[7, 5\]"):
        make(kind, "GCN")(features()[:, :5], edges)
