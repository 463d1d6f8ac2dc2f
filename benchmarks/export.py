"""Size, agreement and speed of exported models, for each model, program and target.

    python benchmarks/export.py [--out RUNS] [--update]

Trains one model of each kind on scikit-learn's digits, which come pixel by pixel (finished runs are
taken as they are), and exports it to ONNX, torch.export and C in double, float, int16 and int8. The
C also runs on a simulated ATmega1284P, an emulated Cortex-M4 and in WebAssembly, where the tools
for that are there (Debian: gcc-avr, avr-libc, simavr; gcc-arm-none-eabi, libnewlib-arm-none-eabi,
qemu-system-arm; emscripten, nodejs). Times on this machine are CPU seconds, medians of turns.
Writes export.json beside this file; --update also puts the table into devices.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

import anharmonic as ah
from anharmonic.data import make_task
from anharmonic.diagnostics.machine import hardware
from anharmonic.estimators import ResonatorClassifier
from anharmonic.export import write_c, write_onnx, write_torch
from anharmonic.export.resonators import resonator_outputs, resonator_plan
from anharmonic.train import Run, RunEnvironment, fit, run_folder, trained
from export_targets import TARGETS, Here, Sources, values

HERE = Path(__file__).parent
MODELS: dict[str, dict[str, Any]] = {
    "CoRNN": {"dt": 0.2},
    "UnICORNN": {"num_layers": 2, "dt": 0.5},
    "LEM": {},
    "FastGRNN": {},
    "LSTM": {},
    "GRU": {},
}
# What ONNX and torch.export take, and whether it runs as an operator of the C library.
EXPORTED = {"CoRNN": True, "UnICORNN": True, "LEM": True, "FastGRNN": False}
PROGRAMS = {"C, double": "float", "C, float": "float", "C, int16": "int16", "C, int8": "int8"}
ON_CHIPS, STEPS, BATCH, TURNS = 3, 4_000, 32, 9
Row = dict[str, Any]
Call = Callable[[], object]


def medians(calls: dict[Any, Call]) -> dict[Any, float]:
    """CPU nanoseconds a step of each call of STEPS steps, measured in turns."""
    found: dict[Any, list[float]] = {key: [] for key in calls}
    for call in calls.values():
        call()
    for _ in range(TURNS):
        for key, call in calls.items():
            began = time.process_time()
            call()
            found[key].append((time.process_time() - began) / STEPS * 1e9)
    return {key: statistics.median(times) for key, times in found.items()}


class Frameworks:
    """A model as PyTorch runs it, and as its exported files do."""

    def __init__(self, model: ah.SequenceModel, folder: Path, name: str) -> None:
        self.sizes = {"PyTorch": sum(4 * p.numel() for p in model.parameters())}
        with torch.no_grad():
            self._state = model(torch.zeros(1, 1, model.input_size), return_state=True)[1]
        self.calls: dict[str, Callable[[torch.Tensor], Any]] = {"PyTorch": model}
        if name not in EXPORTED:
            return
        programs = {"torch.export": False} if EXPORTED[name] else {}
        for label, portable in (programs | {"torch.export, portable": True}).items():
            path = write_torch(model, folder / f"{label}.pt2", portable=portable)
            program = torch.export.load(path).module()
            self.sizes[label] = path.stat().st_size
            self.calls[label] = lambda x, p=program: p(x, *self._start(len(x)))[0]
        path = write_onnx(model, folder / "model.onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(path), options)
        names = [given.name for given in session.get_inputs()]
        self.sizes["ONNX"] = path.stat().st_size

        def run(x: torch.Tensor) -> torch.Tensor:
            given = [value.numpy() for value in (x, *self._start(len(x)))]
            return torch.from_numpy(session.run(None, dict(zip(names, given, strict=True)))[0])

        self.calls["ONNX"] = run

    def _start(self, batch: int) -> list[torch.Tensor]:
        return [part.new_zeros(part.shape[0], batch, part.shape[2]) for part in self._state]


def in_double(model: ah.SequenceModel) -> ah.SequenceModel:
    """The same weights in float64, with its constants as they were given."""
    copy = type(model)(**model.config(), dtype=torch.float64)
    copy.load_state_dict(model.state_dict())
    return copy.eval()


def of_network(name: str, out: Path, x: torch.Tensor, y: np.ndarray, calibration: list[Any]):
    """All rows of one network."""
    options = {"hidden_size": 16, **MODELS[name]}
    run = Run(task="digits", model=name, model_options=options, epochs=15, lr=0.01)
    environment = RunEnvironment(out=out, progress=False)
    fit(run, environment)
    folder = run_folder(run, environment)
    with tempfile.TemporaryDirectory() as place, torch.no_grad():
        found = Frameworks(trained(folder).model, Path(place), name)
        exact = in_double(trained(folder).model)(x.double()).numpy()
        rows = []
        calls: dict[Any, Call] = {}
        longer = x.reshape(-1, x.shape[2])[:STEPS]
        for label, call in found.calls.items():
            rows.append(row(name, label, call(x).double().numpy(), exact, y))
            rows[-1]["targets"] = {"x86-64": {"size": found.sizes[label]}}
            for batch in (1, BATCH):
                given = longer.reshape(batch, -1, x.shape[2])
                calls[label, batch] = lambda c=call, g=given: c(g)
        more = in_c(name, folder, list(PROGRAMS), x, y, exact, calls, calibration)
        timed(rows + more, medians(calls))
    return rows + more


def of_resonators(data: Any, x: torch.Tensor, y: np.ndarray) -> list[Row]:
    """All rows of resonators."""
    series = data.x.numpy().transpose(0, 2, 1)
    # No thresholds: a response at one counts as above it or not, which is no error.
    model = ResonatorClassifier(32, pools=("rms",), alphas=[1.0], random_state=0)
    model.fit(series, data.y.numpy())
    described, samples = resonator_plan(model), x.numpy()
    exact = np.stack([resonator_outputs(described, one) for one in samples])
    single = np.stack([resonator_outputs(described, one, torch.float32) for one in samples])
    rows = [row("resonators", "PyTorch", single, exact, y)]
    rows[0]["targets"] = {}
    calls: dict[Any, Call] = {}
    programs = [program for program, weights in PROGRAMS.items() if weights == "float"]
    more = in_c("resonators", model, programs, x, y, exact, calls, [])
    timed(more, medians(calls))
    return rows + more


def row(name: str, program: str, outputs: np.ndarray, exact: np.ndarray, y: np.ndarray) -> Row:
    """Agreement of one program with PyTorch in float64."""
    return {
        "model": name,
        "program": program,
        "error": float(np.abs(outputs - exact).max()),
        "accuracy": float((outputs.argmax(1) == y).mean() * 100),
    }


def in_c(
    name: str,
    model: Any,
    programs: list[str],
    x: torch.Tensor,
    y: np.ndarray,
    exact: np.ndarray,
    calls: dict[Any, Call],
    calibration: list[Any],
) -> list[Row]:
    """The rows of programs in C; what is to be timed goes into calls."""
    rows, images = [], x.numpy()
    for label in programs:
        weights, double = PROGRAMS[label], label == "C, double"
        here = Path(tempfile.mkdtemp())
        write_c(model, here, weights=weights, calibration=calibration)
        sources = Sources(here, weights, images.shape[2], exact.shape[1], double)
        sources.check()
        program = Here(sources)
        rows.append(row(name, label, np.stack([program(one) for one in images]), exact, y))
        flags = ("-std=c99", *sources.flags)
        rows[-1]["state"] = sources.state()
        rows[-1]["targets"] = targets = {"x86-64": {"size": sources.flash("gcc", "size", *flags)}}
        long = program.samples(images.reshape(-1, images.shape[2])[:STEPS])
        calls[label, 1] = lambda p=program, g=long: p.raw(g)
        if double:
            continue
        few = program.samples(images[:ON_CHIPS])
        raw = np.stack([program.raw(one) for one in few])
        for target, measured in TARGETS.items():
            found = measured(sources, few)
            if found:
                there = found.pop("raw")
                found["apart"] = float(np.abs(values(sources, there) - values(sources, raw)).max())
                targets[target] = found
        print(rows[-1], flush=True)
    return rows


def timed(rows: list[Row], times: dict[Any, float]) -> None:
    """Puts times into rows."""
    for one in rows:
        for batch, key in ((1, "speed"), (BATCH, "batch")):
            if (one["program"], batch) in times:
                one["targets"]["x86-64"][key] = times[one["program"], batch]


def measure(out: Path) -> list[Row]:
    torch.set_num_threads(1)
    splits = make_task("digits").splits()
    x, y = splits.test.x.contiguous().float(), splits.test.y.numpy()
    calibration = list(splits.train.x[:256].numpy())
    rows = [found for name in MODELS for found in of_network(name, out, x, y, calibration)]
    return rows + of_resonators(splits.train, x, y)


def table(rows: list[Row]) -> str:
    """The rows as Markdown."""
    units = {"x86-64": "ns", "AVR": "cycles", "Cortex-M4": "instructions", "WebAssembly": "ns"}
    lines = [
        "| model | program | largest error | accuracy | state | "
        + " | ".join(f"{target}: bytes; {unit}" for target, unit in units.items())
        + " |",
        "| --- | --- | ---: | ---: | ---: |" + " ---: |" * len(units),
    ]
    for one in rows:
        cells = []
        for target in units:
            found = one["targets"].get(target)
            cell = "–"
            if found:
                cell = f"{found['size']:,}; {found['speed']:,.0f}"
                if "batch" in found:
                    cell += f" ({found['batch']:,.0f})"
            cells.append(cell)
        lines.append(
            f"| {one['model']} | {one['program']} | {one['error']:.1e} | {one['accuracy']:.1f} "
            f"| {one.get('state', '–')} | {' | '.join(cells)} |"
        )
    return "\n".join([*lines, "", apart(rows)])


def apart(rows: list[Row]) -> str:
    """How far the targets are from each other, and where this was."""
    whole, most = [], {target: 0.0 for target in TARGETS}
    for one in rows:
        for target, found in one["targets"].items():
            if "apart" not in found:
                continue
            if "int" in one["program"]:
                whole.append(found["apart"])
            else:
                most[target] = max(most[target], found["apart"])
    said = ", ".join(f"{value:.0e} ({target})" for target, value in most.items())
    agree = "the same to the bit" if not any(whole) else "NOT the same"
    return (
        f"On {ON_CHIPS} images each, scores in whole numbers are {agree} on all targets; in float "
        f"they are apart by at most {said}. {hardware('cpu')}; torch {torch.__version__}, "
        f"onnxruntime {onnxruntime.__version__}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--update", action="store_true")
    chosen = parser.parse_args()
    rows = measure(chosen.out)
    (HERE / "export.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))
    if chosen.update:
        page = HERE / "devices.md"
        before, rest = page.read_text().split("<!-- export -->\n")
        after = rest.split("<!-- /export -->")[1]
        page.write_text(f"{before}<!-- export -->\n{table(rows)}\n<!-- /export -->{after}")


if __name__ == "__main__":
    main()
