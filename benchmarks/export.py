"""Size, agreement and speed of exported models, for each model, program and target.

Trains one model of each kind on scikit-learn's digits, which come pixel by pixel, and exports it to
ONNX, torch.export and C in double, float, int16 and int8. The C also runs on a simulated
ATmega1284P, an emulated Cortex-M4 and in WebAssembly, where the tools for that are installed
(Debian: gcc-avr, avr-libc, simavr; gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm;
emscripten, nodejs). Times on this machine are CPU seconds, medians of turns.
"""

import functools
import tempfile
import time
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
from harness.results import Cases, Options, Result, caption, markdown_table
from harness.speed import medians
from harness.targets import TARGETS, Program

PACKAGES = ("onnxruntime",)
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
CHECKED = ("model.c", "model_test.c")
UNITS = {"x86-64": "ns", "AVR": "cycles", "Cortex-M4": "instructions", "WebAssembly": "ns"}
ON_CHIPS, STEPS, BATCH, REPEATS = 3, 4_000, 32, 9


def cases(options: Options) -> Cases:
    torch.set_num_threads(1)
    epochs = 1 if options.quick else 15
    return {name: (of_network, name, epochs) for name in MODELS} | {"resonators": (of_resonators,)}


@functools.cache
def digits() -> tuple[Any, torch.Tensor, np.ndarray]:
    """The training set, and test images and classes."""
    splits = make_task("digits").splits()
    return splits.train, splits.test.x.contiguous().float(), splits.test.y.numpy()


def of_network(name: str, epochs: int) -> Result:
    data, x, _ = digits()
    options = {"hidden_size": 16, **MODELS[name]}
    run = Run(task="digits", model=name, model_options=options, epochs=epochs, lr=0.01)
    with tempfile.TemporaryDirectory() as place:
        environment = RunEnvironment(out=Path(place), progress=False)
        fit(run, environment)
        folder = run_folder(run, environment)
        with torch.no_grad():
            model = trained(folder).model
            # The same weights in float64, with its constants as they were given.
            exact = type(model)(**model.config(), dtype=torch.float64).eval()
            exact.load_state_dict(model.state_dict())
            found = Programs(exact(x.double()).numpy())
            longer = x.reshape(-1, x.shape[2])[:STEPS]
            for label, (call, size) in frameworks(model, Path(place), name).items():
                found.add(label, call(x).double().numpy(), {"size": size})
                for batch in (1, BATCH):
                    given = longer.reshape(batch, -1, x.shape[2])
                    found.calls[f"{label} {batch}"] = functools.partial(call, given)
            found.add_c(folder, list(PROGRAMS), list(data.x[:256].numpy()))
            return found.timed()


def of_resonators() -> Result:
    data, x, _ = digits()
    # No thresholds: a response at one counts as above it or not, which is no error.
    model = ResonatorClassifier(32, pools=("rms",), alphas=[1.0], random_state=0)
    model.fit(data.x.numpy().transpose(0, 2, 1), data.y.numpy())
    plan = resonator_plan(model)
    found = Programs(np.stack([resonator_outputs(plan, one) for one in x.numpy()]))
    single = [resonator_outputs(plan, one, torch.float32) for one in x.numpy()]
    found.add("PyTorch", np.stack(single))
    found.add_c(model, [label for label, weights in PROGRAMS.items() if weights == "float"])
    return found.timed()


