"""MiniRocket for one channel, as a rival on a microcontroller: fitted here, run by a C program.

After Dempster, Schmidt and Webb, MiniRocket: A Very Fast (Almost) Deterministic Transform for Time
Series Classification, KDD 2021. Accuracies in the tables of other questions are those of aeon.
"""

from __future__ import annotations

import itertools
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from anharmonic.nn.resonators.model import fit_readout
from harness.targets import PROGRAMS

KERNELS = list(itertools.combinations(range(9), 3))
"""The places of the three weights of 2."""
_GOLDEN = (math.sqrt(5) + 1) / 2
Array = np.ndarray[Any, np.dtype[Any]]


class MiniRocket:
    """Shares of samples at which convolutions exceed biases, and a ridge classifier of them.

    It has about so many features, at least 84. The seed draws the series whose responses give the
    biases.
    """

    def __init__(self, features: int, seed: int = 0) -> None:
        self.features, self.seed = features, seed

    def fit(self, x: Array, y: Array) -> MiniRocket:
        """Choose dilations and biases, and fit the classifier: x [N, T], y [N]."""
        rng, each = np.random.default_rng(self.seed), self.features // len(KERNELS)
        longest = max(0.0, math.log2((x.shape[1] - 1) / 8))
        drawn = np.exp2(np.linspace(0, longest, min(each, 32))).astype(int)
        self.dilations, counts = np.unique(drawn, return_counts=True)
        self.numbers = counts * each // counts.sum()
        self.numbers[: each - self.numbers.sum()] += 1
        self.biases, place = [], 0
        for dilation, number in zip(self.dilations, self.numbers, strict=True):
            for positions in KERNELS:
                series = x[[rng.integers(len(x))]]
                quantiles = np.arange(place + 1, place + 1 + number) * _GOLDEN % 1
                place += number
                response = _response(series, _sums(series, dilation), positions, dilation)
                self.biases.append(np.quantile(response, quantiles).astype(np.float32))
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
            sums = _sums(x, dilation)
            for k, positions in enumerate(KERNELS):
                response = _response(x, sums, positions, dilation)
                if (d + k) % 2:  # only where the whole kernel lies in the series
                    response = response[:, 4 * dilation : x.shape[1] - 4 * dilation]
                biases = self.biases[d * len(KERNELS) + k]
                found += [(response > bias).mean(1) for bias in biases]
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
            ("float", "biases", np.concatenate(self.biases)),
            ("float", "weights", self.weights.T.ravel()),
            ("float", "intercept", self.intercept),
        ):
            kept = values.astype(np.float32) if kind == "float" else values
            numbers = ", ".join(repr(value.item()) for value in kept)
            text += f"static const {kind} {name}[] = {{{numbers}}};\n"
        (folder / "constants.h").write_text(text)


def _sums(x: Array, dilation: int) -> Array:
    return -sum(_shifted(x, (place - 4) * dilation) for place in range(9))


def _response(x: Array, sums: Array, positions: tuple[int, ...], dilation: int) -> Array:
    return sums + 3 * sum(_shifted(x, (place - 4) * dilation) for place in positions)


def _shifted(x: Array, by: int) -> Array:
    """Return x [N, T] at t + by, and 0 outside of it."""
    found = np.zeros_like(x)
    if abs(by) < x.shape[1]:
        source = slice(max(by, 0), x.shape[1] + min(by, 0))
        found[:, max(-by, 0) : x.shape[1] - max(by, 0)] = x[:, source]
    return found
