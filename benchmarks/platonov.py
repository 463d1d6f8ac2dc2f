"""Tuned classics beside GraphCON and gradient gating, on graphs whose neighbours are unlike.

    python benchmarks/platonov.py [--sets NAME ...] [--models NAME ...] [--trials 6]

trains on four sets of Platonov et al. (2023), which need the package anharmonic-papers and
``ANHARMONIC_DATA``. Every model has the same search: ``--trials`` random settings on split 0, in
which layers, rate, dropout, norm and residual term are drawn from the same values, then the setting
of best validation on all ten splits. In each training the step of best validation counts. The
metric is accuracy or, of two classes, the area under the ROC curve, in percent.

Each training is a line of ``results/platonov.jsonl``, and stored trainings are skipped, so that the
same command continues after an interrupt. Prints the table of ``docs/graphs.md``.
"""

from __future__ import annotations

import argparse
import itertools
import json
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
from harness.results import Result, markdown_table, read, spread, store

SPLITS, WIDTH, CHECK_EVERY = 10, 64, 10
STEPS = {
    "chameleon-filtered": 100, "squirrel-filtered": 100, "minesweeper": 150, "tolokers": 60,
}  # fmt: skip
"""Training steps on each set, each on the whole graph."""
PUBLISHED = {
    "chameleon-filtered": 46.3, "squirrel-filtered": 45.0, "minesweeper": 97.9, "tolokers": 85.4,
}  # fmt: skip
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
        self,
        input_size: int,
        output_size: int,
        *,
        hidden_size: int,
        num_layers: int,
        dropout: float,
        norm: str | None,
        residual: str | None,
    ) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(input_size, hidden_size), nn.ReLU())
        self.mix = Mix(num_layers, hidden_size)
        norms = {None: nn.Identity, "layer": nn.LayerNorm, "batch": nn.BatchNorm1d}
        self.norm, self.dropout = norms[norm](hidden_size), nn.Dropout(dropout)
        self.residual = residual is not None
        width = hidden_size * (2 if self.residual else 1)
        hidden = nn.Sequential(nn.Linear(width, hidden_size), nn.ReLU(), self.dropout)
        self.decoder = nn.Sequential(*hidden, nn.Linear(hidden_size, output_size))

    def forward(self, x: Tensor, graph: Adjacency) -> Tensor:
        """The scores of every node."""
        x = self.dropout(self.encoder(x))
        found = self.norm(self.mix(x, graph))
        return self.decoder(torch.cat([found, x], 1) if self.residual else found)


MODELS: dict[str, tuple[str | type[nn.Module], dict[str, list[Any]]]] = {
    "GCN": ("PlainGNN", {"conv": ["GCN"]}),
    "SAGE": ("PlainGNN", {"conv": ["SAGE"]}),
    "GraphCON": (
        "GraphCON",
        {
            "conv": ["GCN", "SAGE"],
            "shared": [False],
            "dt": [0.2, 0.5, 1.0],
            "frequency": [0.1, 1.0],
            "damping": [0.1, 1.0],
        },
    ),
    "G²": (
        "GradientGating",
        {
            "conv": ["GCN", "SAGE"],
            "shared": [False],
            "p": [1.0, 2.0],
            "aggr": ["mean", "sum"],
            "separate_gate": [False, True],
        },
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


def train(name: str, model: str, options: dict[str, Any], split: int) -> Result:
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
    for step in range(1, STEPS[name] + 1):
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


def run(name: str, model: str, trials: int) -> None:
    """Train what is missing of a cell of the table."""
    stored = {line["case"]: line for line in read("platonov")}

    def line(part: str, number: int, options: dict[str, Any], split: int) -> Result:
        case = f"{name}, {model}, {part} {number}"
        if case in stored:
            return stored[case]
        key = {"case": case, "set": name, "model": model, "part": part, "number": number}
        found = key | {"options": options} | train(name, model, options, split)
        store("platonov", found)
        print(json.dumps(found), flush=True)
        return found

    found = [line("search", trial, setting(model, trial), 0) for trial in range(trials)]
    best = max(found, key=lambda one: one["valid"])["options"]
    for split in range(SPLITS):
        line("test", split, best, split)


def table(found: list[Result]) -> str:
    """Mean and standard deviation of the test scores over splits, of sets that are finished."""
    heads = ["GraphSAGE" if model == "SAGE" else model for model in MODELS]
    rows = [["graph", *heads, "tuned classic, reported"]]
    for name in STEPS:
        by_model: dict[str, list[float]] = {model: [] for model in MODELS}
        for line in found:
            if (line["set"], line["part"]) == (name, "test"):
                by_model[line["model"]].append(line["test"])
        cells = [spread(of) if len(of) == SPLITS else "-" for of in by_model.values()]
        if any(cell != "-" for cell in cells):
            rows.append([name, *cells, f"{PUBLISHED[name]}"])
    return markdown_table(rows)


def main() -> None:
    """Train what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--trials", type=int, default=6, help="settings of each search")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name, model in itertools.product(given.sets, given.models):
        run(name, model, given.trials)
    print(table(read("platonov")))


if __name__ == "__main__":
    main()
