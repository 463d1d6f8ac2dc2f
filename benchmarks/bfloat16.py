"""Products in bfloat16 on a CPU: speed, errors, and the accuracy of what is trained.

Needs a processor with AVX512-BF16. Digits are scikit-learn's, pixel by pixel, every fifth image for
the test; GunPointAgeSpan with its official split is read from ``ucr/`` in ANHARMONIC_DATA.
"""

from __future__ import annotations

import functools
import os
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import anharmonic as ah
from harness import isolated
from harness.results import Result, caption, duration, markdown_table, plural, spread
from harness.speed import LSTM, medians
from harness.training import descent

PACKAGES = ("torch",)
PAGES = {"bfloat16": ("benchmarks/README.md",)}
MODELS = ("CoRNN", "LEM", "UnICORNN")
PRECISIONS = ("float32", "bfloat16")
LEAST_STEPS = 1000
"""Steps of training, whatever the number of epochs; a quick run has one epoch."""
# Numbers of each model for series of the two sets.
SETTINGS: dict[str, dict[str, Any]] = {
    "CoRNN": {"dt": 0.1, "frequency": 2.0, "damping": 1.0},
    "LEM": {},
    "UnICORNN": {"num_layers": 2, "dt": 0.2},
}


def cases(options: Namespace) -> dict[str, Callable[[], Result]]:
    sizes = {"batch": 2, "hidden": 8, "steps": 20} if options.quick else {}
    repeats, seeds, epochs = (1, 2, 1) if options.quick else (15, 3, 40)
    found: dict[str, Callable[[], Result]] = {}
    for threads in (1, 2):
        found[f"speed, {plural(threads, 'thread')}"] = functools.partial(
            isolated.run, "bfloat16:speeds", threads=threads, repeats=repeats, **sizes
        )
    for model in MODELS:
        found[f"errors, {model}"] = functools.partial(errors, model, **sizes)
    for name, data in data_sets().items():
        for model in MODELS:
            found[f"training, {name}, {model}"] = functools.partial(
                accuracies, model, data, seeds, epochs
            )
    return found


# ---- speed and errors ----------------------------------------------------------------------------
def speeds(
    threads: int, repeats: int, batch: int = 32, hidden: int = 128, steps: int = 1000
) -> dict[str, Any]:
    """Return the median seconds of a training step of all, which take turns in this process."""
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    x = torch.randn(steps, batch, 1)
    lstm = nn.LSTM(1, hidden)
    turns = {LSTM: step_of(lstm, x), f"{LSTM}, autocast": step_of(lstm, x, autocast=True)}
    for model in MODELS:
        layer = getattr(ah, model)(1, hidden)
        for precision in PRECISIONS:
            turns[f"{model}, {precision}"] = step_of(layer, x, precision)
    return {"seconds": medians(turns, repeats)}


def step_of(
    layer: nn.Module, x: Tensor, precision: str = "float32", autocast: bool = False
) -> Callable[[], None]:
    """Return a training step as a function: forward, loss on the last output, backward."""

    def step() -> None:
        layer.zero_grad()
        with ah.use_precision(precision), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = layer(x)[0][-1].sum()
        loss.backward()

    return step


def errors(
    model: str, batch: int = 32, hidden: int = 128, steps: int = 1000
) -> dict[str, list[float]]:
    """Return how far output and gradients are from those in float64, by precision.

    The loss is the sum of the last output, as in ``speeds``.

    Returns:
        The relative distance of the output, and the largest one of all weight gradients.
    """
    torch.manual_seed(0)
    layer = getattr(ah, model)(1, hidden)
    exact = getattr(ah, model)(1, hidden).double()
    exact.load_state_dict(layer.state_dict())
    x = torch.randn(steps, batch, 1)
    expected = results(exact, x.double())
    found = {}
    for precision in PRECISIONS:
        with ah.use_precision(precision):
            distances = [
                float((a.double() - b).norm() / b.norm())
                for a, b in zip(results(layer, x), expected, strict=True)
            ]
        found[precision] = [distances[0], max(distances[1:])]
    return found


