"""Figures of the thesis (T) and the papers on the effect of training on weights and scales.

The runs are those of the tables on a smaller budget, which the picture states. They run and resume
like all other runs.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from anharmonic import train
from anharmonic._checks import require
from anharmonic.data import make_task
from anharmonic.diagnostics import effective_steps, gates, scale_histogram
from anharmonic.nn import from_pretrained
from anharmonic.train import Run, RunEnvironment, read_diagnostics
from anharmonic_papers.figures.base import Curves, Figure
from anharmonic_papers.tables import table
from anharmonic_papers.tables.budget import Budget, shrink, steps_per_epoch


def _run(name: str, row: str) -> Run:
    """Return the run of a table's row."""
    run = table(name).row(row).run
    assert run is not None
    return run


def _small(name: str, row: str, **budget: Any) -> Run:
    """Return a row's run on a smaller budget."""
    return replace(shrink(_run(name, row), Budget(**budget)), select="last")


def _log(run: Run, environment: RunEnvironment) -> list[dict[str, Any]]:
    """Return the log of the weights during a run; train the run if the log is missing."""
    environment = replace(environment, diagnose=("weights",))
    train.fit(run, environment)
    path = train.run_folder(run, environment) / train.DIAGNOSTICS
    log = read_diagnostics(path)
    advice = f"remove the run's line from {environment.results_path} and start again"
    require(bool(log), str(path), log, "what was measured in training", advice, FileNotFoundError)
    return log


def _words(run: Run) -> str:
    steps = run.epochs * steps_per_epoch(run)
    return f"{run.task}, {steps:,} steps of {run.batch_size}"


_PIXELS = {"epochs": 20, "length": 196, "train_size": 2400, "eval_size": 50}
_CIFAR = {"length": 200, "eval_size": 50, "form": "jpeg"}
_ASSUMPTION: dict[str, tuple[str, str, dict[str, Any]]] = {
    "adding, T = 500": (
        "cornn-adding", "t-500-cornn", {"epochs": 20, "train_size": 1000, "eval_size": 50},
    ),
    "sMNIST": ("cornn-smnist", "cornn-128", _PIXELS),
    "psMNIST": ("cornn-psmnist", "cornn-128", _PIXELS),
    "noise-padded CIFAR-10": (
        "cornn-ncifar", "cornn", _CIFAR | {"epochs": 20, "train_size": 2000},
    ),
}  # fmt: skip
"""The table, its row to train and the smaller budget of each panel, by the panel's name."""


def _small_runs() -> dict[str, Run]:
    """Return the runs on a smaller budget, by the figure or the panel."""
    runs = {panel: _small(name, row, **less) for panel, (name, row, less) in _ASSUMPTION.items()}
    steps = {"epochs": 40, "length": 49, "train_size": 6400, "eval_size": 200}
    digits = {"epochs": 10, "length": 196, "train_size": 10000, "eval_size": 1000}
    norms = _CIFAR | {"epochs": 40, "train_size": 1500}
    constant = {
        "steps": _small("unicornn-psmnist", "unicornn-256", **steps),
        "digits": _small("lem-smnist", "lem-published-code", **digits),
    }
    runs |= {name: replace(run, lr_drop_epoch=None) for name, run in constant.items()}
    return runs | {"norms": _small("unicornn-ncifar", "unicornn-published-code", **norms)}


def _assumption(runs: Mapping[str, Run], environment: RunEnvironment) -> Curves:
    values: dict[str, list[float]] = {}
    places: dict[str, list[float]] = {}
    for task, run in runs.items():
        log, each = _log(run, environment), steps_per_epoch(run)
        steps = [float(entry["epoch"] * each) for entry in log]
        dt = log[0]["weights"]["dt"]
        sides = {
            "η": [max(entry["weights"]["eta"]) for entry in log],
            "dt^r, r = 1/2": [math.sqrt(dt)] * len(log),
            "dt^r, r = 1": [dt] * len(log),
        }
        for name, side in sides.items():
            values[f"{task}: {name}"], places[f"{task}: {name}"] = side, steps
    return Curves(values, places, "; ".join(_words(run) for run in runs.values()))


def _trained(run: Run, environment: RunEnvironment) -> Any:
    """Return the model of a run; train it if it is missing."""
    train.fit(run, environment)
    return from_pretrained(train.run_folder(run, environment) / train.BEST)


def _effective_steps(run: Run, environment: RunEnvironment) -> Curves:
    steps = effective_steps(_trained(run, environment)).sort(dim=1).values
    values = {f"layer {k + 1}": row.tolist() for k, row in enumerate(steps)}
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        start = 0.19 * torch.sigmoid(torch.empty(steps.shape[1]).uniform_(-0.1, 0.1))
    values["every layer before training"] = start.sort().values.tolist()
    return Curves(values, budget=_words(run))


def _norms(run: Run, environment: RunEnvironment) -> Curves:
    log = _log(run, environment)
    epochs = [float(entry["epoch"]) for entry in log]
    names = [f"layer {k + 1}" for k in range(3)]
    values = {n: [entry["weights"]["norms"][k] for entry in log] for k, n in enumerate(names)}
    return Curves(values, dict.fromkeys(names, epochs), _words(run))


