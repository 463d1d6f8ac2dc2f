"""Dirichlet energy and mean average distance against hand-made numbers and their definitions."""

import pytest
import torch

from anharmonic import Adjacency, GradientGating, GraphCON
from anharmonic.diagnostics.conclusions import gate
from anharmonic.diagnostics.smoothing import (
    dirichlet_energy,
    gate_rates,
    grid_graph,
    layer_features,
    mean_average_distance,
    plain_states,
)
from anharmonic.nn.graph.convolutions import NodewiseLinear, make_conv
from anharmonic.nn.registry import model_class


def test_grid_has_the_edges_of_a_grid():
    graph = grid_graph(3, 4)
    assert (graph.num_nodes, graph.num_edges) == (12, 2 * (3 * 3 + 2 * 4))
    assert graph.in_degree.reshape(3, 4).tolist() == [[2, 3, 3, 2], [3, 4, 4, 3], [2, 3, 3, 2]]
    assert torch.equal(graph.in_degree, graph.transposed.in_degree)


def test_both_measures_node_by_node():
    x, graph = torch.rand(12, 3, dtype=torch.float64) - 0.5, grid_graph(3, 4)
    energy, distances = 0.0, []
    for i in range(12):
        near = graph.edge_index[0][graph.edge_index[1] == i]
        energy += sum((x[i] - x[j]).square().sum() for j in near)
        cosines = [torch.cosine_similarity(x[i], x[j], dim=0) for j in near]
        distances.append(1 - sum(cosines) / len(cosines))
    assert torch.allclose(dirichlet_energy(x, graph), energy / 12)
    assert torch.allclose(mean_average_distance(x, graph), sum(distances) / 12)


def test_sums_of_half_precision_are_single():
    x, graph = torch.rand(900, 64), grid_graph(30, 30)
    for dtype in (torch.float16, torch.bfloat16):
        half = x.to(dtype)
        for measure in (dirichlet_energy, mean_average_distance):
            assert torch.equal(measure(half, graph), measure(half.float(), graph))


def test_layers_at_once_are_layers_one_by_one_on_every_form_of_a_graph():
    x, graph = torch.rand(5, 12, 3), grid_graph(3, 4)
    for measure in (dirichlet_energy, mean_average_distance):
        one = torch.stack([measure(layer, graph) for layer in x])
        for form in (graph, graph.edge_index, graph.sparse(torch.float32)):
            torch.testing.assert_close(measure(x, form), one)
        torch.testing.assert_close(measure(list(x), graph), one)
    tiny = mean_average_distance(x * 1e-30, graph)
    assert torch.allclose(tiny, mean_average_distance(x, graph), rtol=1e-4)


def test_zero_features_and_isolated_nodes_give_numbers():
    graph = Adjacency(torch.tensor([[0, 1], [1, 0]]), 3)
    zero = torch.tensor([[0.0, 0.0], [1.0, 2.0], [5.0, 5.0]])
    assert mean_average_distance(zero, graph) == 0
    assert dirichlet_energy(zero, graph) == pytest.approx(10 / 3)
    # A mean of distances is over nodes with neighbours.
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
    assert mean_average_distance(x, graph) == 1.0
    nothing = Adjacency(torch.zeros(2, 0, dtype=torch.int64), 3)
    assert mean_average_distance(x, nothing) == 0


@pytest.mark.fast("GCN")
@pytest.mark.parametrize("name", ["GCN", "GAT"])
def test_plain_networks_oversmooth_and_wrapped_ones_do_not(name):
    pytest.importorskip("torch_geometric", reason="the convolutions are PyG's")
    graph, x = grid_graph(10, 10), torch.rand(100, 16)
    convs = [make_conv(name, 16) for _ in range(100)]
    with torch.no_grad():
        plain = dirichlet_energy(plain_states(convs, x, graph), graph)
        gated = GradientGating(convs, 100)(x, graph, return_states=True)[1].x
        oscillating = GraphCON(convs, 100, damping=0.0)(x, graph, return_states=True)[1].x
    assert plain[10] < 1e-2 * plain[0] and plain[100] < 1e-9 * plain[0]
    assert dirichlet_energy(gated, graph)[100] > 0.1 * plain[0]
    assert dirichlet_energy(oscillating, graph)[-1] > 0.1 * plain[0]


@pytest.mark.parametrize(
    "name",
    ["GraphCON", "GradientGating", "PlainGNN", pytest.param("GCNII", marks=pytest.mark.papers)],
)
def test_features_of_every_layer_of_our_networks(name):
    pytest.importorskip("torch_geometric", reason="the convolutions are PyG's")
    graph, x = grid_graph(3, 3), torch.rand(9, 5)
    model = model_class(name)(5, 2, hidden_size=4, num_layers=6)
    found = layer_features(model, x, graph)
    assert model.training
    assert len(found) == 7 and all(f.shape == (9, 4) for f in found)
    # What comes out of a convolution of PlainGNN is before its activation.
    last = found[-1].relu() if name == "PlainGNN" else found[-1]
    if name != "GCNII":
        torch.testing.assert_close(model.decoder(last), model(x, graph))


