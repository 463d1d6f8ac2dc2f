"""Size, agreement and speed of exported models, for each model, program and target.

Trains one model of each kind on scikit-learn's digits, which come pixel by pixel, and exports it to
ONNX, torch.export and C in double, float, int16 and int8. The C also runs on a simulated
ATmega1284P, an emulated Cortex-M4 and in WebAssembly, where the tools for that are installed
(Debian: gcc-avr, avr-libc, simavr; gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm;
emscripten, nodejs). Times on this machine are CPU seconds, medians of turns.
"""

from __future__ import annotations

import functools
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import anharmonic as ah
from anharmonic.data import make_task
from anharmonic.estimators import ResonatorClassifier
from anharmonic.export import write_c, write_onnx, write_torch
from anharmonic.export.resonators import resonator_outputs, resonator_plan
from anharmonic.train import Run, RunEnvironment, fit, run_folder, trained
from harness.results import Result, caption, markdown_table
from harness.speed import medians
from harness.targets import TARGETS, Here, Sources, values

PACKAGES = ("torch", "onnxruntime")
PAGES = {"export": ("benchmarks/devices.md",)}
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
UNITS = {"x86-64": "ns", "AVR": "cycles", "Cortex-M4": "instructions", "WebAssembly": "ns"}
ON_CHIPS, STEPS, BATCH, REPEATS = 3, 4_000, 32, 9
Row = dict[str, Any]
Call = Callable[[], object]


def cases(options: Namespace) -> dict[str, Callable[[], Result]]:
    torch.set_num_threads(1)
    found: dict[str, Callable[[], Result]] = {
        name: functools.partial(of_network, name, 1 if options.quick else 15) for name in MODELS
    }
    return found | {"resonators": of_resonators}


@functools.cache
def digits() -> tuple[Any, torch.Tensor, np.ndarray]:
    """The training set, and test images and classes."""
    splits = make_task("digits").splits()
    return splits.train, splits.test.x.contiguous().float(), splits.test.y.numpy()


def of_network(name: str, epochs: int) -> Result:
    """All programs of one network."""
    data, x, y = digits()
    options = {"hidden_size": 16, **MODELS[name]}
    run = Run(task="digits", model=name, model_options=options, epochs=epochs, lr=0.01)
    with tempfile.TemporaryDirectory() as place, torch.no_grad():
        environment = RunEnvironment(out=Path(place), progress=False)
        with torch.enable_grad():
            fit(run, environment)
        folder = run_folder(run, environment)
        found = Frameworks(trained(folder).model, Path(place), name)
        exact = in_double(trained(folder).model)(x.double()).numpy()
        rows = []
        calls: dict[Any, Call] = {}
        longer = x.reshape(-1, x.shape[2])[:STEPS]
        for label, call in found.calls.items():
            rows.append(row(label, call(x).double().numpy(), exact, y))
            rows[-1]["targets"] = {"x86-64": {"size": found.sizes[label]}}
            for batch in (1, BATCH):
                given = longer.reshape(batch, -1, x.shape[2])
                calls[label, batch] = functools.partial(call, given)
        calibration = list(data.x[:256].numpy())
        rows += in_c(folder, list(PROGRAMS), x, y, exact, calls, calibration)
    return timed(rows, calls)


def of_resonators() -> Result:
    """All programs of resonators."""
    data, x, y = digits()
    series = data.x.numpy().transpose(0, 2, 1)
    # No thresholds: a response at one counts as above it or not, which is no error.
    model = ResonatorClassifier(32, pools=("rms",), alphas=[1.0], random_state=0)
    model.fit(series, data.y.numpy())
    described, samples = resonator_plan(model), x.numpy()
    exact = np.stack([resonator_outputs(described, one) for one in samples])
    single = np.stack([resonator_outputs(described, one, torch.float32) for one in samples])
    rows = [{**row("PyTorch", single, exact, y), "targets": {}}]
    calls: dict[Any, Call] = {}
    programs = [program for program, weights in PROGRAMS.items() if weights == "float"]
    rows += in_c(model, programs, x, y, exact, calls, [])
    return timed(rows, calls)


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
        import onnxruntime

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


def row(program: str, outputs: np.ndarray, exact: np.ndarray, y: np.ndarray) -> Row:
    """Agreement of one program with PyTorch in float64."""
    return {
        "program": program,
        "error": float(np.abs(outputs - exact).max()),
        "accuracy": float((outputs.argmax(1) == y).mean() * 100),
    }


def in_c(
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
        rows.append(row(label, np.stack([program(one) for one in images]), exact, y))
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
    return rows


def timed(rows: list[Row], calls: dict[Any, Call]) -> Result:
    """The programs with CPU nanoseconds a step of each call of STEPS steps."""
    seconds = medians(calls, REPEATS, clock=time.process_time)
    for one in rows:
        for batch, key in ((1, "speed"), (BATCH, "batch")):
            if (one["program"], batch) in seconds:
                nanoseconds = 1e9 * seconds[one["program"], batch] / STEPS
                one["targets"]["x86-64"][key] = nanoseconds
    return {"programs": rows}


def tables(results: list[Result]) -> dict[str, str]:
    columns = (f"{target}: bytes; {unit}" for target, unit in UNITS.items())
    rows = [["model", "program", "largest error", "accuracy", "state, x86-64", *columns]]
    for result in results:
        for one in result["programs"]:
            quality = [f"{one['error']:.1e}", f"{one['accuracy']:.1f}", str(one.get("state", "–"))]
            cells = [_cell(one["targets"].get(target)) for target in UNITS]
            rows.append([result["case"], one["program"], *quality, *cells])
    return {"export": f"{markdown_table(rows, left=2)}\n\n{_differences(results)}"}


def _cell(found: dict[str, Any] | None) -> str:
    if not found:
        return "–"
    batch = f" ({found['batch']:,.0f})" if "batch" in found else ""
    return f"{found['size']:,}; {found['speed']:,.0f}{batch}"


def _differences(results: list[Result]) -> str:
    """How far the targets are from each other."""
    most = {(kind, target): 0.0 for kind in ("int", "float") for target in TARGETS}
    for one in (program for result in results for program in result["programs"]):
        kind = "int" if "int" in one["program"] else "float"
        for target, found in one["targets"].items():
            if "apart" in found:
                most[kind, target] = max(most[kind, target], found["apart"])
    said = ", ".join(f"{most['float', target]:.0e} ({target})" for target in TARGETS)
    agree = "differ" if any(most["int", t] for t in TARGETS) else "are equal bit for bit"
    return (
        f"Integer scores of {ON_CHIPS} images {agree} on all targets. Scores in float differ from "
        f"those of x86-64 by at most {said}.\n\nMeasured on {caption(results)}"
    )
