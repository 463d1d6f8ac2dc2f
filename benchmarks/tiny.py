"""The best classifier of movements in 566 bytes of weights, as exported C.

    python benchmarks/tiny.py train --out RUNS [--models LEM,GRU]    # finished runs are kept
    python benchmarks/tiny.py measure --out RUNS [--update]

The task `watch-imu` (seven exercises from 2.56 seconds of a watch; six people train, two validate,
two test) has its data in ANHARMONIC_DATA. Every model has the largest width whose int8 weights fit,
readout included: all constants that training decides in model.c. Each gets the same care: eight
settings drawn at random, the best by the validation's macro-F1, then five seeds of it, each with
the weights of its best epoch on the validation set. Resonators have eight draws of pools and five
banks, with int8 and with floating-point weights. `measure` exports what is trained, takes the
macro-F1 of the C programs' arithmetic on the test set, and with avr-gcc and simavr their flash, RAM
and cycles a step. Writes tiny.json beside this file; --update also puts the table into
devices.md.
"""

from __future__ import annotations

import argparse
import bisect
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import f1_score

import anharmonic as ah
from anharmonic.data import make_task
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.estimators import ResonatorClassifier
from anharmonic.export import write_c
from export_targets import Here, Sources, avr

HERE = Path(__file__).parent
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
    return 100 * float(f1_score(y.numpy(), np.asarray(scores).argmax(1), average="macro"))


