"""Settings for graphs follow from the data, fit the models, and learn."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from anharmonic.data import GraphDataset, GraphTask, Splits, registry
from anharmonic.data.graphs.own import GraphFileTask
from anharmonic.data.readers import file_digest
from anharmonic.nn.graph.gradient_gating_network import GradientGatingNetwork
from anharmonic.nn.registry import model_class
from anharmonic.train import Run, fit, predict, run_folder
from anharmonic.train.recipe import FILLED_OPTIONS, recipe
from anharmonic.train.recipe_graphs import graph_settings

MODELS = ("PlainGNN", "GraphCON", "GradientGating")


@pytest.fixture
def pyg():
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")


@pytest.fixture
def graph(tmp_path):
    """Two thirds of one class; a share `same` of edges within a class; words that hint at it."""

    def make(same=0.9, words=300, nodes=240, **changes):
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
        arrays = {"x": x, "edge_index": np.concatenate(edges, axis=1), "y": y}
        np.savez(tmp_path / "graph.npz", **arrays | changes)
        return GraphFileTask(tmp_path / "graph.npz")

    return make


def network_of(model, task, options):
    torch.manual_seed(1)
    return model(task.input_size, task.output_size, **options)


UNLIKE = {"same": 0.2, "words": 8}


@pytest.mark.parametrize(
    ("model", "data", "given", "expected", "said"),
    [
        ("PlainGNN", {}, {}, {"conv": "GCN", "scale_rows": True}, "fewer training nodes (144)"),
        ("PlainGNN", {}, {}, {"weight_decay": 3e-2}, "smooth"),
        ("PlainGNN", {"words": 40}, {}, {"weight_decay": 5e-4}, "at least as many training nodes"),
        ("PlainGNN", {"same": 0.2}, {}, {"conv": "SAGE"}, ""),
        # Half of the edges within a class is what chance gives two thirds and one third.
        ("PlainGNN", {"same": 0.55}, {}, {"conv": "SAGE"}, ""),
        ("GraphCON", {"y": np.linspace(0, 1, 240)}, {}, {}, "seldom join nodes of like values"),
        ("GraphCON", {"edge_index": np.zeros((2, 0), int)}, {}, {}, "nothing known"),
        ("GraphCON", UNLIKE, {"conv": "SAGE"}, {"residual": "plain"}, ""),
        ("GraphCON", UNLIKE, {"num_layers": 4}, {"residual": "v2"}, ""),
        # More layers take smaller steps to the same time.
        *(
            ("GraphCON", {}, {"num_layers": layers}, {"dt": dt}, "")
            for layers, dt in ((1, 0.9), (4, 0.9), (8, 0.5), (16, 0.25), (128, 0.03125))
        ),
        ("GraphCON", {"same": 0.1}, {"num_layers": 4}, {"dt": None}, ""),
        ("GraphCON", {"same": 0.1}, {"num_layers": 16}, {"dt": 0.25}, ""),
        ("GradientGating", {}, {}, {"num_layers": 2}, ""),
        ("GradientGating", {}, {"num_layers": 2}, {"num_layers": 2}, ""),
        ("GradientGating", {}, {"num_layers": 8, "gate_scale": 3.0}, {"gate_scale": 3.0}, ""),
        # A choice fits the convolution or the residual term that is given.
        ("GraphCON", UNLIKE, {"group_mean": True}, {}, ""),
        ("PlainGNN", UNLIKE, {"residual": "v2"}, {}, ""),
        *((model, {}, {}, {}, "of its authors") for model in ("GCN", "GAT")),
        pytest.param("GCNII", {}, {}, {}, "", marks=pytest.mark.papers),
        ("GradientGating", UNLIKE, {"group_mean": True}, {}, ""),
    ],
)
def test_settings_follow_from_the_data_and_have_an_open_flag(
    graph, pyg, model, data, given, expected, said
):
    task = graph(**data)
    digest = {"sha256": file_digest(task.path)}
    made = recipe(model, task, {"task_options": digest, "model_options": given})
    found = vars(made.run) | made.run.model_options
    assert {name: found.get(name) for name in expected} == expected and said in made.why
    assert made.why and made.why[1:] in made.describe()
    assert made.chosen.keys() - {field.name for field in dataclasses.fields(Run)} <= FILLED_OPTIONS
    network_of(model_class(model), task, made.run.model_options)


@pytest.mark.parametrize(
    ("kinds", "conv", "said"),
    [
        (["field"], "GCN", "edges join nodes of like values (correlation 1.00)"),
        (["field", "both"], "GCN", "edges join nodes of like values (correlation 0.99)"),
        (["noise"], "SAGE", "edges seldom join nodes of like values"),
        (["same"], "GCN", "nothing known of edges and targets"),
    ],
)
def test_values_that_neighbours_share_are_smoothed(tmp_path, kinds, conv, said):
    rng, ring = np.random.default_rng(0), np.arange(200)
    edges = np.stack([np.tile(ring, 2), np.concatenate([np.roll(ring, 1), np.roll(ring, 2)])])
    known = {"field": np.sin(ring / 16), "noise": rng.normal(size=200), "same": np.ones(200)}
    known["both"] = known["field"] + 0.1 * known["noise"]
    y = np.stack([known[kind] for kind in kinds], axis=1)
    np.savez(tmp_path / "values.npz", x=rng.normal(size=(200, 3)), edge_index=edges, y=y)
    _, options, why = graph_settings("PlainGNN", GraphFileTask(tmp_path / "values.npz"))
    assert options["conv"] == conv and said in why


@pytest.mark.parametrize("model", ["GraphCON", "GradientGating"])
def test_test_classes_are_not_looked_at(model, graph):
    parts = {f"{name}_mask": part for name, part in graph().splits()._asdict().items()}
    masks = {name: np.isin(np.arange(240), part.batch.rows) for name, part in parts.items()}
    y = np.where(np.arange(240) % 3 < 2, 0, 1)
    others = np.where(masks["test_mask"], 1 - y, y)
    one, other = (graph_settings(model, graph(**masks, y=classes)) for classes in (y, others))
    assert one == other


LAYERS = {
    "3": (3, 1.0, {}),
    "8": (8, 2.4, {}),
    "32": (32, 6.0, {}),
    "128": (128, 6.0, {}),
    # With a convolution for each layer a wider gate keeps the network from learning.
    "own 3": (3, 1.5, {"shared": False}),
    "own 16": (16, 2.0, {"shared": False}),
    "own 64": (64, 2.0, {"shared": False}),
    "layer norm": (16, 4.8, {"norm": "layer"}),
    "batch norm": (16, 4.8, {"norm": "batch"}),
}


@pytest.mark.fast("3", "8", "32", "own 16", "layer norm", "batch norm")
@pytest.mark.parametrize(("layers", "wanted", "given"), LAYERS.values(), ids=LAYERS)
def test_a_gate_starts_neither_shut_nor_wide_open(layers, wanted, given, graph):
    task = graph()
    batch = task.splits().train.batch

    def total(options):
        """As in training, where a batch norm has the statistics of the graph."""
        network = network_of(GradientGatingNetwork, task, options | {"input_dropout": 0.0})
        with torch.no_grad():
            x = network.train()._encode(batch.x)
            return float(
                network.block(x, batch.graph, return_states=True)[1].tau.mean((1, 2)).sum()
            )

    given = given | {"num_layers": layers}
    options = graph_settings("GradientGating", task, given)[1] | given
    # Scales are powers of two, and the weights are others than those the scale was chosen with.
    low, high = (0.5, 2.0) if "norm" in given else (0.6, 1.7)
    assert low < total(options) / wanted < high
    # Without the rule the gate of a deep network replaces all features several times.
    if layers == 128:
        assert total(options | {"gate_scale": 1.0}) > 10


@pytest.mark.fast("GraphCON-0.9")
@pytest.mark.parametrize(
    ("model", "same"),
    # GCN and GAT, as their authors train them, are for edges that join nodes of one class.
    [*itertools.product(MODELS, [0.9, 0.1]), ("GCN", 0.9), ("GAT", 0.9)],
)
def test_the_default_beats_the_majority_class_by_far(model, same, pyg, graph, environment):
    task = graph(same)
    fields, options, _ = graph_settings(model, task)
    sha256 = {"sha256": file_digest(task.path)}
    run = Run("graph", model, sha256, options, **fields | {"epochs": 120})
    # Two thirds are of one class.
    assert fit(run, environment, task).test > 100 * 2 / 3 + 15


class Rings(GraphTask):
    """Rings of five nodes; the class is the sign of a feature's mean."""

    name = "rings"
    target, readout, metric = "class", "graph", "accuracy"
    input_size = output_size = 2

    def __init__(self):
        self.sizes = {"train": 200, "valid": 20, "test": 100}

    def _build(self):
        generator = torch.Generator().manual_seed(0)
        return Splits(*(self._part(count, generator) for count in self.sizes.values()))

    def _part(self, count, generator):
        x = torch.randn(count, 5, 2, generator=generator)
        y = (x[:, :, 0].mean(1) > 0).long()
        ring = torch.stack([torch.arange(5), torch.arange(1, 6) % 5]).repeat(1, count)
        ends = 5 * torch.arange(count + 1)
        return GraphDataset(x.reshape(-1, 2), ring, y, ends, ends)


@pytest.mark.fast("GradientGating")
@pytest.mark.parametrize("model", MODELS)
def test_the_default_learns_a_class_for_every_graph(model, pyg, environment, monkeypatch):
    monkeypatch.setitem(registry._OWN, "rings", f"{__name__}:Rings")
    fields, options, _ = graph_settings(model, Rings())
    assert (fields["batch_size"], fields["schedule"], fields["epochs"]) == (32, "one_cycle", 200)
    run = Run("rings", model, {}, options, **(fields | {"epochs": 10}))
    assert fit(run, environment).test > 80  # one class has half of the rings
    with pytest.raises(ValueError, match=r"a model for sequences.*got .*rings.*from_pretrained"):
        predict(run_folder(run, environment), "data.npz")
