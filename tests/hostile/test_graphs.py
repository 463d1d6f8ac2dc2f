"""Bad graphs: one clear error; odd graphs: the numbers of the reference."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from refusals import wrong_values

import anharmonic as ah
from anharmonic.nn.graph.attention import AdditiveAttentionCoupling, AttentionCoupling
from anharmonic.nn.graph.convolutions import NodewiseLinear
from anharmonic.nn.graph.couplings import ChannelGroupMean, ResidualCoupling
from anharmonic.nn.registry import model_class
from anharmonic.ops import gradient_gate

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
OTHER = torch.tensor([[0, 2, 2, 1], [2, 0, 1, 2]])
nan = float("nan")


class Sum(torch.nn.Module):
    """Adds up the features of neighbours."""

    def forward(self, x, edges):
        if isinstance(edges, ah.Adjacency):
            return edges.matmul(x)
        return torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])


def gated(**options):
    return ah.GradientGating(Sum(), num_layers=3, **options)


KINDS = {"GraphCON": lambda: ah.GraphCON(Sum(), num_layers=3, dt=0.3), "GradientGating": gated}


def nodes(*shape):
    return torch.rand(shape or (3, 4), generator=torch.Generator().manual_seed(1))


class SparseTensor:
    """Edges of torch-sparse, whose attributes are methods."""

    def device(self):
        return torch.device("cpu")


ODD = {
    "no edges": (nodes(), torch.zeros(2, 0, dtype=torch.long)),
    "no nodes": (nodes(0, 4), torch.zeros(2, 0, dtype=torch.long)),
    "isolated": (nodes(9, 4), EDGES),
    "self loops": (nodes(), torch.tensor([[0, 1], [0, 1]])),
    "strided edges": (nodes(), torch.stack([EDGES.t(), EDGES.t()], -1)[..., 0].t()),
    "expanded edges": (nodes(), torch.tensor([[0], [1]]).expand(2, 50)),
    "strided x": (nodes(4, 3).t(), EDGES),
    "expanded x": (nodes(1, 4).expand(3, 4), EDGES),
}


@pytest.mark.covering
@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(("x", "edges"), ODD.values(), ids=ODD)
def test_odd_graphs_equal_the_reference(make, x, edges):
    found = []
    for backend in ("auto", "reference"):
        torch.manual_seed(0)
        y = x.clone().requires_grad_()
        with ah.use_backend(backend):
            output = make()(y, edges)
            output.pow(2).sum().backward()
        found.append((output.detach(), y.grad))
    torch.testing.assert_close(*found)
    assert found[0][0].isfinite().all()
    torch.testing.assert_close(make()(x, ah.Adjacency(edges, len(x))), found[0][0])


class Nothing(torch.nn.Module):
    def forward(self, x, edges):
        return None


def called(conv=Sum(), x=nodes(), edge_index=EDGES):  # noqa: B008
    return ah.GraphCON(conv, 2)(x, edge_index)


def grouped(group_size):
    return ChannelGroupMean(Sum(), group_size)(nodes(), EDGES)


ones, CON, RING = torch.ones(4), {"conv": Sum(), "num_layers": 2}, ah.Adjacency(EDGES, 3)
WEIGHTS = [ones[:3], ones.long(), torch.ones(4, requires_grad=True), ones * nan]
GATE, MADE = {"h": nodes(), "graph": RING}, {"edge_index": EDGES, "num_nodes": 3}
ROWS = [torch.ones(4, 2), torch.ones(3, 2).long(), np.ones((3, 2)), nodes().to("meta")]


@wrong_values(
    (ah.GraphCON, CON, {"dt": [0], "frequency": [-1], "damping": ["strong"], "checkpoint": [1]}),
    (ah.GraphCON, CON, {"conv": [None, [Sum()], [], torch.nn.Linear]}),
    (ah.GraphCON, CON, {"activation": ["bogus", torch.nn.ReLU], "norm": ["layer", [Sum()]]}),
    (ah.GraphCON, CON, {"initial_velocity": ["bogus"]}),
    (ah.GraphCON, CON | {"trainable_damping": True}, {"damping": [0.0]}),
    (called, {}, {"conv": [NodewiseLinear(4, 7), Nothing()]}),
    # And see bad_input_is_refused in anharmonic.testing.
    (called, {}, {"edge_index": [torch.tensor([[0], [end]]) for end in (-(2**63), 2**63 - 1)]}),
    (called, {}, {"edge_index": [EDGES.short(), EDGES.bool(), EDGES[0], [[0], [1]], None]}),
    (called, {}, {"edge_index": [EDGES.numpy(), SparseTensor()]}),
    (called, {}, {"x": [nodes(1, 3, 4), np.ones((3, 4)), nodes().to("meta")]}),
    (called, {}, {"x": [torch.ones(3, 4, dtype=torch.complex64), nodes(0, 4)]}),
    (ah.GradientGating, CON, {"gate_conv": [3, [Sum()]], "gate_activation": ["soft"]}),
    (ah.GradientGating, CON, {"aggr": ["median"], "neighbours": ["all"], "single_rate": [1]}),
    (ah.GradientGating, CON, {"p": [0, "2"], "rate_exponent": [-1]}),
    (gradient_gate, GATE, {"p": [0, "2"], "aggr": ["mena"], "neighbours": ["both"]}),
    (gradient_gate, GATE, {"single_rate": [1], "backend": ["fast"], "graph": [EDGES]}),
    (gradient_gate, GATE, {"h": [nodes(3), nodes().int(), nodes().to("meta")]}),
    (ah.Adjacency, MADE, {"edge_index": [EDGES.float(), torch.zeros(5, 2).long()]}),
    (ah.Adjacency, MADE, {"num_nodes": [True, -1, 3.0], "weight": WEIGHTS}),
    (RING.matmul, {}, {"x": ROWS}),
    (RING.mean, {}, {"x": ROWS}),
    (AttentionCoupling, {}, {"channels": [0]}),
    (AttentionCoupling, {"channels": 4, "heads": 2}, {"attention_channels": [5]}),
    (AdditiveAttentionCoupling, {"channels": 4}, {"heads": [-1]}),
    (ResidualCoupling, {"in_channels": 2, "out_channels": 2, "kind": "v1"}, {"conv": [Sum()]}),
    (ResidualCoupling, {"in_channels": 2, "out_channels": 2, "conv": Sum()}, {"kind": ["v4"]}),
    (grouped, {}, {"group_size": [0, 3]}),
)
def test_layers(call, name, refused):
    refused(call, names=name)


def network(kind, **options):
    return model_class(kind)(6, 3, **options)


OSCILLATING, GCNII = {"kind": "GraphCON"}, {"kind": "GCNII"}


@wrong_values(
    (network, OSCILLATING, {"conv": ["GCM", "GATv2"], "group_mean": [True], "norm": ["pair"]}),
    (network, OSCILLATING, {"residual": ["v3"], "pool": ["median"]}),
    (network, OSCILLATING, {"encoder_activation": ["sin"]}),
    (network, OSCILLATING | {"conv": "GAT"}, {"residual": ["v1"], "group_mean": ["yes"]}),
    (network, {"kind": "GradientGating"}, {"p": [0], "norm": ["bach"], "residual": ["v3"]}),
    (network, {"kind": "PlainGNN"}, {"norm": ["graph"], "jump": ["lstm"]}),
    (network, {"kind": "GCN"}, {"dropout": [1.0], "activation": ["relo"]}),
    (network, {"kind": "GAT"}, {"hidden_size": [20, 0], "output_heads": [0]}),
    (network, {"kind": "GAT"}, {"attention_dropout": [1.5]}),
)
def test_networks(call, name, refused):
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    refused(call, names=name)


@pytest.mark.papers
@wrong_values((network, GCNII, {"alpha": [2.0], "level": ["edge"]}))
def test_networks_of_papers(call, name, refused):
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    refused(call, names=name)


NETWORK_CALLS = [
    ((nodes(3, 4), EDGES), "a tensor [N, 6]; got"),
    ((nodes(3, 6), None), "got None; pass it after x"),
    ((nodes(3, 6).double(), EDGES), "torch.float64; "),
    ((nodes(3, 6).half(), EDGES), "torch.float16; "),
    ((nodes(3, 6).long(), EDGES), "torch.int64; conv"),
    ((nodes(3, 6), EDGES, None, 2), "num_graphs must be 1 without membership; got 2"),
    *(
        ((nodes(3, 6), EDGES, membership, 2), "membership must be int64 [N=3], numbers in [0, num")
        for membership in (torch.zeros(2).long(), torch.zeros(3), torch.tensor([0, 1, 2]), [0] * 3)
    ),
]


@pytest.mark.parametrize("kind", ["GraphCON", "GCN"])
@pytest.mark.parametrize("arguments, names", NETWORK_CALLS)
def test_calls_of_networks(kind, arguments, names, refused):
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    refused(lambda: model_class(kind)(6, 3, level="graph")(*arguments), names=names)


def test_an_adjacency_does_not_change():
    edges = EDGES.clone()
    graph = ah.Adjacency(edges, 3)
    edges.fill_(99)
    for name, value in {"num_nodes": 200_000, "edge_index": EDGES + 1, "weight": None}.items():
        with pytest.raises(AttributeError):
            setattr(graph, name, value)
    assert torch.equal(
        graph.matmul(torch.eye(3)), torch.tensor([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    )


@pytest.mark.parametrize("how", ["in place", "numpy", "data", "set_"])
def test_edges_that_change_between_calls_are_seen(how, refused):
    array = EDGES.numpy().copy()
    edges = torch.from_numpy(array)
    model = gated()
    model(nodes(), edges)
    if how == "in place":
        edges[:, :] = OTHER
    elif how == "numpy":
        array[:] = OTHER.numpy()
    elif how == "data":
        edges.data = OTHER.clone()
    else:
        edges.set_(OTHER.clone())
    torch.testing.assert_close(model(nodes(), edges), gated()(nodes(), OTHER))
    edges.fill_(77)
    refused(lambda: model(nodes(), edges))


def test_an_adjacency_of_nodes_that_no_memory_holds(in_child):
    def work():
        ah.Adjacency(EDGES, 10**12).matmul(torch.ones(1, 1).expand(10**12, 1))

    what, text = in_child(work)
    assert what in ("MemoryError", "RuntimeError", "ValueError") and "memory" in text, (what, text)


@pytest.mark.slow
def test_threads_share_one_adjacency():
    torch.manual_seed(0)
    graph, x = ah.Adjacency(torch.randint(0, 500, (2, 4000)), 500), torch.randn(500, 8)
    expected = ah.Adjacency(graph.edge_index, 500).matmul(x)
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda _: torch.equal(graph.matmul(x), expected), range(240))
    assert all(found)
