"""Choice of open settings for runs on graphs.

`python benchmarks/bench.py learning` measures these settings on three graphs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from anharmonic.data.base import Task
from anharmonic.data.graph_batch import GraphBatch, NodeDataset
from anharmonic.diagnostics import gate_rates
from anharmonic.nn.graph.gradient_gating_network import GradientGatingNetwork
from anharmonic.train.options import HIDDEN_SIZE

# Cora, Citeseer and Pubmed lie at 0.6 and above, Film, Chameleon, Squirrel, Texas, Wisconsin,
# Minesweeper, Tolokers and Twitch at 0.15 and below.
_ALIKE = 0.3
# For tasks of many graphs: graphs per step, and steps of a training, within 20 to 200 epochs.
_GRAPHS, _STEPS = 32, 6000
# Fewer edges between nodes of known class are not conclusive.
_ENOUGH_EDGES = 10
# For homophilic graphs: smooth over neighbours.
_SMOOTHING: dict[str, dict[str, Any]] = {
    "PlainGNN": {"conv": "GCN", "num_layers": 2},
    "GraphCON": {"conv": "GCN", "num_layers": 8},
    # In two layers, one rate per node stays near 1, which was best for shallow networks on Cora.
    "GradientGating": {
        "conv": "SAGE",
        "num_layers": 2,
        "shared": False,
        "p": 1.0,
        "single_rate": True,
    },
}
# With damping a GraphCON smooths as time goes on, whatever the step. More layers therefore take
# smaller steps to the same time. Validation accuracy on Cora, one seed:
#     layers      1           2           4           8       16          32
#     dt          0.5   0.9   0.7   0.9   0.5   0.9   0.5     0.25  0.5   0.125  0.5
#     accuracy    59    76    76    79    78    80    80      81    77    79     62
# At 1 it would be the plain network. On other graphs, whose GraphCON has a residual term, dt = 1 is
# about as good in up to four layers. Smallest validation loss, mean of three seeds:
#     layers                    4           16          32
#     dt                        1     0.9   1     0.25  1     0.125
#     Texas                     0.42  0.39  0.87  0.37  1.15  0.40
#     Wisconsin                 0.90  0.81  1.26  0.75  1.22  0.72
_TIME, _LARGEST_STEP = 4.0, 0.9
# For a GradientGating with more layers, one rate per node would oversmooth.
_SHALLOW = 2
_GATED: dict[str, Any] = {"conv": "GCN", "p": 1.0}
# For other graphs: separate weights for a node's own features.
_SEPARATING: dict[str, dict[str, Any]] = {
    "PlainGNN": {"conv": "SAGE", "num_layers": 1},
    # Without the residual term, dt = 1 would be the plain network. dt = 0.5 validates equally well
    # on Wisconsin and worse on Texas, and learns less if edges join different classes.
    "GraphCON": {"conv": "GCN", "num_layers": 1, "residual": "v2"},
    "GradientGating": {
        "conv": "SAGE",
        "num_layers": 2,
        # With a larger p the gate may never open; then only the largest class is learned.
        "p": 1.0,
        "separate_gate": True,
        "aggr": "mean",
        "neighbours": "out",
    },
}

# Sum over layers of a new gate's mean rate: this much per layer, within limits. On Cora validation
# accuracy falls for smaller and larger sums.
_RATE, _FEWEST_RATES, _MOST_RATES = 0.3, 1.0, 6.0
# If every layer has its own convolution, a wider gate mixes features with more random weights, and
# the network hardly learns. Smallest validation loss on 800 nodes in four rings, 16 layers, GCN:
#     sum              0.6   1.0   1.6   2.4   3.6   5.2
#     own convolutions 1.22  1.19  1.03  1.04  1.39  1.41
#     sum              0.7   1.3   2.4   4.3   6.5
#     one convolution  1.28  1.26  0.95  0.89  0.97
_UNSHARED_RATE, _MOST_UNSHARED_RATES = 0.5, 2.0
_GATE_SCALES = tuple(2.0**power for power in range(-6, 7))

# The authors' settings for Cora and Citeseer; other options have their defaults.
_TEXTBOOK: dict[str, dict[str, Any]] = {
    "GCN": {"lr": 0.01, "weight_decay": 5e-4, "decay_output": False},
    "GAT": {"lr": 5e-3, "weight_decay": 5e-4},
}
for _fields in _TEXTBOOK.values():
    _fields |= {"epochs": 200, "select": "loss"}


def graph_settings(
    model: str, task: Task, given: Mapping[str, Any] = MappingProxyType({})
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Choose fields of the run and options of the model for a task on graphs.

    A single graph is trained for 200 steps. If it has fewer training nodes than features, weight
    decay and dropout are strong. Mostly-zero features, such as words, are scaled to equal size at
    every node. If edges join nodes of the same class more often than chance, layers smooth over
    neighbours; so they do if the values of a regression are correlated over edges. This uses
    training and validation nodes only. Otherwise a node's own features get separate weights. A
    ``GraphCON`` with more layers takes smaller steps to the same time. A smoothing
    ``GradientGating`` with more than two layers gets a ``gate_scale``. It makes the mean rates of
    the new layers sum to 0.3 times their number, within 1 and 6, so that the gate starts neither
    closed nor fully open. With a convolution for each layer the sum is 2, or 1.5 for three layers.
    Choices fit fixed options: a ``GraphCON`` without GCN gets the residual term "plain" instead of
    "v2". Tasks of many graphs get small batches and one cycle of the learning rate. GCN and GAT get
    the settings of their authors.

    Args:
        model: Canonical name of a graph model. Models of other packages get only options that every
            graph network takes.
        task: A task on graphs; its data are read.
        given: Fixed options of the model.

    Returns:
        Fields of `Run`, options of the model, and the reason in one sentence.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from anharmonic.data.graphs.own import GraphFileTask
        >>> path, ring = tempfile.mkdtemp() + "/ring.npz", np.arange(40)
        >>> edges = np.stack([ring, np.roll(ring, 1)])
        >>> np.savez(path, x=np.eye(40), edge_index=edges, y=ring // 20)
        >>> fields, options, why = graph_settings("GraphCON", GraphFileTask(path))
        >>> fields["epochs"], options["dt"], why.split(" (")[1]
        (200, 0.5, '24) than features, edges join nodes of one class')
    """
    train, valid, _ = task.splits()
    if not isinstance(train, NodeDataset):
        return _many_graphs(model, task)
    x = train.batch.x
    few = len(train) < x.shape[1]
    mostly_zero = float((x != 0).float().mean()) <= 0.5
    if model in _TEXTBOOK:
        scaled = {"scale_rows": True} if mostly_zero else {}
        return dict(_TEXTBOOK[model]), scaled, f"{model} with the settings of its authors."
    fields: dict[str, Any] = {"epochs": 200, "select": "loss"}
    fields |= {"lr": 2e-3, "weight_decay": 3e-2} if few else {"lr": 5e-3, "weight_decay": 5e-4}
    parts = [train.batch] if valid is None else [train.batch, valid.batch]
    measure = {"class": _homophily, "value": _correlation}.get(task.target)
    alike = measure(parts) if measure else None
    smooth = alike is None or alike >= _ALIKE
    options: dict[str, Any] = {"hidden_size": HIDDEN_SIZE}
    gated = model == "GradientGating" and smooth and given.get("num_layers", 0) > _SHALLOW
    options |= _GATED if gated else (_SMOOTHING if smooth else _SEPARATING).get(model, {})
    _fit_convolution(options, given)
    if model == "GraphCON":
        layers = max(1, given.get("num_layers", options["num_layers"]))
        if smooth or layers > _TIME:
            options["dt"] = min(_LARGEST_STEP, _TIME / layers)
    # PlainGNN has dropout after every layer, including the last.
    options["dropout" if model == "PlainGNN" else "output_dropout"] = 0.5 if few else 0.2
    if few:
        options["input_dropout"] = 0.5
        if smooth:
            options["encoder_activation"] = "identity"
    if mostly_zero:
        options["scale_rows"] = True
    if gated and "gate_scale" not in given:
        options["gate_scale"] = _gate_scale(task, train.batch, options | dict(given))
    size = (
        f"fewer training nodes ({len(train)}) than"
        if few
        else f"at least as many training nodes ({len(train)}) as"
    )
    seldom = "" if smooth else "seldom "
    what = "nothing known of edges and targets"
    if alike is not None and task.target == "class":
        what = f"edges {seldom}join nodes of one class (homophily {alike:.2f}, 0 is chance)"
    elif alike is not None:
        what = f"edges {seldom}join nodes of like values (correlation {alike:.2f})"
    how = "smooth over neighbours" if smooth else "keep a node's own features apart"
    return fields, options, f"{size} features, {what}: layers {how}."


