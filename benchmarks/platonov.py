"""Tuned classics beside GraphCON and gradient gating, on graphs whose neighbours are unlike.

    python benchmarks/bench.py platonov --missing

The four sets of Platonov et al. (2023) need the package anharmonic-papers and ``ANHARMONIC_DATA``.
Every model has the same search: six random settings on split 0, in which layers, rate, dropout,
norm and residual term are drawn from the same values, then the setting of best validation on all
ten splits. In each training the step of best validation counts. The metric is accuracy or, of two
classes, the area under the ROC curve, in percent.
"""

import random
import time
from typing import Any

import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn import functional

from anharmonic.data import make_task
from anharmonic.nn import model_class
from anharmonic.ops import Adjacency
from graph_transfer import Mix
from harness.results import Cases, Options, Result, grouped, markdown_table, read, spread

PACKAGES = ("torch_geometric",)
TRIALS, SPLITS, WIDTH, CHECK_EVERY = 6, 10, 64, 10
STEPS = {"chameleon-filtered": 100, "squirrel-filtered": 100, "minesweeper": 150, "tolokers": 60}
"""Training steps on each set, each on the whole graph."""
PUBLISHED = (46.3, 45.0, 97.9, 85.4)
"""What tuned classics reach with more steps and trials: Luo et al. (2024), Platonov et al."""
SHARED: dict[str, list[Any]] = {
    "lr": [3e-3, 1e-2],
    "num_layers": [2, 4, 8],
    "dropout": [0.2, 0.5],
    "norm": [None, "layer", "batch"],
    "residual": [None, "plain"],
}


class Waves(nn.Module):
    """An encoder, a learned sum of the layers of a wave, a decoder."""

    def __init__(
        self, inputs, outputs, *, hidden_size, num_layers, dropout, norm, residual
    ) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, hidden_size), nn.ReLU())
        self.mix = Mix(num_layers, hidden_size)
        norms = {None: nn.Identity, "layer": nn.LayerNorm, "batch": nn.BatchNorm1d}
        self.norm, self.dropout = norms[norm](hidden_size), nn.Dropout(dropout)
        self.residual = residual is not None
        width = hidden_size * (2 if self.residual else 1)
        hidden = nn.Sequential(nn.Linear(width, hidden_size), nn.ReLU(), self.dropout)
        self.decoder = nn.Sequential(*hidden, nn.Linear(hidden_size, outputs))

    def forward(self, x: Tensor, graph: Adjacency) -> Tensor:
        x = self.dropout(self.encoder(x))
        found = self.norm(self.mix(x, graph))
        return self.decoder(torch.cat([found, x], 1) if self.residual else found)


OWN: dict[str, Any] = {"conv": ["GCN", "SAGE"], "shared": [False]}
MODELS: dict[str, tuple[str | type[nn.Module], dict[str, list[Any]]]] = {
    "GCN": ("PlainGNN", {"conv": ["GCN"]}),
    "SAGE": ("PlainGNN", {"conv": ["SAGE"]}),
    "GraphCON": (
        "GraphCON",
        {**OWN, "dt": [0.2, 0.5, 1.0], "frequency": [0.1, 1.0], "damping": [0.1, 1.0]},
    ),
    "G²": (
        "GradientGating",
        {**OWN, "p": [1.0, 2.0], "aggr": ["mean", "sum"], "separate_gate": [False, True]},
    ),
    "waves": (Waves, {}),
}
"""The class of each model, and what is drawn besides; a list of one is fixed."""


def setting(model: str, trial: int) -> dict[str, Any]:
    """The options of a trial; what all models share is the same for each."""
    common, own = random.Random(trial), random.Random(f"{model} {trial}")
    drawn = {name: common.choice(values) for name, values in SHARED.items()}
    return drawn | {name: own.choice(values) for name, values in MODELS[model][1].items()}


def score(output: Tensor, y: Tensor) -> float:
    """Accuracy or, of two classes, the area under the ROC curve, in percent."""
    if output.shape[1] == 2:
        return 100 * float(roc_auc_score(y, output[:, 1] - output[:, 0]))
    return 100 * float((output.argmax(1) == y).double().mean())


def train(name: str, model: str, options: dict[str, Any], split: int, steps: int) -> Result:
    """Validation and test score of one training, and its processor time."""
    start = time.process_time()
    directed = {"undirected": True} if "filtered" in name else {}
    task = make_task(name, {"split": split} | directed)
    train, *judged = (part.batch for part in task.splits())
    torch.manual_seed(split)
    kind, rest = MODELS[model][0], {k: v for k, v in options.items() if k != "lr"}
    network = (model_class(kind) if isinstance(kind, str) else kind)(
        task.input_size, task.output_size, hidden_size=WIDTH, **rest
    )
    optimiser = torch.optim.Adam(network.parameters(), options["lr"])
    best = (-1.0, -1.0, 0)
    for step in range(1, steps + 1):
        network.train()
        optimiser.zero_grad()
        output = network(train.x, train.graph)
        functional.cross_entropy(output[train.rows], train.y).backward()
        optimiser.step()
        if step % CHECK_EVERY == 0:
            network.eval()
            with torch.no_grad():
                output = network(train.x, train.graph)
            if not bool(output.isfinite().all()):
                break
            found = (score(output[part.rows], part.y) for part in judged)
            best = max(best, (*found, step), key=lambda one: one[0])
    seconds = round(time.process_time() - start, 1)
    return dict(zip(("valid", "test", "step"), best, strict=True)) | {"seconds": seconds}


def measure(name: str, model: str, part: str, number: int, steps: int) -> Result:
    """A trial of the search, or a split with the best setting that is stored."""
    key = {"set": name, "model": model, "part": part, "number": number}
    if part == "search":
        options, split = setting(model, number), 0
    else:
        searched = grouped(read("platonov"), "set", "model", "part")[name, model, "search"]
        options, split = max(searched, key=lambda one: one["valid"])["options"], number
    return key | {"options": options} | train(name, model, options, split, steps)


def cases(options: Options) -> Cases:
    torch.set_num_threads(1)
    steps = dict.fromkeys(STEPS, CHECK_EVERY) if options.quick else STEPS
    return {
        f"{name}, {model}, {part} {number}": (measure, name, model, part, number, steps[name])
        for name in STEPS
        for model in MODELS
        for part, numbers in (("search", range(TRIALS)), ("test", range(SPLITS)))
        for number in numbers
    }


def tables(results: list[Result]) -> dict[str, str]:
    """Mean and standard deviation of the test scores over splits, of sets that are finished."""
    heads = ["GraphSAGE" if model == "SAGE" else model for model in MODELS]
    rows = [["graph", *heads, "tuned classic, reported"]]
    tests = grouped([one for one in results if one["part"] == "test"], "set", "model")
    for name, published in zip(STEPS, PUBLISHED, strict=True):
        found = [[one["test"] for one in tests.get((name, model), [])] for model in MODELS]
        cells = [spread(scores) if len(scores) == SPLITS else "-" for scores in found]
        if any(cell != "-" for cell in cells):
            rows.append([name, *cells, str(published)])
    return {"platonov": markdown_table(rows)}
