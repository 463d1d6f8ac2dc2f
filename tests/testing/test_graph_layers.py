"""Graph layers that break one promise each: the check of that promise fails, and says so."""

import pytest
import torch
from torch import nn

from anharmonic import Adjacency, GraphCON
from anharmonic.nn import AttentionCoupling
from anharmonic.testing import check_graph_layer, graph_layer_checks

WIDTH = 4


class Good(nn.Module):
    """A layer that keeps every promise."""

    def __init__(self):
        super().__init__()
        self.layer = GraphCON(AttentionCoupling(WIDTH), 3)

    def reset_parameters(self):
        self.layer.reset_parameters()

    def forward(self, x, edge_index):
        return self.layer(x, edge_index)


class Numbered(Good):
    def forward(self, x, edge_index):
        out = super().forward(x, edge_index)
        return out + torch.arange(len(out)).to(out)[:, None]


class Mixed(Good):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index) + x.mean(0)


class EdgeIndexOnly(Good):
    def forward(self, x, edge_index):
        if isinstance(edge_index, Adjacency):
            edge_index = edge_index.edge_index[:, :-1]
        return super().forward(x, edge_index)


class NeedsEdges(Good):
    def forward(self, x, edge_index):
        out = super().forward(x, edge_index)
        return out / edge_index.shape[1] if isinstance(edge_index, torch.Tensor) else out


class NeedsNodes(Good):
    def forward(self, x, edge_index):
        out = super().forward(x, edge_index)
        return out if len(x) else out.new_zeros(1, WIDTH)


class Ties(Good):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index) + (x - x.mean(1, keepdim=True)).abs().sqrt()


class Detached(Good):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index) + x.detach()


class Doubled(Good):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index).double()


class Closure(Good):
    def __init__(self):
        super().__init__()
        self.hook = lambda: None


class Frozen(Good):
    def reset_parameters(self):
        pass


class Lenient(Good):
    def forward(self, x, edge_index):
        return super().forward(x.nan_to_num(0.0) if isinstance(x, torch.Tensor) else x, edge_index)


class Renamed(Good):
    def forward(self, x, graph):
        return super().forward(x, graph)


BROKEN = {
    "called_by_name_and_with_int32": Renamed,
    "renumbered_nodes_give_renumbered_output": Numbered,
    "two_graphs_in_one_are_two_graphs": Mixed,
    "adjacency_is_edge_index": EdgeIndexOnly,
    "no_edges_and_one_node": NeedsEdges,
    "no_nodes": NeedsNodes,
    "gradients_are_finite_where_features_tie": Ties,
    "gradients_are_right": Detached,
    "float32_stays_float32": Doubled,
    "copies_and_pickles": Closure,
    "reset_parameters_draws_anew": Frozen,
    "bad_input_is_refused": Lenient,
}


def test_a_layer_that_keeps_its_promises_passes():
    check_graph_layer(Good, WIDTH)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found(name):
    with pytest.raises(AssertionError, match=r"(?s)Expected .*; got "):
        dict(graph_layer_checks(BROKEN[name], WIDTH))[name]()


def test_every_check_has_a_layer_that_fails_it():
    assert set(BROKEN) == set(dict(graph_layer_checks(Good, WIDTH)))
