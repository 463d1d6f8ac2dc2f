"""Settings for graphs follow from the data, fit the models, and learn."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from anharmonic.data import GraphDataset, GraphTask, Splits, registry
from anharmonic.data.graphs.own import GraphFileTask
from anharmonic.data.readers import file_digest
from anharmonic.diagnostics import gate_rates
from anharmonic.nn.graph.gradient_gating_network import GradientGatingNetwork
from anharmonic.nn.graph.graphcon_network import GraphCONNetwork
from anharmonic.nn.registry import model_class
from anharmonic.train.fit import fit
from anharmonic.train.recipe_graphs import graph_settings
from anharmonic.train.run import Run, RunEnvironment

MODELS = ("PlainGNN", "GraphCON", "GradientGating")


def graph(folder: Path, *, same: float, words: int = 300, nodes: int = 240) -> Path:
    """Two thirds of one class; a share `same` of edges within a class; words that hint at it."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(nodes) % 3 < 2, 0, 1)
    source, target = rng.integers(0, nodes, (2, 40 * nodes))
    within = y[source] == y[target]
    parts = ((within, round(same * 1200)), (~within, round((1 - same) * 1200)))
    edges = [np.stack([source, target])[:, kind][:, :count] for kind, count in parts]
    # Of 12 words 3 come from the half of the vocabulary that is the class's.
    half = words // 2
    x = np.zeros((nodes, words), np.float32)
    for node, label in enumerate(y):
        x[node, rng.integers(0, words, 9)] = 1
        x[node, label * half + rng.integers(0, half, 3)] = 1
    path = folder / "graph.npz"
    np.savez(path, x=x, edge_index=np.concatenate(edges, axis=1), y=y)
    return path


def test_what_decides(tmp_path):
    alike = GraphFileTask(graph(tmp_path, same=0.9))
    fields, options, why = graph_settings("PlainGNN", alike)
    assert options["conv"] == "GCN" and options["scale_rows"]
    assert "smooth" in why and "fewer training nodes (144)" in why
    unlike = GraphFileTask(graph(tmp_path, same=0.2))
    assert graph_settings("PlainGNN", unlike)[1]["conv"] == "SAGE"
    # Half of the edges within a class is what chance gives two thirds and one third.
    chance = GraphFileTask(graph(tmp_path, same=0.55))
    assert graph_settings("PlainGNN", chance)[1]["conv"] == "SAGE"
    short = graph_settings("PlainGNN", GraphFileTask(graph(tmp_path, same=0.9, words=40)))
    assert short[0]["weight_decay"] < fields["weight_decay"]


def test_values_that_neighbours_share_are_smoothed(tmp_path):
    rng = np.random.default_rng(0)
    ring = np.arange(200)
    edges = np.stack([np.tile(ring, 2), np.concatenate([np.roll(ring, 1), np.roll(ring, 2)])])
    field, noise = np.sin(ring / 16), rng.normal(size=200)
    found = {}
    for name, y in (("field", field), ("both", np.stack([field, field + 0.1 * noise], 1)),
                    ("noise", noise), ("same", np.ones(200))):  # fmt: skip
        np.savez(tmp_path / "values.npz", x=rng.normal(size=(200, 3)), edge_index=edges, y=y)
        task = GraphFileTask(tmp_path / "values.npz")
        options, why = graph_settings("PlainGNN", task)[1:]
        found[name] = options["conv"], why.partition(", ")[2].partition(":")[0]
    assert found["field"][0] == found["both"][0] == "GCN" and found["noise"][0] == "SAGE"
    assert "join nodes of like values (correlation 0.9" in found["both"][1]
    assert "seldom join nodes of like values" in found["noise"][1]
    assert found["same"] == ("GCN", "nothing known of edges and targets")


