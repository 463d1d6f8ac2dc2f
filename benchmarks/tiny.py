"""The best classifier of movements in 566 bytes of weights, as exported C.

The task ``watch-imu`` (seven exercises from 2.56 seconds of a watch; six people train, two
validate, two test) has its data in ANHARMONIC_DATA. Every model has the largest width whose int8
weights fit, readout included: all constants that training decides in model.c. Each gets the same
care: eight settings drawn at random, the best by the validation's macro-F1, then five seeds of it,
each with the weights of its best epoch on the validation set. Resonators have eight draws of pools
and five banks, in floating point. Scores are the macro-F1 of the C programs' arithmetic on the test
set; flash, RAM and cycles a step need avr-gcc and simavr.
"""

from __future__ import annotations

import bisect
import functools
import re
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import anharmonic as ah
from anharmonic.data import make_task
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.estimators import ResonatorClassifier
from anharmonic.export import write_c
from harness.results import Result, markdown_table
from harness.targets import Here, Sources, avr
from harness.training import descent

PACKAGES = ("torch",)
PAGES = {"tiny": ("benchmarks/devices.md",)}
BUDGET, TRIALS, SEEDS, EPOCHS, BATCH = 566, 8, 5, 40, 128
# Widths: the largest that fit, which `measure` checks.
WIDTHS = {
    "FastGRNN": {1: 15},
    "GRU": {1: 8},
    "LSTM": {1: 7},
    "CoRNN": {1: 12},
    "UnICORNN": {1: 27, 2: 13},
    "LEM": {1: 7},
}
# What is drawn, besides the learning rate and the readout.
SPACES: dict[str, dict[str, list[Any]]] = {
    "FastGRNN": {},
    "GRU": {},
    "LSTM": {},
    "CoRNN": {
        "dt": [0.05, 0.1, 0.2, 0.4],
        "frequency": [0.3, 1.0, 3.0],
        "damping": [1.0, 3.0, 6.0],
    },
    "UnICORNN": {"num_layers": [1, 2], "dt": [0.1, 0.3, 0.6, 1.0], "frequency": [0.1, 1.0, 5.0]},
    "LEM": {"dt": [0.2, 0.5, 1.0]},
}  # fmt: skip
RATES, READOUTS = [0.003, 0.01, 0.03], ["last", "mean"]


def cases(options: Namespace) -> dict[str, Callable[[], Result]]:
    epochs = 1 if options.quick else EPOCHS
    found: dict[str, Callable[[], Result]] = {
        name: functools.partial(of_network, name, epochs) for name in WIDTHS
    }
    return found | {"resonators": of_resonators}


@functools.cache
def standardised() -> tuple[Any, np.ndarray, np.ndarray]:
    """The splits, and the mean and deviation of the training set's channels."""
    splits = make_task("watch-imu").splits()
    x = splits.train.x.double()
    return splits, x.mean((0, 1)).numpy(), x.std((0, 1)).numpy()


def settings(name: str, trial: int) -> dict[str, Any]:
    """What one trial takes."""
    rng = np.random.default_rng([trial, *name.encode()])
    drawn = {
        key: values[rng.integers(len(values))]
        for key, values in {"lr": RATES, "readout": READOUTS, **SPACES[name]}.items()
    }
    drawn["hidden_size"] = WIDTHS[name][drawn.get("num_layers", 1)]
    return drawn


def make(name: str, drawn: dict[str, Any]) -> ah.SequenceModel:
    options = {key: value for key, value in drawn.items() if key != "lr"}
    return ah.SequenceModel(name, 6, 7, **options)


def macro_f1(y: torch.Tensor, scores: Any) -> float:
    from sklearn.metrics import f1_score

    return 100 * float(f1_score(y.numpy(), np.asarray(scores).argmax(1), average="macro"))


