"""The plain networks against their equations, written with dense matrices."""

import math

import pytest
import torch

from anharmonic.nn.graph.plain import PlainGNN
from anharmonic.nn.registry import model_class

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3, 4], [1, 0, 2, 1, 1, 2, 3]])


@pytest.fixture(autouse=True)
def _library():
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")


def normalised(edges=EDGES, nodes=5):
    """GCN's operator: D^-1/2 (A + I) D^-1/2 with in-degrees."""
    a = torch.zeros(nodes, nodes, dtype=torch.float64)
    a[edges[1], edges[0]] = 1
    a += torch.eye(nodes, dtype=torch.float64)
    d = a.sum(1).rsqrt()
    return d[:, None] * a * d[None]


def draw():
    return torch.rand(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def make(cls, **options):
    torch.manual_seed(0)
    return cls(6, 3, hidden_size=8, dtype=torch.float64, **options)


def test_plain_gcn_is_its_equation():
    model, x = make(PlainGNN, num_layers=3), draw()
    h = model.encoder(x).relu()
    for conv in model.convs:
        h = (normalised() @ conv.lin(h) + conv.bias).relu()
    assert torch.allclose(model(x, EDGES), model.decoder(h), atol=1e-14)


def test_a_shared_convolution_is_one():
    assert len(make(PlainGNN, num_layers=4, shared=True).convs) == 1
    assert len(make(PlainGNN, num_layers=4).convs) == 4


def test_pair_norm_centres_and_scales():
    model, x = make(PlainGNN, num_layers=1, norm="pair", activation="identity"), draw()
    seen = []
    model.decoder.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(x, EDGES)
    (h,) = seen
    assert torch.allclose(h.mean(0), torch.zeros(8, dtype=torch.float64), atol=1e-12)
    assert float(h.detach().square().sum(1).mean()) == pytest.approx(1, rel=1e-3)  # PyG adds 1e-5


@pytest.mark.parametrize("jump", ["cat", "max"])
def test_jumping_knowledge_sees_every_layer(jump):
    model, x = make(PlainGNN, num_layers=3, jump=jump), draw()
    h, layers = model.encoder(x).relu(), []
    for conv in model.convs:
        h = (normalised() @ conv.lin(h) + conv.bias).relu()
        layers.append(h)
    h = torch.cat(layers, 1) if jump == "cat" else torch.stack(layers).amax(0)
    assert torch.allclose(model(x, EDGES), model.decoder(h), atol=1e-14)


@pytest.mark.papers
def test_gcn2_is_its_equation():
    model, x = make(model_class("GCNII"), num_layers=4, alpha=0.3, theta=0.7), draw()
    h = start = model.encoder(x).relu()
    for n, conv in enumerate(model.convs, 1):
        beta = math.log(0.7 / n + 1)
        mixed = 0.7 * normalised() @ h + 0.3 * start
        h = ((1 - beta) * mixed + beta * mixed @ conv.weight1).relu()
    assert torch.allclose(model(x, EDGES), model.decoder(h), atol=1e-14)


@pytest.mark.parametrize("name", ["PlainGNN", pytest.param("GCNII", marks=pytest.mark.papers)])
def test_dropout_acts_in_training_only(name):
    model, x = make(model_class(name), num_layers=2, dropout=0.5), draw()
    assert not torch.equal(model(x, EDGES), model(x, EDGES))
    model.eval()
    assert torch.equal(model(x, EDGES), model(x, EDGES))
