"""Resonators and MiniRocket on a Cortex-M4: accuracy, flash, RAM and instructions.

Both classify scikit-learn's digits, which come pixel by pixel. The programs are C in float, for an
emulated Cortex-M4 with floating point (Debian: gcc-arm-none-eabi, libnewlib-arm-none-eabi,
qemu-system-arm). Resonators are exported by ``write_c``. MiniRocket for one channel is fitted here,
after Dempster, Schmidt and Webb, MiniRocket: A Very Fast (Almost) Deterministic Transform for Time
Series Classification, KDD 2021; its program keeps a window of samples, and computes its features
one by one, so that none is stored. Accuracies in the tables of other questions are those of aeon.
"""

import functools
import itertools
import math
import shutil
import tempfile
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch.nn import functional

from anharmonic.estimators import ResonatorClassifier
from anharmonic.export import write_c
from anharmonic.nn.resonators.model import fit_readout
from export import digits
from harness.results import Cases, Options, Result, caption, markdown_table
from harness.targets import CORTEX_FLAGS, PROGRAMS, Program, cortex

SMALL = {"num_biases": 1, "pools": ("share", "largest")}
RESONATORS: dict[str, dict[str, Any]] = {
    "32 resonators, share and largest": {"num_oscillators": 32, **SMALL},
    "100 resonators, share and largest": {"num_oscillators": 100, **SMALL},
    "100 resonators, default pools": {"num_oscillators": 100},
    "1,000 resonators, default pools": {"num_oscillators": 1000},
}
ROCKETS = {"MiniRocket, 588 features": 588, "MiniRocket, 9,996 features": 9996}
STEPS, ON_CHIP = 64, 2
"""Samples of an image, and images that the chip is given."""

_THREES = torch.tensor(list(itertools.combinations(range(9), 3)))
KERNELS = torch.full((len(_THREES), 1, 9), -1.0).scatter_(2, _THREES[:, None], 2.0)
GOLDEN = (math.sqrt(5) + 1) / 2


def cases(options: Options) -> Cases:
    torch.set_num_threads(1)
    ours = functools.partial(ResonatorClassifier, random_state=0, n_jobs=1)
    found: Cases = {name: (measure, ours(**drawn)) for name, drawn in RESONATORS.items()}
    return found | {name: (measure, MiniRocket(number)) for name, number in ROCKETS.items()}


def measure(model: Any) -> Result:
    """What a model reaches, and what its program takes.

    Raises:
        RuntimeError: If the program does not answer as the model does.
    """
    data, x, y = digits()
    predicted = model.fit(data.x[..., 0].numpy(), data.y.numpy()).predict(x[..., 0].numpy())
    folder = Path(tempfile.mkdtemp())
    if isinstance(model, MiniRocket):
        model.write_c(folder)
    else:
        write_c(model, folder)
    program, series = Program(folder, "float", 1, len(np.unique(y))), x.numpy()
    answers = np.stack([program(one) for one in series]).argmax(1)
    if np.mean(answers != predicted) > 0.01:  # a response near a bias may fall on either side
        raise RuntimeError(f"{np.sum(answers != predicted)} answers of the program differ")
    found: Result = {"accuracy": float(np.mean(answers == y))}
    if once := cortex(program, series[:ON_CHIP]):
        always = cortex(program, series[:ON_CHIP], answers=True)
        state = program.state("arm-none-eabi-gcc", "arm-none-eabi-size", CORTEX_FLAGS)
        found |= {"flash": once["size"], "state": state}
        found |= {"step": once["speed"], "answered": always["speed"]}
    return found


