"""MiniRocket for one channel, as a rival on a microcontroller: fitted here, run by a C program.

After Dempster, Schmidt and Webb, MiniRocket: A Very Fast (Almost) Deterministic Transform for Time
Series Classification, KDD 2021. Accuracies in the tables of other questions are those of aeon.
"""

import itertools
import math
import shutil
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from anharmonic.nn.resonators.model import fit_readout
from harness.targets import PROGRAMS

_THREES = torch.tensor(list(itertools.combinations(range(9), 3)))
KERNELS = torch.full((len(_THREES), 1, 9), -1.0).scatter_(2, _THREES[:, None], 2.0)
GOLDEN = (math.sqrt(5) + 1) / 2
Array = NDArray[Any]


class MiniRocket:
    """Shares of samples at which convolutions exceed biases, and a ridge classifier of them.

    It has about so many features, at least 84. Series that are drawn give the biases.
    """

    def __init__(self, features: int) -> None:
        self.features = features

    def fit(self, x: Array, y: Array) -> Self:
        """Choose dilations and biases, and fit the classifier: x [N, T], y [N]."""
        rng, kernels = np.random.default_rng(0), np.arange(len(KERNELS))
        each = self.features // len(kernels)
        longest = max(0.0, math.log2((x.shape[1] - 1) / 8))
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

    def transform(self, x: Array) -> Array:
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

    def predict(self, x: Array) -> Array:
        """The class of each series [N, T]."""
        return self.classes[(self.transform(x) @ self.weights.T + self.intercept).argmax(1)]

    def write_c(self, folder: Path, steps: int) -> None:
        """Write the program for series of so many samples into a folder."""
        shutil.copy(PROGRAMS / "minirocket.c", folder / "model.c")
        furthest, outputs = int(self.dilations.max()), len(self.classes)
        (folder / "model.h").write_text(
            f"#define MODEL_STEPS {steps}\n#define MODEL_CHANNELS 1\n#define FURTHEST {furthest}\n"
            f"#define MODEL_OUTPUTS {outputs}\n"
            f"typedef struct {{\n    int steps;\n"
            f"    float samples[MODEL_STEPS + 8 * FURTHEST], sums[MODEL_STEPS];\n"
            f"    float scores[MODEL_OUTPUTS];\n}} model_state;\n"
            "void model_start(model_state *s);\nvoid model_step(model_state *s, const float *x);\n"
            "void model_output(const model_state *s, float *outputs);\n"
        )
        text = f"#define DILATIONS {len(self.dilations)}\n"
        text += f"#define MOST_FEATURES {self.numbers.max()}\n"
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


def _responses(x: Array, dilation: int) -> Array:
    """The convolutions [N, 84, T] of series [N, T] with zeros around them."""
    given = torch.from_numpy(x)[:, None]
    found = functional.conv1d(given, KERNELS, padding=4 * int(dilation), dilation=int(dilation))
    return found.numpy()
