"""Graph layers that break one promise each: the check of that promise fails, and says so."""

import pytest
import torch

from anharmonic import Adjacency, GraphCON
from anharmonic.nn import AttentionCoupling
from anharmonic.testing import check_graph_layer, graph_layer_checks

WIDTH = 4


class Good(GraphCON):
    """A layer that keeps every promise."""

    def __init__(self):
        super().__init__(AttentionCoupling(WIDTH), 3)


def changed(**methods):
    """A layer with other methods, each called with the old one first."""
    layer = type("Changed", (Good,), {})
    for name, method in methods.items():
        old = getattr(Good, name)
        setattr(layer, name, lambda self, *a, _old=old, _new=method: _new(_old, self, *a))
    return layer


def output_of(change):
    """A layer whose output is changed with its input in view."""
    return changed(forward=lambda old, self, x, edges: change(old(self, x, edges), x, edges))


def one_edge_less(old, self, x, edges):
    return old(self, x, edges.edge_index[:, :-1] if isinstance(edges, Adjacency) else edges)


def divided_by_edges(out, x, edges):
    return out / edges.shape[1] if isinstance(edges, torch.Tensor) else out


def lenient(old, self, x, edges):
    return old(self, x.nan_to_num(0.0) if isinstance(x, torch.Tensor) else x, edges)


BROKEN = {
    "renumbered_nodes_give_renumbered_output": output_of(
        lambda out, x, edges: out + torch.arange(len(out)).to(out)[:, None]
    ),
    "two_graphs_in_one_are_two_graphs": output_of(lambda out, x, edges: out + x.mean(0)),
    "adjacency_is_edge_index": changed(forward=one_edge_less),
    # Changed methods take no names.
    "called_by_name_and_with_int32": changed(
        forward=lambda old, self, x, graph: old(self, x, graph)
    ),
    "no_edges_and_one_node": output_of(divided_by_edges),
    "no_nodes": output_of(lambda out, x, edges: out if len(x) else out.new_zeros(1, WIDTH)),
    "gradients_are_finite_where_features_tie": output_of(
        lambda out, x, edges: out + (x - x.mean(1, keepdim=True)).abs().sqrt()
    ),
    "gradients_are_right": output_of(lambda out, x, edges: out + x.detach()),
    "float32_stays_float32": output_of(lambda out, x, edges: out.double()),
    "copies_and_pickles": changed(
        __init__=lambda old, self: (old(self), setattr(self, "hook", lambda: None))[1]
    ),
    "reset_parameters_draws_anew": changed(reset_parameters=lambda old, self: None),
    "bad_input_is_refused": changed(forward=lenient),
}


def test_a_layer_that_keeps_its_promises_passes():
    check_graph_layer(Good, WIDTH)
    assert set(BROKEN) == set(dict(graph_layer_checks(Good, WIDTH)))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found(name):
    with pytest.raises(AssertionError, match=r"(?s)Expected .*; got "):
        dict(graph_layer_checks(BROKEN[name], WIDTH))[name]()
