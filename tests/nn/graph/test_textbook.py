"""GCN and GAT against their equations, written with dense matrices."""

import pytest
import torch
from torch.nn import functional

from anharmonic.nn.graph.textbook import GAT, GCN

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3, 4], [1, 0, 2, 1, 1, 2, 3]])


@pytest.fixture(autouse=True)
def _library():
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")


def adjacency(nodes=5):
    """Edges by target, with self-loops."""
    a = torch.eye(nodes, dtype=torch.float64)
    a[EDGES[1], EDGES[0]] = 1
    return a


def draw():
    return torch.rand(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def make(cls, **options):
    torch.manual_seed(0)
    return cls(6, 3, dtype=torch.float64, **options)


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


def test_gcn_is_its_equation():
    model, x = make(GCN, num_layers=3).eval(), draw()
    root = adjacency().sum(1).rsqrt()
    a = root[:, None] * adjacency() * root
    h = x
    for n, conv in enumerate(model.convs):
        h = a @ conv.lin(h) + conv.bias
        h = h.relu() if n < 2 else h
    assert torch.allclose(model(x, EDGES), h, atol=1e-14)
    assert [conv.lin.weight.shape for conv in model.convs] == [(16, 6), (16, 16), (3, 16)]


def test_gat_puts_heads_side_by_side_and_averages_the_last():
    model, x = make(GAT, heads=2, hidden_size=8, output_heads=3).eval(), draw()
    first, last = model.convs
    h = functional.elu(attention(first, x, 2, 4).flatten(1) + first.bias)
    h = attention(last, h, 3, 3).mean(1) + last.bias
    assert torch.allclose(model(x, EDGES), h, atol=1e-14)


def test_attention_has_a_dropout_of_its_own():
    x = draw()
    model = make(GAT, dropout=0.0, attention_dropout=0.5)
    assert not torch.equal(model(x, EDGES), model(x, EDGES))
    model = make(GAT, dropout=0.0, attention_dropout=0.0)
    assert torch.equal(model(x, EDGES), model(x, EDGES))


def test_dropout_acts_on_the_features_too():
    model = make(GCN, num_layers=1, dropout=0.9)
    ones = torch.ones(5, 6, dtype=torch.float64)
    assert not torch.equal(model(ones, EDGES), model.eval()(ones, EDGES))


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
