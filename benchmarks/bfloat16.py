r"""Products in bfloat16 on a CPU: speed, errors, and the accuracy of what is trained.

python benchmarks/bfloat16.py --json benchmarks/bfloat16.json --readme benchmarks/README.md

Needs a processor with AVX512-BF16. Digits are scikit-learn's, pixel by pixel, every fifth image for
the test; GunPointAgeSpan with its official split is read from ``ucr/`` in ANHARMONIC_DATA.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import anharmonic as ah
from anharmonic import diagnostics
from harness import isolated, speed_report
from harness.cases import LSTM
from harness.speed import no_garbage_collection

MODELS = ("CoRNN", "LEM", "UnICORNN")
PRECISIONS = ("float32", "bfloat16")
PARTS = ("speed", "errors", "training")
LEAST_STEPS = 1000
"""Steps of training, whatever the number of epochs; a quick run has one epoch."""
# Numbers of each model for series of the two sets, and of the LSTM beside them.
SETTINGS: dict[str, dict[str, Any]] = {
    "CoRNN": {"dt": 0.1, "frequency": 2.0, "damping": 1.0},
    "LEM": {},
    "UnICORNN": {"num_layers": 2, "dt": 0.2},
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = speed_report.parser(__doc__, "bfloat16")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--repeats", type=int, default=15, help="turns of which the median is taken"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--from-json", type=Path, help="numbers measured before")
    options = parser.parse_args(argv)
    if options.from_json is not None:
        result = json.loads(options.from_json.read_text("utf-8"))
    else:
        result = measure(options)
    speed_report.write(options, result, report(result))
    return 0


def measure(options: Any) -> dict[str, Any]:
    """Return the numbers of the parts asked for, beside those of the file ``--json`` names."""
    result: dict[str, Any] = {}
    if options.json is not None and options.json.exists():
        result = json.loads(options.json.read_text("utf-8"))
    result["machine"] = diagnostics.cpu()
    result["versions"] = diagnostics.versions(["torch"])
    sizes = {"batch": 2, "hidden": 8, "steps": 20} if options.quick else {}
    for part in options.parts:
        print(part, file=sys.stderr, flush=True)
        if part == "speed":
            repeats = 1 if options.quick else options.repeats
            result[part] = [
                isolated.run(part, "bfloat16:speeds", threads=n, repeats=repeats, **sizes)
                for n in options.threads
            ]
        elif part == "errors":
            result[part] = {model: errors(model, **sizes) for model in MODELS}
        else:
            epochs, seeds = (1, 2) if options.quick else (options.epochs, options.seeds)
            result[part] = {
                name: {model: accuracies(model, data, seeds, epochs) for model in MODELS}
                for name, data in data_sets().items()
            }
    return result


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
    taken: dict[str, list[float]] = {name: [] for name in turns}
    with no_garbage_collection():
        for number in range(repeats + 1):
            for name, turn in turns.items():
                start = time.perf_counter()
                turn()
                if number:  # the first turn warms up
                    taken[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in taken.items()}
    return {"threads": threads, "seconds": medians}


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
        print(model, precision, found[precision], file=sys.stderr, flush=True)
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
    optimizer = torch.optim.Adam(network.parameters(), 0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=epochs * batches)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        return 100 * float((network(x_test).argmax(1) == y_test).double().mean())


# ---- tables --------------------------------------------------------------------------------------
def report(result: dict[str, Any]) -> str:
    """Return the tables of the parts that were measured."""
    return "\n\n".join([*_tables(result), speed_report.about(result)])


def _tables(result: dict[str, Any]) -> Iterator[str]:
    with contextlib.suppress(KeyError):
        counts = [one["threads"] for one in result["speed"]]
        threads = [speed_report.plural(count, "thread") for count in counts]
        heads = ["B 32, H 128, T 1,000", *threads, *(f"{LSTM} / it, {text}" for text in threads)]
        rows = [heads]
        for name in result["speed"][0]["seconds"]:
            seconds = [one["seconds"][name] for one in result["speed"]]
            ratios = [one["seconds"][LSTM] / one["seconds"][name] for one in result["speed"]]
            times = map(speed_report.duration, seconds)
            rows.append([name, *times, *(f"{ratio:.1f}" for ratio in ratios)])
        yield speed_report.markdown_table(rows)
    with contextlib.suppress(KeyError):
        rows = [["relative error against float64", *PRECISIONS]]
        for model, found in result["errors"].items():
            for k, what in enumerate(("output", "worst weight gradient")):
                rows.append([f"{model}, {what}", *(f"{found[p][k]:.0e}" for p in PRECISIONS)])
        yield speed_report.markdown_table(rows)
    with contextlib.suppress(KeyError):
        rows = [["accuracy on the test part, %", *PRECISIONS]]
        for name, models in result["training"].items():
            for model, found in models.items():
                cells = (
                    f"{statistics.mean(found[p]):.1f} ± {statistics.stdev(found[p]):.1f}"
                    for p in PRECISIONS
                )
                rows.append([f"{name}, {model}", *cells])
        yield speed_report.markdown_table(rows)


if __name__ == "__main__":
    raise SystemExit(main())
