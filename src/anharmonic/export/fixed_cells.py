"""One step of each recurrent layer in integers, bit for bit as in the C program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from anharmonic._checks import require
from anharmonic.export.fixed import (
    ARGUMENT,
    HIDDEN,
    VALUE,
    Factor,
    FixedMatrix,
    Ints,
    bias,
    factor,
    limited,
    matrix,
    shifted,
    sigmoid,
    state_format,
    tanh,
    upper,
)
from anharmonic.export.plan import LayerPlan


class FixedLayer:
    """A layer in integer arithmetic.

    Args:
        layer: The layer.
        formats: Formats of the levels below, from the input of the stack upwards.
        sizes: Largest calibration value of each variable.
        bits: Bits of a matrix entry: 8 or 16.
        where: Its name, for error messages.

    Attributes:
        layer: The original layer.
        matrices: Its matrices.
        biases: Its biases, in the format of arguments.
        bias_shifts: Right shift of each bias to fit into 16 bits.
        factors: Its other constants.
        formats: Formats of its variables by name.
        variables: Names of its variables; the first is the output.
    """

    def __init__(
        self, layer: LayerPlan, formats: list[int], sizes: list[float], bits: int, where: str
    ) -> None:
        require(layer.kind in _STEPS, "layer", layer.kind, f"one of {sorted(_STEPS)} for whole "
                "numbers", "export with floating-point weights")  # fmt: skip
        self.layer = layer
        self.variables: tuple[str, ...] = _VARIABLES[layer.kind]
        self.formats = dict(zip(self.variables, _formats(layer, sizes), strict=True))
        first = self.formats[self.variables[0]]
        below = {"ih": formats[-1], "ih_y": formats[-1], "zh": self.formats.get("z", 0)}
        below["hz"] = below["zh"]
        if layer.skip is not None:
            below["skip"] = formats[layer.skip]
        self.matrices: dict[str, FixedMatrix] = {
            name: matrix(real, below.get(name, first), bits, f"weight {name} of {where}")
            for name, real in layer.matrices.items()
        }
        self.biases: dict[str, Ints] = {}
        self.bias_shifts: dict[str, int] = {}
        for name, real in layer.vectors.items():
            if name.startswith("bias"):
                self.biases[name], self.bias_shifts[name] = bias(real)
        self.factors: dict[str, Factor] = {}
        self.force = 0
        _constants(self)

    def start(self, number: int) -> dict[str, Ints]:
        """Return the variables of some sequences before the first sample."""
        return {name: np.zeros((number, self.layer.width), np.int64) for name in self.variables}

    def step(self, s: dict[str, Ints], u: Ints, skip: Ints | None) -> Ints:
        """Take one step and return the output in 16 bits.

        Shape:
            u [N, F]; skip likewise; s [N, H] each; result [N, H].
        """
        return _STEPS[self.layer.kind](self, s, u, skip)


_VARIABLES = {
    "LEM": ("y", "z"),
    "CoRNN": ("y", "z"),
    "UnICORNN": ("y", "z"),
    "LSTM": ("h", "c"),
    "GRU": ("h",),
    "FastGRNN": ("h",),
}


def _formats(layer: LayerPlan, sizes: list[float]) -> list[int]:
    if layer.kind == "LSTM":
        return [VALUE, state_format(sizes[1], 14)]
    if layer.kind == "GRU":
        return [14]
    most = 14 if layer.kind in ("LEM", "FastGRNN") else 24
    formats = [state_format(size, most) for size in sizes]
    if layer.kind in ("LEM", "FastGRNN"):
        return formats
    # A step must not overflow the 32 bits of a variable.
    force = 1 + layer.numbers["frequency"] * 2.0 ** (15 - formats[0])
    longest = (
        float(np.max(layer.vectors["step"])) if "step" in layer.vectors else layer.numbers["dt"]
    )
    room = 15 - int(np.ceil(np.log2(longest * force)))
    formats[1] = min(formats[1], room)
    formats[0] = min(formats[0], 15 - int(np.ceil(np.log2(longest * 2.0 ** (15 - formats[1])))))
    return formats


def _constants(self: FixedLayer) -> None:
    n = self.layer.numbers
    if self.layer.kind == "LEM":
        require(n["dt"] < 2, "dt", n["dt"], "below 2 for whole numbers", "export with floats")
        # Steps have the format HIDDEN + spare; clipped steps reach 1.
        spare = 0 if n["floor"] is not None else int(np.floor(np.log2(32767 / (n["dt"] * 2**14))))
        m = int(np.rint(n["dt"] * 2.0 ** (HIDDEN + spare)))
        self.factors["dt"] = Factor(min(m, 32767), HIDDEN + spare)
    if self.layer.kind == "FastGRNN":
        for name in ("zeta", "nu"):
            self.factors[name] = Factor(int(np.rint(n[name] * 2.0**HIDDEN)), HIDDEN)
    if self.layer.kind in ("CoRNN", "UnICORNN"):
        force = 1 + n["frequency"] * 2.0 ** (15 - self.formats["y"])
        self.force = min(14, 14 - int(np.floor(np.log2(force))))
        self.factors["frequency"] = factor(n["frequency"])
    if self.layer.kind == "CoRNN":
        step, leak = n["dt"], n["dt"] * n["damping"]
        if n["scheme"] == "implicit":
            step, leak = step / (1 + leak), leak / (1 + leak)
        self.factors |= {"dt": factor(n["dt"]), "step": factor(step), "leak": factor(leak)}
    if self.layer.kind == "UnICORNN":
        self.factors["step"] = factor(self.layer.vectors["step"])
        self.factors["hh"] = factor(self.layer.vectors["hh"])


def _lem(self: FixedLayer, s: dict[str, Ints], u: Ints, skip: Ints | None) -> Ints:
    H, f, dt, low = self.layer.width, self.formats, self.factors["dt"], self.layer.numbers["floor"]

    def gate(a: Ints) -> Ints:
        g = np.asarray(shifted(dt.m * sigmoid(a), 15))
        return g if low is None else np.clip(g, int(np.rint(low * 2**HIDDEN)), 2**HIDDEN)

    def moved(v: Ints, name: str, a: Ints, target: Ints) -> Ints:
        away = shifted(tanh(target), VALUE - f[name]) - upper(v)
        return limited(v + shifted(gate(a) * away, dt.f - HIDDEN))

    A = self.biases["bias"] + self.matrices["ih"](u) + self.matrices["hh"](upper(s["y"]))
    s["z"] = moved(s["z"], "z", A[:, :H], A[:, 2 * H :])
    B = self.biases["bias_y"] + self.matrices["ih_y"](u) + self.matrices["zh"](upper(s["z"]))
    s["y"] = moved(s["y"], "y", A[:, H : 2 * H], B)
    return upper(s["y"])


def _force(self: FixedLayer, t: Ints, y: Ints, sign: int) -> Any:
    pull = self.factors["frequency"].times(y, self.formats["y"], self.force)
    return np.clip(shifted(t, VALUE - self.force) + sign * pull, -32767, 32767)


def _cornn(self: FixedLayer, s: dict[str, Ints], u: Ints, skip: Ints | None) -> Ints:
    f, c, y, z = self.formats, self.factors, upper(s["y"]), upper(s["z"])
    A = self.biases["bias"] + self.matrices["ih"](u)
    A = A + self.matrices["hy"](y) + self.matrices["hz"](z)
    push = c["step"].times(_force(self, tanh(A), y, -1), self.force, f["z"] + HIDDEN)
    s["z"] = limited(s["z"] + push - c["leak"].times(z, f["z"], f["z"] + HIDDEN))
    s["y"] = limited(s["y"] + c["dt"].times(upper(s["z"]), f["z"], f["y"] + HIDDEN))
    return upper(s["y"])


def _unicornn(self: FixedLayer, s: dict[str, Ints], u: Ints, skip: Ints | None) -> Ints:
    f, c, y = self.formats, self.factors, upper(s["y"])
    A = self.biases["bias"] + self.matrices["ih"](u)
    if skip is not None:
        A = A + self.matrices["skip"](skip)
    A = A + c["hh"].times(y, f["y"], ARGUMENT)
    push = c["step"].times(_force(self, tanh(A), y, 1), self.force, f["z"] + HIDDEN)
    s["z"] = limited(s["z"] - push)
    s["y"] = limited(s["y"] + c["step"].times(upper(s["z"]), f["z"], f["y"] + HIDDEN))
    return upper(s["y"])


def _lstm(self: FixedLayer, s: dict[str, Ints], u: Ints, skip: Ints | None) -> Ints:
    H, f = self.layer.width, self.formats["c"]
    A = self.biases["bias"] + self.matrices["ih"](u) + self.matrices["hh"](s["h"])
    fresh = shifted(sigmoid(A[:, :H]) * tanh(A[:, 2 * H : 3 * H]), 16 - f)
    lost = shifted((32768 - sigmoid(A[:, H : 2 * H])) * upper(s["c"]), 1)
    s["c"] = limited(s["c"] - lost + fresh)
    inside = tanh(np.asarray(shifted(s["c"], f + HIDDEN - ARGUMENT)))
    s["h"] = np.asarray(shifted(sigmoid(A[:, 3 * H :]) * inside, 15))
    return s["h"]


def _gru(self: FixedLayer, s: dict[str, Ints], u: Ints, skip: Ints | None) -> Ints:
    H, h = self.layer.width, upper(s["h"])
    A = self.biases["bias"] + self.matrices["ih"](u)
    A[:, : 2 * H] += self.matrices["hh"](h)
    B = self.biases["bias_n"] + self.matrices["hn"](h)
    n = tanh(A[:, 2 * H :] + ((sigmoid(A[:, :H]) * B + 16384) >> 15))
    away = shifted(n, 1) - h
    s["h"] = limited(s["h"] + shifted((32768 - sigmoid(A[:, H : 2 * H])) * away, 1))
    return upper(s["h"])


def _fastgrnn(self: FixedLayer, s: dict[str, Ints], u: Ints, skip: Ints | None) -> Ints:
    h, zeta, nu = upper(s["h"]), self.factors["zeta"], self.factors["nu"]
    A = self.matrices["ih"](u) + self.matrices["hh"](h)
    open_ = 32768 - sigmoid(A + self.biases["bias"])
    share = shifted(zeta.m * open_, 15) + nu.m
    fresh = shifted(share * tanh(A + self.biases["bias_h"]), 15 - self.formats["h"])
    s["h"] = limited(s["h"] - shifted(open_ * h, 1) + fresh)
    return upper(s["h"])


_STEPS: dict[str, Callable[..., Ints]] = {
    "LEM": _lem,
    "CoRNN": _cornn,
    "UnICORNN": _unicornn,
    "LSTM": _lstm,
    "GRU": _gru,
    "FastGRNN": _fastgrnn,
}
