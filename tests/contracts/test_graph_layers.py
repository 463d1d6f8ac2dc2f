"""What every deep graph layer promises around every convolution."""

import copy
import functools

import pytest
import torch
from torch import nn

from anharmonic import Adjacency, GradientGating, GraphCON
from anharmonic.nn.graph.attention import AdditiveAttentionCoupling, AttentionCoupling
from anharmonic.nn.graph.convolutions import NodewiseLinear
from anharmonic.nn.graph.convolve import convolve
from anharmonic.nn.graph.couplings import ChannelGroupMean, ResidualCoupling
from anharmonic.testing import graph_layer_checks

pyg = pytest.importorskip("torch_geometric.nn", reason="the layers wrap PyG's convolutions")

WIDTH = 8


class Own(nn.Module):
    """A convolution of one's own, around another."""

    def __init__(self, conv):
        super().__init__()
        self.conv = conv

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


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
    "AdditiveAttention": lambda: AdditiveAttentionCoupling(WIDTH, heads=2),
    "Residual-v1": lambda: ResidualCoupling(pyg.GCNConv(WIDTH, WIDTH), WIDTH, WIDTH, "v1"),
    "Residual-v2": lambda: ResidualCoupling(pyg.GCNConv(WIDTH, WIDTH), WIDTH, WIDTH, "v2"),
    "GroupMean-GAT": lambda: ChannelGroupMean(pyg.GATConv(WIDTH, WIDTH, heads=4)),
    "Own": lambda: Own(pyg.GCNConv(WIDTH, WIDTH)),
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


def make(kind, conv, **options):
    torch.manual_seed(0)
    return LAYERS[kind](CONVS[conv](), **options).double()


def shallow(kind, conv):
    """Two layers, which compile in half the time of four."""
    layer = make(kind, conv)
    layer.num_layers = 2
    return layer


# PyG's aggregation refuses a graph without nodes.
LEFT_OUT = {("no_nodes", conv) for conv in ("SAGE-max", "GatedGraph")}
CHECKS = [
    pytest.param(kind, conv, name, check, id=f"{kind}-{conv}-{name}")
    for kind in LAYERS
    for conv in CONVS
    for name, check in graph_layer_checks(functools.partial(make, kind, conv), WIDTH)
    if (name, conv) not in LEFT_OUT
]
over_layers = pytest.mark.parametrize("kind", list(LAYERS))
# One of each class, for what its options hardly touch.
one_of_each = pytest.mark.fast("GraphCON", "G2-mean-out")


@pytest.mark.covering("kind name", "conv name")
@pytest.mark.parametrize("kind, conv, name, check", CHECKS)
def test_contract(kind, conv, name, check):
    check()