def results(layer: nn.Module, x: Tensor) -> list[Tensor]:
    """Return the output and the gradients of all parameters."""
    layer.zero_grad()
    output, _ = layer(x)
    output[-1].sum().backward()
    return [output.detach(), *(p.grad for p in layer.parameters() if p.grad is not None)]


# ---- training ------------------------------------------------------------------------------------
def data_sets() -> dict[str, tuple[Tensor, ...]]:
    """Return training and test parts: x [B, T, 1], y, x, y."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    is_test = np.arange(len(y)) % 5 == 4
    sets = {"digits": (x[~is_test], y[~is_test], x[is_test], y[is_test])}
    file = Path(os.environ.get("ANHARMONIC_DATA", "")) / "ucr" / "GunPointAgeSpan.npz"
    if file.is_file():
        with np.load(file) as arrays:
            names = ("x_train", "y_train", "x_test", "y_test")
            sets["GunPointAgeSpan"] = tuple(arrays[name] for name in names)
    else:
        print(f"no {file}: GunPointAgeSpan is left out", file=sys.stderr)
    prepared = {}
    for name, (x_train, y_train, x_test, y_test) in sets.items():
        mean, std = x_train.mean(), x_train.std()
        xs = [torch.tensor((x - mean) / std).float()[..., None] for x in (x_train, x_test)]
        labels = {label: k for k, label in enumerate(np.unique(y_train))}
        ys = [torch.tensor([labels[label] for label in y]) for y in (y_train, y_test)]
        prepared[name] = (xs[0], ys[0], xs[1], ys[1])
    return prepared


def accuracies(
    model: str, data: tuple[Tensor, ...], seeds: int, epochs: int
) -> dict[str, list[float]]:
    """Return the accuracy on the test part in percent after the last epoch, seed by seed."""
    found = {}
    for precision in PRECISIONS:
        with ah.use_precision(precision):
            found[precision] = [train(model, data, seed, epochs) for seed in range(seeds)]
    return found


def train(model: str, data: tuple[Tensor, ...], seed: int, epochs: int) -> float:
    """Train a classifier with Adam and one cycle of the learning rate; return its accuracy."""
    x, y, x_test, y_test = data
    torch.manual_seed(seed)
    network = ah.SequenceModel(
        model, 1, int(y.max()) + 1, hidden_size=64, readout="mean", **SETTINGS[model]
    )
    batches = -(-len(x) // 32)
    epochs = epochs if epochs == 1 else max(epochs, LEAST_STEPS // batches)
    step = descent(network, 0.01, epochs * batches)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(32):
            step(nn.functional.cross_entropy(network(x[rows]), y[rows]))
    with torch.no_grad():
        return 100 * float((network(x_test).argmax(1) == y_test).double().mean())


# ---- tables --------------------------------------------------------------------------------------
def tables(results: list[Result]) -> dict[str, str]:
    parts: dict[str, list[Result]] = {"speed": [], "errors": [], "training": []}
    for one in results:
        parts[one["case"].partition(", ")[0]].append(one)
    found = []
    if parts["speed"]:
        counts = [one["case"].partition(", ")[2] for one in parts["speed"]]
        rows = [["layer", *counts, *(f"time of {LSTM} / this, {text}" for text in counts)]]
        for name in parts["speed"][0]["seconds"]:
            seconds = [one["seconds"][name] for one in parts["speed"]]
            ratios = [one["seconds"][LSTM] / one["seconds"][name] for one in parts["speed"]]
            rows.append([name, *map(duration, seconds), *(f"{ratio:.1f}" for ratio in ratios)])
        found.append(markdown_table(rows))
    rows = [["relative error, smaller is better", *PRECISIONS]]
    for one in parts["errors"]:
        model = one["case"].rpartition(", ")[2]
        for k, what in enumerate(("output", "worst weight gradient")):
            rows.append([f"{model}, {what}", *(f"{one[p][k]:.0e}" for p in PRECISIONS)])
    found.append(markdown_table(rows))
    rows = [["test accuracy in percent", *PRECISIONS]]
    for one in parts["training"]:
        name = one["case"].partition(", ")[2]
        rows.append([name, *(spread(one[p]) for p in PRECISIONS)])
    found.append(markdown_table(rows))
    return {"bfloat16": "\n\n".join([*found, caption(results)])}