def test_choices_fit_a_given_convolution_or_residual_term(tmp_path):
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    task = GraphFileTask(graph(tmp_path, same=0.2, words=8))
    for model, given in (
        ("GraphCON", {"conv": "SAGE"}),
        ("GraphCON", {"group_mean": True}),
        ("PlainGNN", {"residual": "v2"}),
        ("GradientGating", {"group_mean": True}),
    ):
        options = graph_settings(model, task, given)[1] | given
        model_class(model)(task.input_size, task.output_size, **options)
    assert graph_settings("GraphCON", task, {"conv": "SAGE"})[1]["residual"] == "plain"
    assert graph_settings("GraphCON", task, {"num_layers": 4})[1]["residual"] == "v2"


@pytest.mark.parametrize("model", ["GraphCON", "GradientGating"])
def test_test_classes_are_not_looked_at(model, tmp_path):
    path = graph(tmp_path, same=0.9)
    with np.load(path) as stored:
        arrays = dict(stored)
    rows = GraphFileTask(path).splits().test.batch.rows.numpy()
    masks = {f"{part}_mask": np.zeros(240, bool) for part in ("train", "valid", "test")}
    for name, part in zip(masks, GraphFileTask(path).splits(), strict=True):
        masks[name][part.batch.rows] = True
    said = []
    for shift in (0, 1):
        arrays["y"][rows] = (arrays["y"][rows] + shift) % 2
        np.savez(path, **arrays, **masks)
        said.append(graph_settings(model, GraphFileTask(path)))
    assert said[0] == said[1]


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_a_gate_of_normalised_features_starts_as_open(norm, tmp_path):
    task = GraphFileTask(graph(tmp_path, same=0.9))
    batch = task.splits().train.batch
    given = {"num_layers": 16, "norm": norm}
    options = graph_settings("GradientGating", task, given)[1] | given | {"input_dropout": 0.0}
    torch.manual_seed(1)
    network = GradientGatingNetwork(task.input_size, task.output_size, **options)
    # As in training, where a batch norm has the statistics of the graph.
    with torch.no_grad():
        x = network.train()._encode(batch.x)
        _, states = network.block(x, batch.graph, return_states=True)
    assert 0.5 < float(states.tau.mean((1, 2)).sum()) / (0.3 * 16) < 2


@pytest.mark.fast("3", "8", "32")
@pytest.mark.parametrize("layers", [3, 8, 32, 128])
def test_a_gate_starts_neither_shut_nor_wide_open(layers, tmp_path):
    task = GraphFileTask(graph(tmp_path, same=0.9))
    batch = task.splits().train.batch

    def total(options):
        torch.manual_seed(1)
        network = GradientGatingNetwork(task.input_size, task.output_size, **options)
        return sum(float(tau.mean()) for tau in gate_rates(network, batch.x, batch.graph))

    given = {"num_layers": layers}
    options = graph_settings("GradientGating", task, given)[1] | given
    # Scales are powers of two, and the weights are others than those the scale was chosen with.
    assert 0.6 < total(options) / min(max(0.3 * layers, 1), 6) < 1.7
    # Without the rule the gate of a deep network replaces all features several times.
    if layers == 128:
        assert total(options | {"gate_scale": 1.0}) > 10


def test_what_is_given_stays(tmp_path):
    task = GraphFileTask(graph(tmp_path, same=0.9))
    default = graph_settings("GradientGating", task)
    assert default[1]["num_layers"] == 2
    assert graph_settings("GradientGating", task, {"num_layers": 2}) == default
    given = {"num_layers": 8, "gate_scale": 3.0}
    assert "gate_scale" not in graph_settings("GradientGating", task, given)[1]


@pytest.mark.parametrize(("same", "layers"), [(0.9, 1), (0.9, 8), (0.1, 1), (0.1, 8)])
def test_graphcon_is_not_the_plain_network(same, layers, tmp_path):
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    task = GraphFileTask(graph(tmp_path, same=same))
    batch = task.splits().train.batch
    options = graph_settings("GraphCON", task)[1] | {"num_layers": layers}
    network = GraphCONNetwork(task.input_size, task.output_size, **options).eval()
    found = network(batch.x, batch.graph)
    # With dt = frequency = damping = 1 and no residual term it would be the plain network.
    plain = GraphCONNetwork(
        task.input_size, task.output_size, **(options | {"dt": 1.0, "residual": None})
    ).eval()
    # The residual term wraps the convolution, so that its weights have longer names.
    weights = {name.replace(".conv.", "."): w for name, w in network.state_dict().items()}
    unknown = plain.load_state_dict(weights, strict=False)
    assert not unknown.missing_keys
    assert (found - plain(batch.x, batch.graph)).abs().max() > 1e-3