def features(nodes=7, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(nodes, WIDTH, dtype=torch.float64, generator=generator)


@pytest.fixture
def edges():
    """Directed and undirected edges, a self-loop, a duplicate; node 6 is isolated."""
    return torch.tensor([[0, 1, 1, 2, 3, 3, 4, 4, 5, 0], [1, 0, 2, 1, 3, 4, 5, 5, 2, 5]])


@pytest.mark.covering
@pytest.mark.parametrize("sparse", [False, True])
@over_layers
def test_checkpoint_computes_the_same_and_keeps_less(kind, sparse, edges):
    graph = Adjacency(edges, 7) if sparse else edges
    found, kept = [], []
    for checkpoint in (False, True):
        torch.manual_seed(0)
        gat = pyg.GATConv(WIDTH, WIDTH, heads=2, concat=False, dropout=0.4)
        conv = pyg.GCNConv(WIDTH, WIDTH) if sparse else gat
        layer = LAYERS[kind](conv, checkpoint=checkpoint, norm=nn.LayerNorm(WIDTH)).double()
        layer.num_layers = 25
        x, sizes = features().requires_grad_(), []

        def pack(tensor, sizes=sizes):
            sizes.append(tensor.numel())
            return tensor

        torch.manual_seed(1)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            out = layer(x, graph)
        kept.append(sum(sizes))
        leaves = [x, *layer.parameters()]
        found.append([out, *torch.autograd.grad(out.sum(), leaves, materialize_grads=True)])
    assert all(map(torch.equal, *found))
    assert kept[1] < kept[0] / 4


@pytest.mark.covering
@over_layers
@pytest.mark.parametrize("conv", ["GCN", "SAGE", "GAT"])
def test_sparse_adjacency_is_edge_index(kind, conv):
    layer, x = make(kind, conv), features(4)
    edges = torch.tensor([[0, 1, 2, 3, 3], [1, 0, 1, 2, 0]])
    dense = torch.zeros(4, 4, dtype=torch.float64)
    dense[edges[1], edges[0]] = 1.0
    assert torch.allclose(layer(x, dense.to_sparse_csr()), layer(x, edges), **CLOSE)


@one_of_each
@over_layers
def test_edge_weights_and_attributes_reach_the_convolution(kind, edges):
    layer, x = make(kind, "GCN"), features()
    weight = torch.rand(10, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    weighted = layer(x, edges, weight)
    assert not torch.allclose(layer(x, edges), weighted, atol=1e-3)
    assert torch.allclose(weighted, layer(x, edges, edge_weight=weight), **CLOSE)
    assert torch.allclose(weighted, layer(x, Adjacency(edges, 7, weight)), **CLOSE)
    gat = LAYERS[kind](pyg.GATConv(WIDTH, WIDTH, edge_dim=3)).double()
    attributes = torch.rand(10, 3, dtype=torch.float64)
    with_attributes = gat(x, edges, edge_attr=attributes)
    assert not torch.allclose(with_attributes, gat(x, edges), atol=1e-3)


@one_of_each
@over_layers
def test_an_activation_in_place_leaves_the_features_alone(kind, edges):
    same, x, in_place = Own(lambda x, edge_index: x), features(), nn.ReLU(inplace=True)
    given = {"activation": in_place}
    given |= {} if kind == "GraphCON" else {"gate_activation": in_place}
    assert torch.equal(LAYERS[kind](same, **given)(x, edges), LAYERS[kind](same)(x, edges))
    assert torch.equal(x, features())


def test_weights_of_an_adjacency_are_used(edges):
    weight, conv = torch.linspace(0, 1, 10), pyg.GraphConv(WIDTH, WIDTH)
    found = convolve(conv, features().float(), Adjacency(edges, 7, weight))
    assert torch.allclose(found, conv(features().float(), edges, weight))


@pytest.mark.fast("G2-max")
@pytest.mark.skipif(
    torch.__version__ < (2, 13), reason="PyTorch 2.9's compiler does not trace vars(module).items()"
)
@pytest.mark.parametrize("kind", ["GraphCON", "G2-max"])
def test_compiles_as_one_graph_on_an_adjacency_used_before(kind, edges):
    layer, x, graph = shallow(kind, "SAGE"), features(), Adjacency(edges, 7)
    expected = layer(x, graph)
    assert torch.allclose(compiled(layer)(x, graph), expected)


def compiled(layer, x=None, edges=None, **options):
    torch._dynamo.reset()
    return torch.compile(layer, fullgraph=True, backend="aot_eager", **options)


def exported(layer, x, edges, **options):
    sizes = ({0: torch.export.Dim("nodes")}, {1: torch.export.Dim("edges")})
    return torch.export.export(layer, (x, edges), dynamic_shapes=sizes, **options).module()


RECORD = {
    "compiled": functools.partial(compiled, dynamic=False),
    "compiled for any size": functools.partial(compiled, dynamic=True),
    "exported": functools.partial(exported, strict=False),
    "exported strictly": functools.partial(exported, strict=True),
}


@pytest.mark.fast("G2-mean-out-SAGE-compiled", "G2-mean-out-GCN-exported")
@pytest.mark.parametrize(
    "conv, record",
    [*(("GCN", name) for name in RECORD), *(("SAGE", name) for name in [*RECORD][:2])],
)
@over_layers
def test_a_recorded_layer_takes_raw_edges(kind, conv, record, edges):
    layer, x, given = shallow(kind, conv), features().requires_grad_(), edges.clone()
    run = RECORD[record](layer, x, given)

    def check(x, edges):
        pairs = []
        for y in (run(x, edges), layer(x, edges)):
            pairs.append([y, *torch.autograd.grad(y.square().sum(), x)])
        assert all(torch.allclose(*pair, **CLOSE) for pair in zip(*pairs, strict=True))
        return pairs[0][0]

    before = check(x, given)
    given[0] = given[0].roll(1)
    assert not torch.allclose(check(x, given), before)
    if record != "compiled":
        graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
        check(features(5, seed=1).requires_grad_(), edges[:, :4].clone())
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == graphs


def test_compiled_layers_refuse_edges_out_of_range(edges):
    """The C library trusts sorted edges: a compiled program checks them when it runs."""
    layer, x = GradientGating(NodewiseLinear(WIDTH, WIDTH), 2).double(), features()
    for run in (compiled(layer), torch.export.export(layer, (x, edges)).module()):
        run(x, edges)
        for wrong in (edges + 2, edges - 1):
            with pytest.raises(RuntimeError, match="edge_index must hold nodes"):
                run(x, wrong)


@one_of_each
@over_layers
def test_maps_over_weights(kind, edges):
    """``vmap`` over the parameters of several layers is one layer after the other."""
    layers, x = [make(kind, "GCN") for _ in range(3)], features()
    for layer in layers[1:]:
        layer.reset_parameters()
    weights, _ = torch.func.stack_module_state(layers)
    found = torch.func.vmap(lambda w: torch.func.functional_call(layers[0], w, (x, edges)))(weights)
    assert torch.allclose(found, torch.stack([layer(x, edges) for layer in layers]), **CLOSE)


def test_heterogeneous_by_pyg():
    """``to_hetero`` has a convolution for each kind of edge, and a norm for each kind of node."""
    edges = {
        ("a", "to", "b"): torch.tensor([[0, 1, 6, 2], [0, 4, 2, 2]]),
        ("b", "back", "a"): torch.tensor([[0, 4, 2], [0, 1, 6]]),
        ("a", "own", "a"): torch.tensor([[0, 1, 2], [1, 2, 0]]),
    }
    torch.manual_seed(0)
    layer = GraphCON(pyg.SAGEConv(WIDTH, WIDTH), 4, 0.5, norm=nn.LayerNorm(WIDTH)).double()
    model = pyg.to_hetero(layer, (["a", "b"], list(edges)))
    x = y = {"a": features(7), "b": features(5, seed=1)}
    found = model(x, edges)
    for _ in range(4):
        total = {kind: torch.zeros_like(state) for kind, state in x.items()}
        for names, graph in edges.items():
            source, _, target = names
            total[target] += model.convs[0]["__".join(names)]((x[source], x[target]), graph)
        force = {kind: model.norms[0][kind](total[kind]).relu() for kind in x}
        y = {kind: y[kind] + 0.5 * (force[kind] - x[kind] - y[kind]) for kind in x}
        x = {kind: x[kind] + 0.5 * y[kind] for kind in x}
    for kind, expected in x.items():
        assert torch.allclose(found[kind], expected, **CLOSE)
    for other in ("edge_weight", "return_states"):  # it would ignore them
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{other}'"):
            model(x, edges, **{other: True})


# A trace keeps shapes as constants and says so.
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@one_of_each
@over_layers
def test_traces_on_an_adjacency_and_refuses_raw_edges_where_they_are_sorted(kind, edges):
    layer, x, graph = make(kind, "GCN"), features(), Adjacency(edges, 7)
    on_graph = nn.Module()
    on_graph.layer = layer
    on_graph.forward = lambda x: layer(x, graph)
    traced = torch.jit.trace(on_graph, (x,), check_trace=False)
    assert torch.allclose(traced(x + 1), layer(x + 1, graph), **CLOSE)
    if kind == "GraphCON":
        traced = torch.jit.trace(layer, (x, edges), check_trace=False)
        assert torch.allclose(traced(x + 1, edges), layer(x + 1, edges), **CLOSE)
    else:
        with pytest.raises(TypeError, match=r"under torch\.jit\.trace; got .*torch\.export"):
            torch.jit.trace(layer, (x, edges), check_trace=False)


@pytest.mark.fast("GraphCON", "G2-max")
@over_layers
def test_a_thousand_layers_are_finite(kind, edges):
    layer, x = make(kind, "GCN").float(), features().float().requires_grad_()
    layer.num_layers = 1000
    out = layer(x, edges)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert out.isfinite().all() and gradient.isfinite().all()


@over_layers
def test_another_width_is_refused(kind, edges):
    wide, x = pyg.GATConv(WIDTH, WIDTH, heads=3), features().float()
    with pytest.raises(ValueError, match=r"as many features as it takes, 8; got 24 .*concat=False"):
        LAYERS[kind](wide)
    with pytest.raises(ValueError, match=r"(?s)keep the shape.*\[7, 24\].*concat=False"):
        LAYERS[kind](Own(wide))(x, edges)
    with pytest.raises(ValueError, match=r"^gate_conv must keep the shape of its input"):
        GradientGating(pyg.GCNConv(-1, WIDTH), 2, gate_conv=Own(wide))(x, edges)
    with pytest.raises(ValueError, match=r"the 8 features per node that conv takes.*\[7, 5\]"):
        make(kind, "GCN")(features()[:, :5], edges)


def test_what_a_convolution_does_not_take_is_said(edges):
    x, weight, attributes = features().float(), torch.rand(10), torch.rand(10, 3)
    needy, plain = pyg.TransformerConv(WIDTH, WIDTH, edge_dim=3), pyg.GCNConv(WIDTH, WIDTH)
    gated, sage = GradientGating(plain, 2, gate_conv=needy), pyg.SAGEConv(WIDTH, WIDTH)
    both = GradientGating(needy, 2, gate_conv=copy.deepcopy(needy))
    assert both(x, edges, edge_attr=attributes).shape == x.shape
    weighted = {"edge_index": Adjacency(edges, 7, weight)}
    for layer, words, error, text in (
        (GraphCON(plain, 2), {"edge_weight": weight[1:]}, ValueError, "for each of the E=10 edges"),
        (both, {"edge_attr": attributes[1:]}, ValueError, "edge_attr must .* of the E=10 edges"),
        (GraphCON(sage, 2), weighted, ValueError, r"without weight|needs a graph without weights"),
        (GraphCON(plain, 2), {"edge_weight": weight, **weighted}, ValueError, "edge_weight, once"),
        (make("G2", "GCN"), {}, TypeError, r"x must have the dtype of the weights, torch.float64"),
        (GraphCON(needy, 2), {}, TypeError, "conv needs edge_attr; got none for TransformerConv"),
        (gated, {}, TypeError, "gate_conv needs edge_attr"),
        (gated, {"edge_attr": attributes}, TypeError, "conv must take edge_attr.*GCNConv.*or wrap"),
        (both, {"edge_attr": attributes.double()}, TypeError, "edge_attr must have the dtype of"),
    ):
        with pytest.raises(error, match=text):
            layer(**{"x": x, "edge_index": edges, **words})
    with pytest.raises(TypeError, match="conv must take edge weights; got SAGEConv"):
        GraphCON(sage, 2)(x, edges, weight)


def test_what_to_hetero_cannot_take_is_said(edges):
    both, x = {("a", "to", "b"): edges, ("b", "to", "a"): edges}, features().float()
    for layer, words in (
        (GradientGating(pyg.SAGEConv(WIDTH, WIDTH), 2), "the gate compares the features of nodes"),
        (GraphCON(pyg.SAGEConv(WIDTH, WIDTH), 2, trainable_damping=True), "learned scalars"),
        (GraphCON(pyg.SAGEConv(WIDTH, WIDTH), 2, dropout=0.5), "dropout must be 0 for torch_geo"),
        (Own(make("GraphCON", "SAGE")), "to_hetero on a GraphCON that no other module"),
    ):
        with pytest.raises(TypeError, match=words):
            pyg.to_hetero(layer, (["a", "b"], list(both)))({"a": x, "b": x}, both)