def _fit_convolution(options: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Make the chosen convolution and residual term fit the fixed options."""
    if "conv" in options and given.get("group_mean"):
        options["conv"] = "GAT"
    elif "conv" in options and given.get("residual") in ("v1", "v2"):
        options["conv"] = "GCN"
    if options.get("residual") == "v2" and (options | dict(given))["conv"] != "GCN":
        options["residual"] = "plain"


def _many_graphs(model: str, task: Task) -> tuple[dict[str, Any], dict[str, Any], str]:
    count = task.sizes["train"]
    epochs = max(20, min(200, round(_STEPS / max(1, count / _GRAPHS))))
    fields = {"lr": 5e-3, "schedule": "one_cycle", "clip_norm": 1.0}
    fields |= {"epochs": epochs, "batch_size": _GRAPHS}
    options = {"dt": 0.5} if model == "GraphCON" else {}
    return fields, options, f"{count} training graphs: {_GRAPHS} a step, one cycle of the rate."


def _gate_scale(task: Task, batch: GraphBatch, options: dict[str, Any]) -> float:
    """Return the power of two that opens a new network's gate suitably; uses no labels."""
    layers = options["num_layers"]
    total = min(max(_RATE * layers, _FEWEST_RATES), _MOST_RATES)
    if not options.get("shared", True):
        total = min(_UNSHARED_RATE * layers, _MOST_UNSHARED_RATES)

    # In evaluation a new batch norm does nothing; a layer norm shows the later magnitude.
    norm = {"norm": "layer"} if options.get("norm") == "batch" else {}

    def off(scale: float) -> float:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            network = GradientGatingNetwork(
                task.input_size, task.output_size, **(options | norm | {"gate_scale": scale})
            )
        rates = sum(float(tau.mean()) for tau in gate_rates(network, batch.x, batch.graph))
        return abs(math.log(max(rates, 1e-9) / total))

    return min(_GATE_SCALES, key=off)


def _homophily(parts: list[GraphBatch]) -> float | None:
    """Return how much more often than chance edges join known nodes of one class; at most 1.

    (share of such edges - c) / (1 - c), where c is the share for random pairs with the class
    frequencies at the ends of these edges. None if there are too few such edges.
    """
    source, target = _ends(parts)
    if len(source) < _ENOUGH_EDGES:
        return None
    ends = torch.bincount(torch.cat([source, target])).double()
    chance = float((ends / ends.sum()).square().sum())
    same = float((source == target).double().mean())
    return (same - chance) / (1 - chance) if chance < 1 else None


def _correlation(parts: list[GraphBatch]) -> float | None:
    """Return the correlation of the known values at both ends of edges, the mean over outputs.

    Newman's assortativity; 0 is chance. None if there are too few such edges.
    """
    source, target = (values.double() for values in _ends(parts))
    if len(source) < _ENOUGH_EDGES:
        return None
    ends = torch.cat([source, target])
    mean, variance = ends.mean(0), ends.var(0, correction=0)
    varies = variance > 0
    together = ((source - mean) * (target - mean)).mean(0)[varies] / variance[varies]
    return float(together.mean()) if len(together) else None


def _ends(parts: list[GraphBatch]) -> tuple[Tensor, Tensor]:
    """Return the targets at both ends of every edge between different nodes of known target."""
    graph, y = parts[0].graph, parts[0].y
    targets, known = y.new_zeros((graph.num_nodes, *y.shape[1:])), torch.zeros(graph.num_nodes) > 0
    for part in parts:
        targets[part.rows], known[part.rows] = part.y, True
    source, target = graph.edge_index
    kept = known[source] & known[target] & (source != target)
    return targets[source[kept]], targets[target[kept]]
