"""Plain networks, GCN and GAT against their equations, written with dense matrices."""

import math

import pytest
import torch
from torch.nn import functional

from anharmonic.nn.graph.plain import PlainGNN
from anharmonic.nn.graph.textbook import GAT, GCN
from anharmonic.nn.registry import model_class

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3, 4], [1, 0, 2, 1, 1, 2, 3]])


@pytest.fixture(autouse=True)
def _library():
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")


def adjacency():
    """Edges by target, with self-loops."""
    a = torch.eye(5, dtype=torch.float64)
    a[EDGES[1], EDGES[0]] = 1
    return a


def normalised():
    """GCN's operator: D^-1/2 (A + I) D^-1/2 with in-degrees."""
    d = adjacency().sum(1).rsqrt()
    return d[:, None] * adjacency() * d


def draw():
    return torch.rand(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def make(cls, **options):
    torch.manual_seed(0)
    return cls(6, 3, dtype=torch.float64, **options)


def layers(model, x):
    """The features of every layer of a network of GCNs."""
    h, found = model.encoder(x).relu(), []
    for conv in model.convs:
        h = (normalised() @ conv.lin(h) + conv.bias).relu()
        found.append(h)
    return found


@pytest.mark.parametrize("jump", [None, "cat", "max"])
def test_a_network_of_gcns_is_its_equation_with_jumping_knowledge_too(jump):
    options = {"jump": jump} if jump else {}
    model, x = make(PlainGNN, hidden_size=8, num_layers=3, **options), draw()
    h = layers(model, x)
    h = {None: h[-1], "cat": torch.cat(h, 1), "max": torch.stack(h).amax(0)}[jump]
    assert torch.allclose(model(x, EDGES), model.decoder(h), atol=1e-14)


def test_a_shared_convolution_is_one():
    assert len(make(PlainGNN, hidden_size=8, num_layers=4, shared=True).convs) == 1
    assert len(make(PlainGNN, hidden_size=8, num_layers=4).convs) == 4


def test_pair_norm_centres_and_scales():
    options = {"num_layers": 1, "norm": "pair", "activation": "identity"}
    model, x, seen = make(PlainGNN, hidden_size=8, **options), draw(), []
    model.decoder.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(x, EDGES)
    (h,) = seen
    assert torch.allclose(h.mean(0), torch.zeros(8, dtype=torch.float64), atol=1e-12)
    assert float(h.detach().square().sum(1).mean()) == pytest.approx(1, rel=1e-3)  # PyG adds 1e-5


@pytest.mark.papers
def test_gcn2_is_its_equation():
    model = make(model_class("GCNII"), hidden_size=8, num_layers=4, alpha=0.3, theta=0.7)
    x = draw()
    h = start = model.encoder(x).relu()
    for n, conv in enumerate(model.convs, 1):
        beta = math.log(0.7 / n + 1)
        mixed = 0.7 * normalised() @ h + 0.3 * start
        h = ((1 - beta) * mixed + beta * mixed @ conv.weight1).relu()
    assert torch.allclose(model(x, EDGES), model.decoder(h), atol=1e-14)


def test_gcn_is_its_equation():
    model, x = make(GCN, num_layers=3).eval(), draw()
    h = x
    for n, conv in enumerate(model.convs):
        h = normalised() @ conv.lin(h) + conv.bias
        h = h.relu() if n < 2 else h
    assert torch.allclose(model(x, EDGES), h, atol=1e-14)
    assert [conv.lin.weight.shape for conv in model.convs] == [(16, 6), (16, 16), (3, 16)]


def attention(conv, x, heads, width):
    """GAT's heads, one after the other: softmax of LeakyReLU(a [W x_i, W x_j]) over neighbours."""
    mapped = conv.lin(x).view(5, heads, width)
    out = []
    for k in range(heads):
        at = (mapped[:, k] * conv.att_dst[0, k]).sum(1)[:, None]
        score = functional.leaky_relu(at + (mapped[:, k] * conv.att_src[0, k]).sum(1), 0.2)
        weight = score.masked_fill(adjacency() == 0, -torch.inf).softmax(1)
        out.append(weight @ mapped[:, k])
    return torch.stack(out, 1)


def test_gat_puts_heads_side_by_side_and_averages_the_last():
    model, x = make(GAT, heads=2, hidden_size=8, output_heads=3).eval(), draw()
    first, last = model.convs
    h = functional.elu(attention(first, x, 2, 4).flatten(1) + first.bias)
    h = attention(last, h, 3, 3).mean(1) + last.bias
    assert torch.allclose(model(x, EDGES), h, atol=1e-14)


GCNII = pytest.param("GCNII", {"num_layers": 2, "dropout": 0.5}, marks=pytest.mark.papers)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("PlainGNN", {"num_layers": 2, "dropout": 0.5}),
        GCNII,
        ("GCN", {"num_layers": 1, "dropout": 0.9}),  # of the features
        ("GAT", {"dropout": 0.0, "attention_dropout": 0.5}),
    ],
)
def test_dropout_acts_in_training_only(name, options):
    model, x = make(model_class(name), **options), draw()
    assert not torch.equal(model(x, EDGES), model(x, EDGES))
    model.eval()
    assert torch.equal(model(x, EDGES), model(x, EDGES))


@pytest.mark.parametrize("cls", [GCN, GAT])
def test_the_output_layer_is_the_last(cls):
    model = make(cls, num_layers=3)
    assert model.output_layer is model.convs[2]


@pytest.mark.parametrize(
    ("cls", "options", "text"),
    [
        (GCN, {"dropout": 1.0}, "dropout must be"),
        (GCN, {"num_layers": 0}, "num_layers must be"),
        (GCN, {"activation": "relo"}, "activation must be one of.*'relu'"),
        (GAT, {"hidden_size": 20}, "hidden_size must be a multiple of heads=8; got 20"),
        (GAT, {"hidden_size": 0}, "hidden_size must be"),
        (GAT, {"output_heads": 0}, "output_heads must be"),
        (GAT, {"attention_dropout": 1.5}, "attention_dropout must be"),
    ],
)
def test_bad_arguments(cls, options, text):
    with pytest.raises(ValueError, match=text):
        make(cls, **options)
