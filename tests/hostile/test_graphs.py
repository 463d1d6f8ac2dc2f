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


BAD = {  # and see bad_input_is_refused in anharmonic.testing
    "smallest int": (nodes(), torch.tensor([[0, -(2**63)], [1, 0]])),
    "largest int": (nodes(), torch.tensor([[0, 2**63 - 1], [1, 0]])),
    "int16": (nodes(), EDGES.short()),
    "bool": (nodes(), EDGES.bool()),
    "one axis": (nodes(), EDGES[0]),
    "list": (nodes(), [[0], [1]]),
    "numpy": (nodes(), EDGES.numpy()),
    "None": (nodes(), None),
    "x three axes": (nodes(1, 3, 4), EDGES),
    "x numpy": (np.ones((3, 4)), EDGES),
    "x complex": (torch.ones(3, 4, dtype=torch.complex64), EDGES),
    "x empty": (nodes(0, 4), EDGES),
    "x meta": (nodes().to("meta"), EDGES),
}


@pytest.mark.covering
@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(("x", "edges"), BAD.values(), ids=BAD)
def test_bad_graphs(make, x, edges, refused):
    refused(lambda: make()(x, edges))


class SparseTensor:
    """Edges of torch-sparse, whose attributes are methods."""

    def device(self):
        return torch.device("cpu")


@pytest.mark.parametrize("edges", [EDGES.numpy(), SparseTensor()], ids=["numpy", "SparseTensor"])
def test_edges_of_another_library_are_named(edges):
    kind = type(edges).__name__
    with pytest.raises(TypeError, match=rf"got {kind}; make it with .*to_torch_sparse_csr_tensor"):
        gated()(nodes(), edges)


ODD = {
    "no edges": (nodes(), torch.zeros(2, 0, dtype=torch.long)),
    "no nodes": (nodes(0, 4), torch.zeros(2, 0, dtype=torch.long)),
    "isolated": (nodes(9, 4), EDGES),
    "twice": (nodes(), torch.cat([EDGES, EDGES], 1)),
    "self loops": (nodes(), torch.tensor([[0, 1], [0, 1]])),
    "directed": (nodes(), torch.tensor([[0, 1], [1, 2]])),
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


def gate(**changes):
    return gradient_gate(**{"h": nodes(), "graph": ah.Adjacency(EDGES, 3), **changes})


def graphcon(**options):
    return ah.GraphCON(**{"conv": Sum(), "num_layers": 2, **options})


def adjacency(**changes):
    return ah.Adjacency(**{"edge_index": EDGES, "num_nodes": 3, **changes})


ones = torch.ones(4)
VALUES = {
    graphcon: {
        **{"conv": [None, [Sum()], [], torch.nn.Linear], "checkpoint": [1], "damping": ["strong"]},
        **{"dt": [0], "frequency": [-1], "initial_velocity": ["bogus"]},
        **{"activation": ["bogus", torch.nn.ReLU], "norm": ["layer", [Sum()]]},
    },
    gated: {
        **{"gate_conv": [3, [Sum()]], "gate_activation": ["soft"], "p": [0, "2"]},
        **{"aggr": ["median"], "neighbours": ["all"], "single_rate": [1], "rate_exponent": [-1]},
    },
    gate: {
        **{"p": [0, "2"], "aggr": ["mena"], "neighbours": ["both"], "single_rate": [1]},
        **{"backend": ["fast"], "graph": [EDGES]},
        "h": [nodes(3), nodes().int(), nodes().to("meta")],
    },
    adjacency: {
        "edge_index": [EDGES.float(), torch.zeros(5, 2).long()],
        "num_nodes": [True, -1, 3.0],
        "weight": [ones[:3], ones.long(), ones.clone().requires_grad_(), ones * nan, 1.0],
    },
}


@wrong_values(VALUES)
def test_values(make, name, value, refused):
    refused(lambda: make(**{name: value}), names=name)


class Nothing(torch.nn.Module):
    def forward(self, x, edges):
        return None


CALLS = {
    "damping learned from 0": lambda: ah.GraphCON(Sum(), 2, damping=0.0, trainable_damping=True),
    "attention of other heads": lambda: AttentionCoupling(4, 5, heads=2),
    "attention of 0 channels": lambda: AttentionCoupling(0),
    "additive attention of -1 heads": lambda: AdditiveAttentionCoupling(4, heads=-1),
    "residual of what is not linear": lambda: ResidualCoupling(Sum(), 2, 2, "v1"),
    "residual": lambda: ResidualCoupling(Sum(), 2, 2, "v4"),
    "groups of 0": lambda: ChannelGroupMean(Sum(), 0),
    "groups of another size": lambda: ChannelGroupMean(Sum(), 3)(nodes(), EDGES),
    "matmul of other rows": lambda: ah.Adjacency(EDGES, 3).matmul(torch.ones(4, 2)),
    "matmul of numpy": lambda: ah.Adjacency(EDGES, 3).matmul(np.ones((3, 2))),
    "matmul on another device": lambda: ah.Adjacency(EDGES, 3).matmul(nodes().to("meta")),
    "mean of int": lambda: ah.Adjacency(EDGES, 3).mean(nodes().long()),
    "mean of other rows": lambda: ah.Adjacency(EDGES, 3).mean(torch.ones(2, 2)),
    "conv changes the width": lambda: ah.GraphCON(NodewiseLinear(4, 7), 2)(nodes(), EDGES),
    "conv returns None": lambda: ah.GraphCON(Nothing(), 2)(nodes(), EDGES),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_options(call, refused):
    refused(call)


NETWORKS = [
    ("GraphCON", {"conv": "GCM"}, "did you mean 'GCN'"),
    ("GraphCON", {"conv": "GATv2"}, "any other convolution"),
    ("GraphCON", {"residual": "v3"}, "residual"),
    ("GraphCON", {"residual": "v1", "conv": "GAT"}, "conv must be 'GCN'"),
    ("GraphCON", {"group_mean": True}, "conv must be 'GAT'"),
    ("GraphCON", {"group_mean": "yes", "conv": "GAT"}, "group_mean"),
    ("GradientGating", {"p": 0}, "p must be"),
    ("PlainGNN", {"norm": "graph"}, "'layer', 'batch', 'pair'"),
    ("GraphCON", {"norm": "pair"}, "norm must be one of 'layer', 'batch'"),
    ("GradientGating", {"norm": "bach"}, "did you mean 'batch'"),
    ("GradientGating", {"residual": "v3"}, "residual"),
    ("PlainGNN", {"jump": "lstm"}, "jump"),
    pytest.param("GCNII", {"alpha": 2.0}, "alpha", marks=pytest.mark.papers),
    pytest.param("GCNII", {"level": "edge"}, "level", marks=pytest.mark.papers),
    ("GraphCON", {"pool": "median"}, "pool"),
    ("GraphCON", {"encoder_activation": "sin"}, "encoder_activation"),
    ("GCN", {"dropout": 1.0}, "dropout must be"),
    ("GCN", {"activation": "relo"}, "'relu'"),
    ("GAT", {"hidden_size": 20}, "hidden_size must be a multiple of heads=8; got 20"),
    ("GAT", {"hidden_size": 0}, "hidden_size must be"),
    ("GAT", {"output_heads": 0}, "output_heads must be"),
    ("GAT", {"attention_dropout": 1.5}, "attention_dropout must be"),
]


@pytest.mark.parametrize("kind, options, names", NETWORKS)
def test_networks(kind, options, names, refused):
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    refused(lambda: model_class(kind)(6, 3, **options), names=names)


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
