"""Layer by layer and part by part gives what the whole graph at once gives."""

from functools import partial

import pytest
import torch

from anharmonic import Adjacency
from anharmonic.nn import GradientGating, GraphCON, infer_by_layers, make_conv, model_class

pyg = pytest.importorskip("torch_geometric.nn", reason="convolutions are PyG's")


def graph(directed=False):
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 60, (2, 90), generator=generator)
    edges = edges if directed else torch.cat([edges, edges.flip(0)], dim=1).unique(dim=1)
    return torch.rand(61, 8, generator=generator), edges  # one node has no edge


def layers():
    torch.manual_seed(0)
    for name in ("GCN", "GAT", "SAGE"):
        yield GraphCON(make_conv(name, 8), 6, dt=0.3, initial_velocity="zero")
        yield GradientGating(make_conv(name, 8), 6, gate_conv=make_conv(name, 8))
    yield GradientGating(make_conv("GCN", 8), 6, neighbours="out", aggr="mean")
    yield GraphCON(make_conv("GCN", 8), 2, norm=pyg.LayerNorm(8, mode="node"))
    yield GraphCON(make_conv("GCN", 8), 2, norm=torch.nn.BatchNorm1d(8))
    # Against the edges.
    for conv in (pyg.GCNConv(8, 8, flow="target_to_source"), pyg.DirGNNConv(pyg.GCNConv(8, 8))):
        yield GraphCON(conv, 3)
        yield GradientGating(conv, 3)


@pytest.mark.fast("7-True", "61-False")
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("size", [1, 7, 61, 100])
def test_parts_equal_the_whole(size, directed):
    x, edges = graph(directed)
    for layer in layers():
        with torch.no_grad():
            whole = layer.eval()(x, edges)
        # Sums of the same numbers in another order.
        parts = infer_by_layers(layer, x, edges, size)
        torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["GraphCON", "GradientGating"])
def test_a_network_is_as_it_was_meanwhile_and_afterwards(name):
    """Another call may run at the same time: it sees the model whole and in training mode."""

    class Looking(pyg.GCNConv):
        def forward(self, x, edge_index):
            is_whole = model.training and model.block is block
            seen.append(is_whole and not self.training and self.bias is looking.bias)
            return super().forward(x, edge_index)

    seen, sizes, (x, edges) = [], [], graph()
    model = model_class(name)(8, 3, hidden_size=4, num_layers=2).train()
    model.block.convs[0] = looking = Looking(4, 4)
    block = model.block
    for part in (model.encoder, model.decoder):
        part.register_forward_hook(lambda module, args, output: sizes.append(len(output)))
    found = infer_by_layers(model, x, edges, 30)
    assert len(seen) == 6 and all(seen) and sizes == [30, 30, 1] * 2
    assert model.block is block and model.training and not found.requires_grad
    with torch.no_grad():
        torch.testing.assert_close(found, model.eval()(x, edges), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_edge_weights_are_refused(sparse):
    x, edges = graph()
    layer, ones = GraphCON(make_conv("GCN", 8), 2).eval(), torch.ones(edges.shape[1])

    def weighted(weight):
        if not sparse:
            return Adjacency(edges, 61, weight)
        return torch.sparse_coo_tensor(edges.flip(0), weight, (61, 61), check_invariants=False)

    whole = layer(x, edges).detach()
    torch.testing.assert_close(infer_by_layers(layer, x, weighted(ones), 9), whole)
    with pytest.raises(ValueError, match="edges without weights"):
        infer_by_layers(layer, x, weighted(2 * ones), 9)


WHOLE = "model must be without cached=True and norms"
GCN = partial(pyg.GCNConv, 8, 8)
UNTRACKED = torch.nn.BatchNorm1d(8, track_running_stats=False)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: GraphCON(GCN(cached=True), 2), WHOLE),
        (lambda: GraphCON(GCN(), 2, norm=pyg.GraphNorm(8)), WHOLE),
        (lambda: GradientGating(GCN(), 2, norm=pyg.LayerNorm(8, mode="graph")), WHOLE),
        (lambda: GraphCON(GCN(), 2, norm=UNTRACKED), WHOLE),
        (lambda: model_class("PlainGNN")(8, 3), "model must be a GraphCON"),
        (lambda: model_class("GraphCON")(5, 3), r"x must be a tensor \[N, 5\]"),
        (lambda: torch.nn.Linear(2, 2), "model must be a GraphCON"),
    ],
)
def test_others_are_refused(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        infer_by_layers(make(), *graph(), 7)
    with pytest.raises(ValueError, match="nodes_per_part must be an int >= 1"):
        infer_by_layers(GraphCON(GCN(), 2), *graph(), 0)
