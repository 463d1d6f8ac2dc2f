"""What a convolution is called with."""

import pytest
import torch

from anharmonic import Adjacency
from anharmonic.nn.graph.convolve import convolve


def test_other_graphs_go_through_as_they_are(pyg, graph, x):
    conv = pyg.GCNConv(8, 8).double()
    assert torch.equal(convolve(conv, x, graph), conv(x, graph))


def test_weights_need_a_convolution_that_takes_them(pyg, graph, x):
    weighted = Adjacency(graph, 7, torch.linspace(0.5, 2.0, 10))
    with pytest.raises(ValueError, match="needs a convolution that takes edge_weight"):
        convolve(pyg.GATConv(8, 8).double(), x, weighted)
