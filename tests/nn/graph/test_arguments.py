"""Arguments of the deep layers: convolutions per layer, activations, checks of the input."""

import pytest
import torch
from torch import nn

from anharmonic import Adjacency, GraphCON
from anharmonic.nn.graph.arguments import activation_function, check_input, modules

X, EDGES = torch.zeros(3, 2), torch.tensor([[0, 1], [1, 2]])


def test_one_module_is_shared_and_a_list_is_one_per_layer():
    assert len(modules("conv", nn.Linear(2, 2), 5)) == 1
    assert len(modules("conv", [nn.Linear(2, 2) for _ in range(5)], 5)) == 5
    assert len(modules("conv", nn.ModuleList([nn.Linear(2, 2)]), 1)) == 1


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (nn.Linear, TypeError, "conv must be a torch.nn.Module or a list of them"),
        ([nn.Linear(2, 2), 3], TypeError, r"got 3; pass"),
        ([nn.Linear(2, 2)] * 2, ValueError, "conv must be one for each of the 3 layers; got 2"),
        (nn.ModuleList(), ValueError, "conv .*; got 0"),
    ],
)
def test_other_convolutions_are_refused(given, error, text):
    with pytest.raises(error, match=text):
        modules("conv", given, 3)


def test_an_activation_is_a_name_or_a_function():
    assert activation_function("activation", torch.sin) is torch.sin
    assert activation_function("activation", "tanh") is torch.tanh
    with pytest.raises(ValueError, match=r"activation must be one of .*'relu'"):
        activation_function("activation", "rely")
    for given, text in ((nn.ReLU, r"or a function; got .*ReLU.*instance"), (None, "a name")):
        with pytest.raises(TypeError, match=text):
            activation_function("activation", given)


@pytest.mark.parametrize("graph", [EDGES, Adjacency(EDGES, 3), torch.eye(3).to_sparse()])
def test_good_input_passes(graph):
    check_input(X, graph)


@pytest.mark.parametrize(
    ("x", "graph", "error", "text"),
    [
        ((X, X), EDGES, TypeError, "one kind of node"),
        (X, {"a": EDGES}, TypeError, "one kind of node"),
        (X.long(), EDGES, TypeError, "floating-point tensor"),
        (X[None], EDGES, ValueError, "put several graphs into one"),
        (X * float("nan"), EDGES, ValueError, "NaN"),
        (X, Adjacency(EDGES, 4), ValueError, "must be one with the 3 nodes of x; got 4"),
        (X, torch.eye(3, 4).to_sparse(), ValueError, "with the 3 nodes of x"),
        (X, EDGES + 1, ValueError, "3"),
        (X, EDGES.float(), TypeError, "int"),
    ],
)
def test_bad_input_is_refused(x, graph, error, text):
    with pytest.raises(error, match=text):
        check_input(x, graph)


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