def test_more_layers_of_graphcon_take_smaller_steps_to_the_same_time(tmp_path):
    task = GraphFileTask(graph(tmp_path, same=0.9))
    for layers, dt in ((1, 0.9), (4, 0.9), (8, 0.5), (16, 0.25), (128, 0.03125)):
        assert graph_settings("GraphCON", task, {"num_layers": layers})[1]["dt"] == dt
    apart = GraphFileTask(graph(tmp_path, same=0.1))
    assert "dt" not in graph_settings("GraphCON", apart, {"num_layers": 16})[1]


def test_values_and_graphs_without_edges_have_settings(tmp_path):
    path = graph(tmp_path, same=0.9)
    with np.load(path) as stored:
        arrays = dict(stored)
    for changes, said in (
        ({"y": np.linspace(0, 1, 240)}, "seldom join nodes of like values"),
        ({"edge_index": np.zeros((2, 0), int)}, "nothing known"),
    ):
        np.savez(path, **(arrays | changes))
        fields, options, why = graph_settings("GraphCON", GraphFileTask(path))
        assert said in why
        Run("graph", "GraphCON", {"sha256": "0" * 64}, options, **fields)


@pytest.mark.fast("GraphCON-0.9")
@pytest.mark.parametrize(
    ("model", "same"),
    # GCN and GAT, as their authors train them, are for edges that join nodes of one class.
    [*itertools.product(MODELS, [0.9, 0.1]), ("GCN", 0.9), ("GAT", 0.9)],
)
def test_the_default_beats_the_majority_class_by_far(model, same, tmp_path):
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    path = graph(tmp_path, same=same)
    fields, options, _ = graph_settings(model, GraphFileTask(path))
    run = Run("graph", model, {"sha256": file_digest(path)}, options, **fields | {"epochs": 120})
    environment = RunEnvironment(out=tmp_path, file=path, progress=False, threads=1)
    # Two thirds are of one class.
    assert fit(run, environment).test > 100 * 2 / 3 + 15


class Rings(GraphTask):
    """Rings of five nodes; the class is the sign of a feature's mean."""

    name = "rings"
    target = "class"
    readout = "graph"
    metric = "accuracy"
    input_size = 2
    output_size = 2

    def __init__(self) -> None:
        self.sizes = {"train": 200, "valid": 20, "test": 100}

    def _build(self) -> Splits[GraphDataset]:
        generator = torch.Generator().manual_seed(0)
        return Splits(*(self._part(count, generator) for count in self.sizes.values()))

    def _part(self, count: int, generator: torch.Generator) -> GraphDataset:
        x = torch.randn(count, 5, 2, generator=generator)
        y = (x[:, :, 0].mean(1) > 0).long()
        ring = torch.stack([torch.arange(5), torch.arange(1, 6) % 5]).repeat(1, count)
        ends = 5 * torch.arange(count + 1)
        return GraphDataset(x.reshape(-1, 2), ring, y, ends, ends)


@pytest.mark.fast("GradientGating")
@pytest.mark.parametrize("model", MODELS)
def test_the_default_learns_a_class_for_every_graph(model, tmp_path, monkeypatch):
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    monkeypatch.setitem(registry._OWN, "rings", f"{__name__}:Rings")
    fields, options, _ = graph_settings(model, Rings())
    assert (fields["batch_size"], fields["schedule"], fields["epochs"]) == (32, "one_cycle", 200)
    run = Run("rings", model, {}, options, **(fields | {"epochs": 10}))
    result = fit(run, RunEnvironment(out=tmp_path, progress=False, threads=1))
    assert result.test > 80  # one class has half of the rings