def train(name: str, drawn: dict[str, Any], seed: int, data: Any) -> tuple[ah.SequenceModel, float]:
    """A model with the weights of its best epoch, and its macro-F1 on the validation set."""
    splits, mean, std = data
    (x, y), (vx, vy) = (
        (((part.x - torch.tensor(mean)) / torch.tensor(std)).float(), part.y)
        for part in (splits.train, splits.valid)
    )
    torch.manual_seed(seed)
    model = make(name, drawn)
    steps = EPOCHS * -(-len(x) // BATCH)
    optimizer = torch.optim.Adam(model.parameters(), drawn["lr"])
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, drawn["lr"], total_steps=steps)
    best, kept = -1.0, model.state_dict()
    for _ in range(EPOCHS):
        model.train()
        for rows in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            found = macro_f1(vy, model(vx))
        if found > best:
            best, kept = found, {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(kept)
    return model, best


def train_all(out: Path, names: list[str]) -> None:
    data = standardised()
    for name in names:
        scores = []
        for trial in range(TRIALS):
            path = out / f"{name}-trial{trial}.json"
            if not path.exists():
                drawn = settings(name, trial)
                _, found = train(name, drawn, 100, data)
                path.write_text(json.dumps({**drawn, "valid": found}))
                print(name, trial, path.read_text(), flush=True)
            scores.append(json.loads(path.read_text())["valid"])
        chosen = settings(name, int(np.argmax(scores)))
        for seed in range(SEEDS):
            path = out / f"{name}-seed{seed}.pt"
            if not path.exists():
                model, found = train(name, chosen, seed, data)
                torch.save({"drawn": chosen, "valid": found, "weights": model.state_dict()}, path)
                print(name, "seed", seed, found, flush=True)


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


def costs(sources: Sources, program: Here, x: np.ndarray) -> dict[str, Any]:
    """Checks a program, and says what it takes."""
    sources.check()
    found = avr(sources, program.samples(x[:1]))
    there = {"avr_flash": found["size"], "avr_cycles": found["speed"]} if found else {}
    return {"bytes": weight_bytes(sources.folder), "ram": sources.state(), **there}


def fits(
    name: str, layers: int, width: int, calibration: list[np.ndarray], how: Preprocessing
) -> bool:
    options = {"num_layers": layers} if layers > 1 else {}
    model = ah.SequenceModel(name, 6, 7, hidden_size=width, **options)
    with tempfile.TemporaryDirectory() as here:
        write_c(model, here, preparation=how, weights="int8", calibration=calibration)
        return weight_bytes(Path(here)) <= BUDGET


def measure_network(name: str, out: Path, data: Any) -> dict[str, Any]:
    splits, mean, std = data
    how = Preprocessing(tuple(mean), tuple(std), True, "error")
    calibration = list(splits.train.x[::8].numpy())
    for layers, width in WIDTHS[name].items():
        found = [fits(name, layers, width + more, calibration[:8], how) for more in (0, 1)]
        if found != [True, False]:
            raise RuntimeError(f"{name}: {width} is not the largest width that fits")
    exact, whole, row = [], [], {"model": name, "weights": "int8"}
    for seed in range(SEEDS):
        kept = torch.load(out / f"{name}-seed{seed}.pt")
        model = make(name, kept["drawn"]).requires_grad_(False).eval()
        model.load_state_dict(kept["weights"])
        x, y = splits.test.x, splits.test.y
        scaled = (x - torch.tensor(mean)) / torch.tensor(std)
        exact.append(macro_f1(y, model(scaled.float())))
        with tempfile.TemporaryDirectory() as place:
            here = Path(place)
            write_c(model, here, preparation=how, weights="int8", calibration=calibration)
            sources = Sources(here, "int8", 6, 7)
            program = Here(sources)
            whole.append(macro_f1(y, np.stack([program(one) for one in x.numpy()])))
            if seed == 0:
                row |= {"setting": kept["drawn"], **costs(sources, program, x.numpy())}
        row.setdefault("valid", []).append(kept["valid"])
    return row | {"torch": exact, "test": whole}


def measure_resonators(data: Any) -> dict[str, Any]:
    splits, _, _ = data
    parts = [
        (part.x.numpy().transpose(0, 2, 1), part.y)
        for part in (splits.train, splits.valid, splits.test)
    ]

    def fits(size: int, pools: tuple[str, ...], seed: int) -> bool:
        # The oscillators, and so the bytes, are the same for any data of this length.
        few = slice(None, None, len(parts[0][0]) // 100)
        model = ResonatorClassifier(
            size, num_biases=1, pools=pools, alphas=[1.0], random_state=seed
        )
        model.fit(parts[0][0][few], parts[0][1].numpy()[few])
        with tempfile.TemporaryDirectory() as here:
            write_c(model, here)
            return weight_bytes(Path(here)) <= BUDGET

    def fitted(pools: tuple[str, ...], seed: int) -> ResonatorClassifier:
        size = bisect.bisect_left(range(1, 25), True, key=lambda size: not fits(size, pools, seed))
        model = ResonatorClassifier(size, num_biases=1, pools=pools, random_state=seed)
        return model.fit(parts[0][0], parts[0][1].numpy())

    def score(model: ResonatorClassifier, part: int) -> float:
        return macro_f1(parts[part][1], model.decision_function(parts[part][0]))

    choices = [("rms",), ("largest",), ("share",), ("excess",), ("run",), ("rms", "end"),
               ("rms", "largest"), ("rms", "share")]  # fmt: skip
    pools = max(choices, key=lambda choice: score(fitted(choice, 100), 1))
    row: dict[str, Any] = {"model": "resonators", "weights": "float", "setting": {"pools": pools}}
    row |= {"valid": [], "torch": [], "test": []}
    x, y = splits.test.x.numpy(), splits.test.y
    for seed in range(SEEDS):
        model = fitted(pools, seed)
        row["valid"].append(score(model, 1))
        row["torch"].append(score(model, 2))
        with tempfile.TemporaryDirectory() as place:
            write_c(model, place)
            sources = Sources(Path(place), "float", 6, 7)
            program = Here(sources)
            row["test"].append(macro_f1(y, np.stack([program(one) for one in x])))
            if seed == 0:
                row |= costs(sources, program, x)
                row["setting"]["num_oscillators"] = model.num_oscillators
    return row


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| model | settings | weights, bytes | macro-F1, mean | worst seed | of PyTorch"
        " | flash, AVR | state | cycles a step |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for r in sorted(rows, key=lambda r: -np.mean(r["test"])):
        said = ", ".join(
            f"{k} {' and '.join(v) if isinstance(v, (list, tuple)) else v}"
            for k, v in r["setting"].items()
        )
        lines.append(
            f"| {r['model']}, {r['weights']} | {said} | {r['bytes']} | {np.mean(r['test']):.1f} "
            f"| {min(r['test']):.1f} | {np.mean(r['torch']):.1f} | {r.get('avr_flash', '–'):,} "
            f"| {r['ram']:,} | {r.get('avr_cycles', '–'):,} |"
        )
    return "\n".join(lines)


def measure(out: Path, update: bool) -> None:
    data, rows = standardised(), []
    for name in WIDTHS:
        if (out / f"{name}-seed{SEEDS - 1}.pt").exists():
            rows.append(measure_network(name, out, data))
            print(rows[-1], flush=True)
    rows.append(measure_resonators(data))
    print(rows[-1], flush=True)
    (HERE / "tiny.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))
    if update:
        page = HERE / "devices.md"
        before, rest = page.read_text().split("<!-- tiny -->\n")
        after = rest.split("<!-- /tiny -->")[1]
        page.write_text(f"{before}<!-- tiny -->\n{table(rows)}\n<!-- /tiny -->{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["train", "measure"])
    parser.add_argument("--out", type=Path, default=Path("runs/tiny"))
    parser.add_argument("--models", default=",".join(WIDTHS))
    parser.add_argument("--update", action="store_true")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.what == "train":
        train_all(chosen.out, chosen.models.split(","))
    else:
        measure(chosen.out, chosen.update)


if __name__ == "__main__":
    main()