class Around(torch.nn.Module):
    """A model of one's own, with layers that it calls by the names of their arguments."""

    def __init__(self, *layers):
        super().__init__()
        self.first, self.layers = torch.nn.Linear(5, 5), torch.nn.ModuleList(layers)

    def forward(self, x, edges, weight=None):
        x, weights = self.first(x), {} if weight is None else {"edge_weight": weight}
        for layer in self.layers:
            x = layer(x=x, edge_index=edges, **weights)
        return x


@pytest.mark.parametrize("kind", [GraphCON, GradientGating])
def test_features_of_every_layer_of_a_deep_layer_within_a_model_of_ones_own(kind):
    x, graph, deep = torch.rand(9, 5), grid_graph(3, 3), kind(NodewiseLinear(5, 5), 3)
    model = Around(deep)
    _, states = deep(model.first(x), graph, return_states=True)
    for edges in (graph, graph.edge_index):
        assert torch.equal(torch.stack(layer_features(model, x, edges)), states.x)
        if kind is GradientGating:
            assert torch.equal(torch.stack(gate_rates(model, x, edges)), states.tau)
    with pytest.raises(ValueError, match=r"layers in model must be one GraphCON or Gra.*got 2"):
        layer_features(Around(deep, kind(NodewiseLinear(5, 5), 3)), x, graph)


def test_features_of_every_layer_of_models_of_pyg():
    pyg = pytest.importorskip("torch_geometric.nn", reason="the models are PyG's")
    graph, x = grid_graph(3, 3), torch.rand(9, 5)
    model = pyg.GCN(5, 4, num_layers=3, dropout=0.5)
    found = layer_features(model, x, graph)
    assert [f.shape[1] for f in found] == [5, 4, 4, 4]
    model.eval()
    torch.testing.assert_close(found[-1], model(x, graph.edge_index))
    torch.testing.assert_close(found[1], model.convs[0](x, graph.edge_index).relu())
    steps = [(pyg.GCNConv(5, 4), "x, e -> x"), (pyg.GATConv(4, 4), "x, e -> x")]
    assert len(layer_features(pyg.Sequential("x, e", steps), x, graph.edge_index)) == 3
    with pytest.raises(TypeError, match=r"model must be .* graph convolutions; got 'Linear'"):
        layer_features(torch.nn.Linear(5, 5), x, graph)


def test_weights_and_arguments_by_name_reach_the_layers():
    pyg = pytest.importorskip("torch_geometric.nn", reason="the convolutions are PyG's")
    edges, x = grid_graph(3, 3).edge_index, torch.rand(9, 5)
    weight = torch.rand(edges.shape[1])
    for layer in (GraphCON(pyg.GCNConv(5, 5), 3), pyg.GCNConv(5, 5)):
        model = Around(layer)
        for found in (
            layer_features(model, x, edges, weight),
            layer_features(model, x, edges, weight=weight),
            layer_features(layer, model.first(x), edges, edge_weight=weight),
        ):
            torch.testing.assert_close(found[0], model.first(x))
            torch.testing.assert_close(found[-1], model(x, edges, weight))
    weighted = Adjacency(edges, 9, weight)
    own = model_class("GCN")(5, 2).eval()
    torch.testing.assert_close(layer_features(own, x, weighted)[-1], own(x, weighted))
    with pytest.raises(ValueError, match="edge_index must be edges without weights"):
        layer_features(pyg.GCN(5, 4, num_layers=2), x, weighted)


def test_row_normalised_words_shut_the_gate_and_scaled_ones_open_it():
    """Features and edges like Cora's: few words a node, rows that sum to 1."""
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    x, ends = torch.zeros(200, 1000), torch.randint(0, 200, (2, 400))
    for row in x:
        row[torch.randperm(1000)[:20]] = 1 / 20
    graph = Adjacency(torch.cat([ends, ends.flip(0)], 1), 200)

    def means(**options):
        torch.manual_seed(0)
        model = model_class("GradientGating")(x.shape[1], 7, num_layers=8, **options)
        return [float(tau.mean()) for tau in gate_rates(model, x, graph)]

    shut, opened = means(), means(scale_rows=True, p=1.0)
    assert max(shut) < 0.01 and "nearly closed" in gate(shut)[0]
    assert 0.1 < min(opened) and max(opened) < 0.6 and not gate(opened)
    assert gate(means(gate_scale=100.0)) == ()