def frameworks(
    model: ah.SequenceModel, folder: Path, name: str
) -> dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], int]]:
    """A model as PyTorch runs it, and as its exported files do, with their bytes."""
    import onnxruntime

    found: dict[str, Any] = {"PyTorch": (model, sum(4 * p.numel() for p in model.parameters()))}
    if name not in EXPORTED:
        return found
    state = model(torch.zeros(1, 1, model.input_size), return_state=True)[1]

    def start(batch: int) -> list[torch.Tensor]:
        return [part.new_zeros(part.shape[0], batch, part.shape[2]) for part in state]

    for label in ("torch.export", "torch.export, portable")[0 if EXPORTED[name] else 1 :]:
        path = write_torch(model, folder / f"{label}.pt2", portable="portable" in label)
        program = torch.export.load(path).module()
        found[label] = (lambda x, p=program: p(x, *start(len(x)))[0]), path.stat().st_size
    path = write_onnx(model, folder / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options)
    names = [given.name for given in session.get_inputs()]

    def run(x: torch.Tensor) -> torch.Tensor:
        given = [value.numpy() for value in (x, *start(len(x)))]
        return torch.from_numpy(session.run(None, dict(zip(names, given, strict=True)))[0])

    return found | {"ONNX": (run, path.stat().st_size)}


class Programs:
    """The programs of one model beside ``exact``, its outputs in float64, and what is timed."""

    def __init__(self, exact: np.ndarray) -> None:
        self.exact = exact
        self.rows: list[dict[str, Any]] = []
        self.calls: dict[str, Callable[[], object]] = {}

    def add(self, program: str, outputs: np.ndarray, here: Result | None = None, **more: Any):
        """Add a row: agreement with PyTorch in float64, and what is known of this machine."""
        self.rows.append(
            {
                "program": program,
                "error": float(np.abs(outputs - self.exact).max()),
                "accuracy": float((outputs.argmax(1) == digits()[2]).mean() * 100),
                **more,
                "targets": {} if here is None else {"x86-64": here},
            }
        )

    def add_c(self, model: Any, labels: list[str], calibration: list[Any] | None = None) -> None:
        images = digits()[1].numpy()
        for label in labels:
            weights, double = PROGRAMS[label], label == "C, double"
            here = Path(tempfile.mkdtemp())
            write_c(model, here, weights=weights, calibration=calibration)
            program = Program(here, weights, images.shape[2], self.exact.shape[1], double)
            program.run("gcc", "-std=c99", *program.flags, *CHECKED, "-lm", "-o", "check")
            program.run("./check")
            size = program.flash("gcc", "size", "-std=c99", *program.flags)
            outputs = np.stack([program(one) for one in images])
            self.add(label, outputs, {"size": size}, state=program.state())
            long = program.samples(images.reshape(-1, images.shape[2])[:STEPS])
            self.calls[f"{label} 1"] = functools.partial(program.raw, long)
            few = program.samples(images[:ON_CHIPS])
            raw = np.stack([program.raw(one) for one in few])
            for target, measured in ({} if double else TARGETS).items():
                if found := measured(program, few):
                    apart = program.numbers(found.pop("raw")) - program.numbers(raw)
                    found["apart"] = float(np.abs(apart).max())
                    self.rows[-1]["targets"][target] = found

    def timed(self) -> Result:
        """All rows, with CPU nanoseconds a step of each call of STEPS steps."""
        seconds = medians(self.calls, REPEATS, clock=time.process_time)
        for one in self.rows:
            for batch, key in ((1, "speed"), (BATCH, "batch")):
                if (call := f"{one['program']} {batch}") in seconds:
                    one["targets"]["x86-64"][key] = 1e9 * seconds[call] / STEPS
        return {"programs": self.rows}


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
    programs = [program for result in results for program in result["programs"]]

    def most(kind: str, target: str) -> float:
        found = [one["targets"].get(target, {}) for one in programs if kind in one["program"]]
        return max((of["apart"] for of in found if "apart" in of), default=0.0)

    said = ", ".join(f"{most('float', target):.0e} ({target})" for target in TARGETS)
    agree = "differ" if any(most("int", t) for t in TARGETS) else "are equal bit for bit"
    return (
        f"Integer scores of {ON_CHIPS} images {agree} on all targets. Scores in float differ from "
        f"those of x86-64 by at most {said}.\n\nMeasured on {caption(results)}"
    )
