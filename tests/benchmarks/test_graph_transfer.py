"""Values carried over a graph."""

import pytest
import torch

pytest.importorskip("torch_geometric")

import graph_transfer


@pytest.mark.parametrize("kind", graph_transfer.GRAPHS)
def test_source_and_target_are_so_many_hops_apart(kind):
    edges, nodes, source, target = graph_transfer.graph(kind, 6)
    reached = torch.zeros(nodes, dtype=torch.bool)
    reached[source] = True
    hops = 0
    while not reached[target]:
        reached[edges[1][reached[edges[0]]]] = True
        hops += 1
    assert hops == 6


def test_swan_keeps_the_size_of_small_gradients():
    torch.manual_seed(0)
    swan = graph_transfer.Swan(1).double()
    edges, nodes, *_ = graph_transfer.graph("crossed", 4)
    x = torch.zeros(nodes, graph_transfer.WIDTH, dtype=torch.float64)

    def change(x):
        return swan(x, graph_transfer.Adjacency(edges, nodes)) - x

    jacobian = torch.autograd.functional.jacobian(change, x).view(x.numel(), x.numel())
    assert jacobian.abs().max() > 0.1
    torch.testing.assert_close(jacobian, -jacobian.t())


def test_every_network_is_measured_and_shown(measured):
    names = [f"line, {name}, seed 0" for name in graph_transfer.BLOCKS]
    found = measured("graph_transfer", f"line, {graph_transfer.FORMULA}", *names)
    assert found[0]["error"] < 1e-5 < 0.05 < min(one["error"] for one in found[1:])
    table = graph_transfer.tables(found)["graph-transfer"]
    assert all(f"| {name} |" in table for name in graph_transfer.BLOCKS)
