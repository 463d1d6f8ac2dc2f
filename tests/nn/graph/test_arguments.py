"""Arguments of the deep layers: convolutions per layer, activations, checks of the input."""

import pytest
import torch
from torch import nn

from anharmonic import GraphCON
from anharmonic.nn.graph.arguments import modules

X, EDGES = torch.zeros(3, 2), torch.tensor([[0, 1], [1, 2]])


def test_one_module_is_shared_and_a_list_is_one_per_layer():
    assert len(modules("conv", nn.Linear(2, 2), 5)) == 1
    assert len(modules("conv", [nn.Linear(2, 2) for _ in range(5)], 5)) == 5
    assert len(modules("conv", nn.ModuleList([nn.Linear(2, 2)]), 1)) == 1


class Weighted(nn.Module):
    """A coupling that takes a number per edge."""

    def forward(self, x, edge_index, edge_weight=None, edge_attr=None):
        return x


@pytest.mark.parametrize("name", ["edge_weight", "edge_attr"])
def test_one_entry_per_edge(name):
    layer = GraphCON(Weighted(), 2)
    layer(X, EDGES, **{name: torch.ones(2)})
    with pytest.raises(
        ValueError, match=rf"{name} must be a tensor with one entry for each of the E=2 edges"
    ):
        layer(X, EDGES, **{name: torch.ones(3)})