class MiniRocket:
    """Shares of samples at which convolutions exceed biases, and a ridge classifier of them.

    It has about so many features, at least 84. Series that are drawn give the biases.
    """

    def __init__(self, features: int) -> None:
        self.features = features

    def fit(self, x: np.ndarray, y: np.ndarray) -> Self:
        """Choose dilations and biases, and fit the classifier: x [N, T], y [N]."""
        rng, kernels = np.random.default_rng(0), np.arange(len(KERNELS))
        each = self.features // len(kernels)
        self.steps = x.shape[1]
        longest = max(0.0, math.log2((self.steps - 1) / 8))
        drawn = np.exp2(np.linspace(0, longest, min(each, 32))).astype(int)
        self.dilations, counts = np.unique(drawn, return_counts=True)
        self.numbers = counts * each // counts.sum()
        self.numbers[: each - self.numbers.sum()] += 1
        self.biases, place = [], 1
        for dilation, number in zip(self.dilations, self.numbers, strict=True):
            series = x[rng.integers(len(x), size=len(kernels))]
            responses = _responses(series, dilation)[kernels, kernels]
            quantiles = np.arange(place, place + number * len(kernels)) * GOLDEN % 1
            place += len(quantiles)
            asked = zip(responses, quantiles.reshape(-1, number), strict=True)
            self.biases.append(np.stack([np.quantile(*of) for of in asked]).astype(np.float32))
        self.classes = np.unique(y)
        against = np.where(y[:, None] == self.classes, 1.0, -1.0)
        made = fit_readout(self.transform(x), against)
        self.weights = np.atleast_2d(made.ridge.coef_) / made.scaler.scale_
        self.intercept = made.ridge.intercept_ - self.weights @ made.scaler.mean_
        return self

    def transform(self, x: np.ndarray) -> np.ndarray:
        """The features of series [N, T]."""
        found = []
        for d, dilation in enumerate(self.dilations):
            responses = _responses(x, dilation)
            for k, biases in enumerate(self.biases[d]):
                # Of every second kernel only where the whole kernel lies in the series.
                edge = 4 * dilation if (d + k) % 2 else 0
                inside = responses[:, k, edge : x.shape[1] - edge]
                found += [(inside > bias).mean(1) for bias in biases]
        return np.stack(found, axis=1).astype(np.float32)

    def predict(self, x: np.ndarray) -> np.ndarray:
        """The class of each series [N, T]."""
        return self.classes[(self.transform(x) @ self.weights.T + self.intercept).argmax(1)]

    def write_c(self, folder: Path) -> None:
        """Write the program for series as long as those of training into a folder."""
        shutil.copy(PROGRAMS / "minirocket.c", folder / "model.c")
        sizes = {
            "MODEL_STEPS": self.steps,
            "MODEL_CHANNELS": 1,
            "MODEL_OUTPUTS": len(self.classes),
            "DILATIONS": len(self.dilations),
            "FURTHEST": self.dilations.max(),
            "MOST_FEATURES": self.numbers.max(),
        }
        text = "".join(f"#define {name} {size}\n" for name, size in sizes.items())
        (folder / "model.h").write_text(text + (PROGRAMS / "minirocket.h").read_text("utf-8"))
        text = ""
        for kind, name, values in (
            ("int", "dilations", self.dilations),
            ("int", "features", self.numbers),
            ("float", "biases", np.concatenate([biases.ravel() for biases in self.biases])),
            ("float", "weights", self.weights.T.ravel()),
            ("float", "intercept", self.intercept),
        ):
            kept = values.astype(np.float32) if kind == "float" else values
            numbers = ", ".join(repr(value.item()) for value in kept)
            text += f"static const {kind} {name}[] = {{{numbers}}};\n"
        (folder / "constants.h").write_text(text)


def _responses(x: np.ndarray, dilation: int) -> np.ndarray:
    """The convolutions [N, 84, T] of series [N, T] with zeros around them."""
    given = torch.from_numpy(x)[:, None]
    found = functional.conv1d(given, KERNELS, padding=4 * int(dilation), dilation=int(dilation))
    return found.numpy()


def tables(results: list[Result]) -> dict[str, str]:
    """Instructions of a sample where a series is answered once, and after every sample."""
    heads = ["model", "accuracy", "flash, kB", "RAM, bytes"]
    every = "instructions per sample"
    rows = [[*heads, f"{every}, one answer at the end", f"{every}, an answer after each sample"]]
    for one in results:
        cells = [f"{100 * one['accuracy']:.1f} %", "–", "–", "–", "–"]
        if "flash" in one:
            output = one["answered"] - one["step"]
            always = one["step"] * STEPS if "Rocket" in one["case"] else one["answered"]
            cells[1:] = [f"{one['flash'] / 1000:,.1f}", f"{one['state']:,}"]
            cells += [f"{one['step'] + output / STEPS:,.0f}", f"{always:,.0f}"]
        rows.append([one["case"], *cells])
    about = (
        f"A series has {STEPS} samples. Instructions include the readout and were counted on an "
        f"emulated Cortex-M4.\n\nThe emulator ran on {caption(results)}"
    )
    return {"microcontroller": f"{markdown_table(rows)}\n\n{about}"}