def _gate_shares(run: Run, environment: RunEnvironment) -> Curves:
    """Return a histogram of the gate values of a trained LEM over the first test sequences."""
    model = _trained(run, environment)
    x = make_task(run.task, run.task_options, environment.data_dir).loaders(0, 128).test[0].x
    found, dt = gates(model, x.transpose(0, 1)), run.model_options["dt"]
    values, places = {}, {}
    for name, gate in (("gate of z, a", found["a"]), ("gate of y, e", found["e"])):
        counted = scale_histogram(gate.clamp(1e-3, dt), bins=40, low=1e-3, high=dt)
        values[name] = [count / gate.numel() for count in counted.counts]
        places[name] = list(counted.centres)
    return Curves(values, places, _words(run))


of_gates = partial(Figure, x="gate dt σ̂", y="share of all steps and neurons", log="xy", low=1e-4)
FIGURES = (
    Figure(
        id="cornn-weight-assumption",
        title="coRNN's weight assumption (2.16) while training",
        source="thesis section 2.3, unnumbered figure, middle panel; coRNN paper Figure 3",
        x="optimiser step",
        y="η and its bound",
        outcomes={
            f"{task}: {side}": text
            for task in _ASSUMPTION
            for side, text in (
                ("η", "grows slightly over 50,000 steps and stays under the bound"),
                ("dt^r, r = 1/2", "-"),
            )
        },
        measure=lambda environment: _assumption(
            {panel: _small_runs()[panel] for panel in _ASSUMPTION}, environment
        ),
        marks=(0, 100, 400),
        note=(
            "η = max(dt(1 + ‖W‖∞), dt‖𝒲‖∞)/(1 + dt), which the theory wants below dt^r for an r "
            "from 1/2 to 1. The tuned settings of the tables; 128 units."
        ),
        panels={
            task: [f"{task}: {side}" for side in ("η", "dt^r, r = 1/2", "dt^r, r = 1")]
            for task in _ASSUMPTION
        },
        log="y",
    ),
    Figure(
        id="unicornn-effective-timesteps",
        title="Learned steps of UnICORNN on psMNIST",
        source="thesis Figure 3.5; UnICORNN paper Figure 5",
        x="neuron, sorted",
        y="effective step dt σ̂(c)",
        outcomes=dict.fromkeys(
            [f"layer {k}" for k in (1, 2, 3)],
            "wide spread within and between layers, the smallest 28 times below dt",
        ),
        measure=lambda environment: _effective_steps(_small_runs()["steps"], environment),
        marks=(0, 64, 128, 192, 255),
        note=(
            "3 layers of 256 neurons, dt = 0.19, α = 30.65; images pooled to 49 pixels, learning "
            "rate without a drop. The paper trains 2600 epochs on 784 pixels."
        ),
    ),
    of_gates(
        id="lem-fhn-scale-histogram",
        title="Gates of LEM on FitzHugh-Nagumo",
        source="thesis Figure 5.4; LEM paper Figure 4",
        outcomes=dict.fromkeys(
            ["gate of z, a", "gate of y, e"], "concentrated around 1 and around τ = 0.02"
        ),
        measure=lambda environment: _gate_shares(
            _run("lem-fitzhugh-nagumo", "lem-dt-2"), environment
        ),
        marks=(0.005, 0.02, 0.1, 0.5, 1),
        note=(
            "16 units, dt = 2, over the first 128 test trajectories; 40 bins of equal width on the "
            "log axis from 1e-3 to 2, smaller gates in the first."
        ),
    ),
    of_gates(
        id="lem-smnist-scale-histogram",
        title="Gates of LEM on sequential MNIST",
        source="thesis Figure 5.7; LEM paper Figure 7",
        outcomes=dict.fromkeys(
            ["gate of z, a", "gate of y, e"], "a range of scales, power-law decay"
        ),
        measure=lambda environment: _gate_shares(_small_runs()["digits"], environment),
        marks=(0.005, 0.02, 0.05, 0.1, 0.2),
        note=(
            "128 units, dt = 0.21, over the first 128 test images; images pooled to 196 pixels. 40 "
            "bins of equal width on the log axis from 1e-3 to dt, smaller gates in the first."
        ),
    ),
    Figure(
        id="unicornn-weight-norms",
        title="Largest weight of UnICORNN's layers while training",
        source="thesis, figure after 3.6; UnICORNN paper Figure 7",
        x="epoch",
        y="largest entry of |w|",
        outcomes=dict.fromkeys(
            [f"layer {k}" for k in (1, 2, 3)],
            "no explosion; saturates, mostly because the learning rate drops after half the epochs",
        ),
        measure=lambda environment: _norms(_small_runs()["norms"], environment),
        marks=(0, 10, 20, 30, 40),
        note=(
            "Noise-padded CIFAR-10 (JPEG images), sequences of 200; 3 layers of 128 neurons; the "
            "learning rate drops to a tenth after half the epochs."
        ),
    ),
)
