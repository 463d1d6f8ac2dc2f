"""Layer by layer and part by part gives what the whole graph at once gives."""

import pytest
import torch

from anharmonic import Adjacency
from anharmonic.nn import GradientGating, GraphCON, infer_by_layers, make_conv, model_class

pytest.importorskip("torch_geometric", reason="convolutions are PyG's")


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


@pytest.mark.fast("7", "61")
@pytest.mark.parametrize("size", [1, 7, 61, 100])
def test_parts_equal_the_whole(size):
    for directed in (False, True):
        x, edges = graph(directed)
        for layer in layers():
            with torch.no_grad():
                whole = layer.eval()(x, edges)
            # Sums of the same numbers in another order.
            torch.testing.assert_close(
                infer_by_layers(layer, x, edges, size), whole, rtol=1e-5, atol=1e-6
            )


@pytest.mark.parametrize("name", ["GraphCON", "GradientGating"])
def test_a_network_keeps_its_block_and_mode(name):
    x, edges = graph()
    model = model_class(name)(8, 3, hidden_size=4, num_layers=5).train()
    block = model.block
    found = infer_by_layers(model, x, edges, 9)
    assert model.block is block and model.training and not found.requires_grad
    with torch.no_grad():
        torch.testing.assert_close(found, model.eval()(x, edges), rtol=1e-5, atol=1e-6)


def test_a_model_that_others_use_is_not_changed():
    """Another call may run at the same time: it sees the model whole and in training mode."""

    class Looking(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x, edge_index):
            seen.append((outer.training, outer.block is block, self.training, self.linear.weight))
            return self.linear(x)

    seen, (x, edges) = [], graph()
    outer = model_class("GraphCON")(8, 3, hidden_size=4, num_layers=2, conv="MLP").train()
    outer.block.convs[0] = looking = Looking()
    block = outer.block
    infer_by_layers(outer, x, edges, 30)
    assert len(seen) == 6
    for training, same_block, own_training, weight in seen:
        assert training and same_block and not own_training
        assert weight is looking.linear.weight  # a copy has the same weights, not new ones


def test_encoder_and_decoder_take_some_nodes_at_a_time():
    x, edges = graph()
    model, seen = model_class("GraphCON")(8, 3, hidden_size=4, num_layers=2), []
    for part in (model.encoder, model.decoder):
        part.register_forward_hook(lambda module, args, output: seen.append(len(output)))
    infer_by_layers(model, x, edges, 30)
    assert seen == [30, 30, 1] * 2


def test_edge_weights_are_refused():
    x, edges = graph()
    layer = GraphCON(make_conv("GCN", 8), 2).eval()
    ones, twos = torch.ones(edges.shape[1]), 2 * torch.ones(edges.shape[1])
    whole = layer(x, edges).detach()
    for form in (
        lambda weight: torch.sparse_coo_tensor(
            edges.flip(0), weight, (61, 61), check_invariants=False
        ),
        lambda weight: Adjacency(edges, 61, weight),
    ):
        torch.testing.assert_close(infer_by_layers(layer, x, form(ones), 9), whole)
        with pytest.raises(ValueError, match="edges without weights"):
            infer_by_layers(layer, x, form(twos), 9)


def test_convolutions_against_the_edges():
    from torch_geometric.nn import DirGNNConv, GCNConv

    x, edges = graph(directed=True)
    torch.manual_seed(0)
    for conv in (GCNConv(8, 8, flow="target_to_source"), DirGNNConv(GCNConv(8, 8))):
        for layer in (GraphCON(conv, 3).eval(), GradientGating(conv, 3).eval()):
            whole = layer(x, edges).detach()
            torch.testing.assert_close(infer_by_layers(layer, x, edges, 7), whole)


def test_modules_that_need_the_whole_graph_are_refused():
    from torch_geometric.nn import GCNConv, GraphNorm, LayerNorm

    x, edges = graph()
    for layer in (
        GraphCON(GCNConv(8, 8, cached=True), 2),
        GraphCON(GCNConv(8, 8), 2, norm=GraphNorm(8)),
        GradientGating(GCNConv(8, 8), 2, norm=LayerNorm(8, mode="graph")),
        GraphCON(GCNConv(8, 8), 2, norm=torch.nn.BatchNorm1d(8, track_running_stats=False)),
    ):
        with pytest.raises(ValueError, match="model must be without cached=True and norms"):
            infer_by_layers(layer, x, edges, 7)
    for norm in (LayerNorm(8, mode="node"), torch.nn.BatchNorm1d(8)):
        layer = GraphCON(GCNConv(8, 8), 2, norm=norm).eval()
        torch.testing.assert_close(infer_by_layers(layer, x, edges, 7), layer(x, edges).detach())


def test_others_are_refused():
    with pytest.raises(TypeError, match="model must be a GraphCON"):
        infer_by_layers(model_class("PlainGNN")(8, 3), *graph())
    with pytest.raises(ValueError, match=r"x must be a tensor \[N, 5\]"):
        infer_by_layers(model_class("GraphCON")(5, 3), *graph())
    with pytest.raises(TypeError, match="model must be a GraphCON"):
        infer_by_layers(torch.nn.Linear(2, 2), *graph())
    with pytest.raises(ValueError, match="nodes_per_part must be an int >= 1"):
        infer_by_layers(GraphCON(make_conv("GCN", 8), 2), *graph(), 0)
