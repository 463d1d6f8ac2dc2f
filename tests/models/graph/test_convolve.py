"""What a convolution is called with."""

import pytest
import torch

from anharmonic import Adjacency
from anharmonic.models.graph.convolve import convolve

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.fixture
def pyg():
    return pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's").nn


def draw(width=4):
    return torch.rand(3, width, generator=torch.Generator().manual_seed(0))


def test_other_graphs_go_through_as_they_are(pyg):
    conv, x = pyg.GCNConv(4, 4), draw()
    assert torch.equal(convolve(conv, x, EDGES), conv(x, EDGES))


def test_weights_need_a_convolution_that_takes_them(pyg):
    graph = Adjacency(EDGES, 3, torch.tensor([0.5, 1.0, 2.0, 1.0]))
    with pytest.raises(ValueError, match="needs a convolution that takes edge_weight"):
        convolve(pyg.GATConv(4, 4), draw(), graph)