def train(
    name: str, drawn: dict[str, Any], seed: int, epochs: int
) -> tuple[ah.SequenceModel, float]:
    """A model with the weights of its best epoch, and its macro-F1 on the validation set."""
    splits, mean, std = standardised()
    (x, y), (vx, vy) = (
        (((part.x - torch.tensor(mean)) / torch.tensor(std)).float(), part.y)
        for part in (splits.train, splits.valid)
    )
    torch.manual_seed(seed)
    model = make(name, drawn)
    steps = epochs * -(-len(x) // BATCH)
    descend = descent(model, drawn["lr"], steps)
    best, kept = -1.0, model.state_dict()
    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(len(x)).split(BATCH):
            descend(torch.nn.functional.cross_entropy(model(x[rows]), y[rows]))
        model.eval()
        with torch.no_grad():
            found = macro_f1(vy, model(vx))
        if found > best:
            best, kept = found, {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(kept)
    return model, best


def weight_bytes(folder: Path) -> int:
    """Bytes of all constants of model.c that training decided, but for the scaling of samples."""
    sizes = {"int8_t": 1, "short": 2, "int16_t": 2, "int32_t": 4, "model_real": 4}
    arrays = re.findall(r"const MODEL_FLASH (\w+) (\w+)\[(\d+)\]", (folder / "model.c").read_text())
    # Formats of whole numbers, which a compiler turns into code where there is one layer.
    formats = r"\w+_[sm]|target(_[yz])?"
    skipped = re.compile(rf"tanh_table|mean|scale|mean_rest|{formats}")
    return sum(
        sizes[kind] * int(n)
        for kind, name, n in arrays
        if kind in sizes and not skipped.fullmatch(name)
    )


def fits(model: Any, **how: Any) -> bool:
    """Whether the weights of a model's program are within the budget."""
    with tempfile.TemporaryDirectory() as here:
        write_c(model, here, **how)
        return weight_bytes(Path(here)) <= BUDGET


def measure(row: Result, model: Any, **how: Any) -> None:
    """Add the score of a model's program to a row, and what the first of them takes."""
    test = standardised()[0].test
    x = test.x.numpy()
    with tempfile.TemporaryDirectory() as place:
        write_c(model, place, **how)
        sources = Sources(Path(place), row["weights"], 6, 7)
        program = Here(sources)
        row["test"].append(macro_f1(test.y, np.stack([program(one) for one in x])))
        if len(row["test"]) > 1:
            return
        sources.check()
        row |= {"bytes": weight_bytes(sources.folder), "ram": sources.state()}
        if found := avr(sources, program.samples(x[:1])):
            row |= {"avr_flash": found["size"], "avr_cycles": found["speed"]}


def of_network(name: str, epochs: int) -> Result:
    splits, mean, std = standardised()
    how = Preprocessing(tuple(mean), tuple(std), True, "error")
    calibration = list(splits.train.x[::8].numpy())
    exported = {"preparation": how, "weights": "int8", "calibration": calibration}
    for layers, width in WIDTHS[name].items():
        options = {"num_layers": layers} if layers > 1 else {}
        wide = (ah.SequenceModel(name, 6, 7, hidden_size=width + n, **options) for n in (0, 1))
        few = exported | {"calibration": calibration[:8]}
        if [fits(model, **few) for model in wide] != [True, False]:
            raise RuntimeError(f"{name}: {width} is not the largest width that fits")
    trials = [settings(name, trial) for trial in range(TRIALS)]
    drawn = max(trials, key=lambda one: train(name, one, 100, epochs)[1])
    row: Result = {"weights": "int8", "setting": drawn, "valid": [], "torch": [], "test": []}
    scaled = ((splits.test.x - torch.tensor(mean)) / torch.tensor(std)).float()
    for seed in range(SEEDS):
        model, valid = train(name, drawn, seed, epochs)
        model.requires_grad_(False).eval()
        row["valid"].append(valid)
        row["torch"].append(macro_f1(splits.test.y, model(scaled)))
        measure(row, model, **exported)
    return row


def of_resonators() -> Result:
    splits, _, _ = standardised()
    parts = [
        (part.x.numpy().transpose(0, 2, 1), part.y)
        for part in (splits.train, splits.valid, splits.test)
    ]

    def is_large(size: int, pools: tuple[str, ...], seed: int) -> bool:
        # The oscillators, and so the bytes, are the same for any data of this length.
        few = slice(None, None, len(parts[0][0]) // 100)
        model = ResonatorClassifier(
            size, num_biases=1, pools=pools, alphas=[1.0], random_state=seed
        )
        return not fits(model.fit(parts[0][0][few], parts[0][1].numpy()[few]))

    def fitted(pools: tuple[str, ...], seed: int) -> ResonatorClassifier:
        size = bisect.bisect_left(range(1, 25), True, key=lambda n: is_large(n, pools, seed))
        model = ResonatorClassifier(size, num_biases=1, pools=pools, random_state=seed)
        return model.fit(parts[0][0], parts[0][1].numpy())

    def score(model: ResonatorClassifier, part: int) -> float:
        return macro_f1(parts[part][1], model.decision_function(parts[part][0]))

    choices = [("rms",), ("largest",), ("share",), ("excess",), ("run",), ("rms", "end"),
               ("rms", "largest"), ("rms", "share")]  # fmt: skip
    pools = max(choices, key=lambda choice: score(fitted(choice, 100), 1))
    row: Result = {"weights": "float", "setting": {"pools": pools}}
    row |= {"valid": [], "torch": [], "test": []}
    for seed in range(SEEDS):
        model = fitted(pools, seed)
        row["valid"].append(score(model, 1))
        row["torch"].append(score(model, 2))
        measure(row, model)
        row["setting"].setdefault("num_oscillators", model.num_oscillators)
    return row


def tables(results: list[Result]) -> dict[str, str]:
    heads = ["model and weights", "settings", "weights, bytes"]
    heads += ["macro-F1 in C, mean of seeds", "macro-F1 in C, worst seed"]
    heads += ["macro-F1 in PyTorch, mean of seeds", "flash on AVR, bytes"]
    rows = [[*heads, "state on x86-64, bytes", "AVR cycles per step"]]
    for one in sorted(results, key=lambda one: -np.mean(one["test"])):
        said = ", ".join(
            f"{key} {' and '.join(value) if isinstance(value, list | tuple) else value}"
            for key, value in one["setting"].items()
        )
        scores = (np.mean(one["test"]), min(one["test"]), np.mean(one["torch"]))
        sizes = (one.get(key, "–") for key in ("avr_flash", "ram", "avr_cycles"))
        rows.append(
            [
                f"{one['case']}, {one['weights']}",
                said,
                str(one["bytes"]),
                *(f"{score:.1f}" for score in scores),
                *(f"{size:,}" if isinstance(size, int) else size for size in sizes),
            ]
        )
    return {"tiny": markdown_table(rows, left=2)}
