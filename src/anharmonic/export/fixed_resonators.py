"""Resonators in whole numbers: calibrated on data, and run as the C program runs them.

A position or velocity of an oscillator has 32 bits in a format of its own, of which products and
pools see the upper 16. Features are in sixteenths of these, or 2^-19 where they are shares; less
their centre and shifted into 16 bits they meet the weights of the linear model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import require
from anharmonic.export.fixed import (
    ARGUMENT,
    HIDDEN,
    MOST,
    Floats,
    Ints,
    bias,
    factor,
    limited,
    matrix,
    quantised,
    shifted,
    upper,
)
from anharmonic.export.resonators import ResonatorPlan, resonator_outputs

FINE = 4
"""Bits of a feature below the 16 of a response."""
ONE = 15 + FINE
"""The format of features that are shares."""
_SPARE, _MOST_STEP = 1.25, 2.9
_CHECKED, _MOST_LOST = 64, 0.25  # sequences; of the outputs' spread
_SHARES = ("share", "run", "position")


class FixedResonators:
    """Resonators whose numbers are integers, from a sample to the outputs.

    Args:
        plan: The model.
        calibration: Sequences as they come, from which the sizes of all variables are taken.
        bits: Of an entry of the linear model: 8 or 16.

    Shape:
        calibration [T, C] each.
    """

    def __init__(self, plan: ResonatorPlan, calibration: Sequence[NDArray[Any]], bits: int) -> None:
        require(len(calibration) > 0, "calibration", 0, "at least one sequence", "give some data")
        require(
            plan.constants is not None,
            "scaling",
            "running",
            "'train' for whole numbers",
            "fit with scaling='train', or export with floating-point weights",
        )
        assert plan.constants is not None
        self.plan, self.bits = plan, bits
        mean, deviation = plan.constants
        now = [(np.asarray(x, np.float64) - mean) / deviation for x in calibration]
        finite = all(bool(np.isfinite(x).all()) for x in now)
        require(finite, "calibration", "NaN or infinity", "finite", "fill or leave out gaps")
        # One scale for all channels, as oscillators add them up.
        scale = MOST / max(_SPARE * max(float(np.abs(x).max()) for x in now), 1e-6)
        self.gain = (scale / deviation).astype(np.float32)
        self.offset = mean.astype(np.float32)
        self._weight = plan.bank.weight.numpy().astype(np.int64)
        self._formats(scale, _sizes(plan, now))
        one = scale * 2.0**self.response
        level = np.rint(plan.bank.biases.numpy().transpose(0, 2, 1) * one[..., None])
        self.level: Ints = (
            np.clip(level, -MOST, MOST).astype(np.int64).reshape(2 * one.shape[1], -1)
        )
        self._features(scale, [self.samples(x) for x in calibration])
        self._check(calibration[:_CHECKED])

    def _formats(self, scale: float, sizes: tuple[Floats, ...]) -> None:
        """How the numbers of a step stand, beside a sample's scale."""
        a, b, c = (np.abs(v) for v in self.plan.coefficients)
        e, y, z = (np.floor(np.log2(MOST / np.maximum(1.1 * scale * v, 2.0**-9))) for v in sizes)
        e = np.minimum(e, 11)

        # What a step adds to a variable stays in 32 bits even at the limits of all others.
        def outside(v: Floats, mine: Floats, of_e: Floats, of_z: Floats) -> NDArray[np.bool_]:
            return of_e * 2.0**-e + of_z * 2.0**-z > _MOST_STEP * 2.0**-mine

        while (high := outside(z, z, b, c)).any():
            z = z - high
        while (high := outside(y, y, a, b)).any():
            y = y - high
        e = np.minimum(e, y + HIDDEN)
        self.response = np.stack([y, z])
        found = [[factor(float(value)) for value in row] for row in self.plan.coefficients]
        self.factors: tuple[Ints, ...] = tuple(np.array([v.m for v in row]) for row in found)
        fa, fb, fc = (np.array([v.f for v in row]) for row in found)
        shifts = {
            "e_from_u": -e,
            "e_from_y": y + HIDDEN - e,
            "y_from_e": fa + e - y - HIDDEN,
            "y_from_z": fb + z - y - HIDDEN,
            "z_from_e": fb + e - z - HIDDEN,
            "z_from_z": fc - HIDDEN,
        }
        self.shifts: dict[str, Ints] = {
            name: np.minimum(v, 31).astype(np.int64) for name, v in shifts.items()
        }

    def _features(self, scale: float, calibration: Sequence[NDArray[np.int16]]) -> None:
        """How features stand, and the linear model of them."""
        found = np.concatenate([self.features(group) for group in _groups(calibration)])
        centre = np.clip(np.rint(found.mean(axis=0) / 2**FINE), -MOST, MOST).astype(np.int64)
        self.centre: Ints = centre
        most = _SPARE * np.abs(found - (centre << FINE)).max(axis=0) / MOST
        shift = np.ceil(np.log2(np.maximum(most, 2.0**-10))).astype(np.int64)
        self.feature_shift: Ints = shift
        weight = self.plan.weights_in_order * self._units(scale)
        self.readout = matrix(weight * 2.0**shift, 0, self.bits, "the readout", 2.0**14)
        total = self.plan.bias + weight @ (centre << FINE)
        self.readout_bias, self.readout_bias_shift = bias(total)

    def _check(self, calibration: Sequence[NDArray[Any]]) -> None:
        """Weights that all but cancel, as a small penalty leaves them, do not survive rounding."""
        exact = np.stack([resonator_outputs(self.plan, x) for x in calibration])
        found = [self.values(self.outputs(self.samples(x)[None]))[0] for x in calibration]
        spread = float(exact.var())
        lost = math.sqrt(float(np.square(np.stack(found) - exact).mean()) / max(spread, 1e-12))
        require(
            lost < _MOST_LOST,
            "weights",
            f"int{self.bits}, whose rounding moves the outputs by {lost:.0%} of their spread",
            "as fine as this linear model needs",
            "fit with larger alphas, e.g. alphas=[1.0]" + ", or take int16" * (self.bits < 16),
        )

    def _units(self, scale: float) -> Floats:
        """What one of each feature stands for, [D]."""
        response = 2.0**-FINE / (scale * 2.0 ** self.response.ravel())
        _, B, K = self.plan.bank.biases.shape
        slow = self.plan.bank.slow.numpy()
        number = {"share": 2 * K * B, "run": 2 * K, "position": 2 * (-(-K // 2))}
        found = []
        for name in self.plan.pools:
            if name in _SHARES:
                found.append(np.full(number[name], 2.0**-ONE))
            elif name == "excess":
                found.append(np.repeat(response, B))
            elif name == "end":
                found += [response[slow], response[K + slow]]
            else:
                found.append(response)
        return np.concatenate(found)

    def samples(self, x: NDArray[Any]) -> NDArray[np.int16]:
        """Samples, as they come, in whole numbers.

        Shape:
            x [..., C]; result likewise.
        """
        return quantised(x, self.offset, self.gain)

    def responses(self, samples: NDArray[np.int16]) -> Iterator[Ints]:
        """Positions, then velocities after each step, in 32 bits: [N, 2 K] each.

        Shape:
            samples [N, T, C].
        """
        x, s = samples.astype(np.int64), self.shifts
        read = np.concatenate([x, np.diff(x, axis=1, prepend=x[:, :1])], axis=2)
        a, b, c = self.factors
        y = np.zeros((len(x), len(a)), np.int64)
        z = y
        for t in range(x.shape[1]):
            u = read[:, t] @ self._weight
            e = shifted(u, s["e_from_u"]) - shifted(y, s["e_from_y"])
            e, fast = np.clip(e, -MOST, MOST), upper(z)
            y = limited(y + shifted(a * e, s["y_from_e"]) + shifted(b * fast, s["y_from_z"]))
            z = limited(z + shifted(b * e, s["z_from_e"]) - shifted(c * fast, s["z_from_z"]))
            yield np.concatenate([y, z], axis=1)

    def features(self, samples: NDArray[np.int16]) -> Ints:
        """The features of sequences, [N, D], before their centres are taken away.

        Shape:
            samples [N, T, C].
        """
        N, n, _ = samples.shape
        K, B = len(self.plan.bank.frequency), self.level.shape[1]
        above = np.zeros((N, 2 * K, B), np.int64)
        excess, at = above, np.zeros((N, 2 * K), np.int64)
        run, longest, position, square, now = at, at, at, at, at
        largest = np.full((N, 2 * K), -MOST)
        for t, now in enumerate(self.responses(samples)):
            small = upper(now)
            over = small[..., None] - self.level
            above = above + (over > 0)
            excess = excess + np.maximum(over, 0)
            run = np.where(over[..., 0] > 0, run + 1, 0)
            longest = np.maximum(longest, run)
            position = position + t * (over[..., 0] > 0)
            largest, square = np.maximum(largest, small), square + small * small
        half = [i for i in range(2 * K) if i % K % 2 == 0]
        count = above[:, half, 0]
        place = (position[:, half] << ONE) // np.maximum(count * n, 1)
        slow = self.plan.bank.slow.numpy()
        made = {
            "share": (above << ONE) // n,
            "excess": (excess << FINE) // n,
            "run": (longest << ONE) // n,
            "position": np.where(count > 0, place, -(1 << ONE)),
            "largest": largest << FINE,
            "rms": np.floor(np.sqrt((square << 2 * FINE) // n)).astype(np.int64),
            "end": shifted(now[:, np.concatenate([slow, K + slow])], HIDDEN - FINE),
        }
        return np.concatenate([made[name].reshape(N, -1) for name in self.plan.pools], axis=1)

    def outputs(self, samples: NDArray[np.int16]) -> Ints:
        """The outputs, in the format of arguments, as the C program has them at the end.

        Shape:
            samples [N, T, C]; result [N, O].
        """
        away = self.features(samples) - (self.centre << FINE)
        away = np.clip(shifted(away, self.feature_shift), -MOST, MOST)
        return self.readout_bias + self.readout(away)

    def values(self, outputs: Ints) -> Floats:
        """Outputs as numbers."""
        return np.asarray(outputs / 2.0**ARGUMENT)


def _groups(sequences: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Sequences [T, C] of one length together, [N, T, C] each."""
    found: dict[int, list[NDArray[Any]]] = {}
    for x in sequences:
        found.setdefault(len(x), []).append(x)
    return [np.stack(group) for group in found.values()]


def _sizes(plan: ResonatorPlan, scaled: Sequence[Floats]) -> tuple[Floats, ...]:
    """The largest size of what drives each oscillator, and of its position and velocity: [K]."""
    a, b, c = plan.coefficients
    found = [np.zeros(len(a)) for _ in range(3)]
    for x in _groups(scaled):
        read = np.concatenate([x, np.diff(x, axis=1, prepend=x[:, :1])], axis=2)
        drive = read @ plan.bank.weight.numpy()
        y = np.zeros((len(x), len(a)))
        z = y
        for t in range(x.shape[1]):
            e = drive[:, t] - y
            y, z = y + a * e + b * z, z + b * e - c * z
            for most, now in zip(found, (e, y, z), strict=True):
                np.maximum(most, np.abs(now).max(axis=0), out=most)
    return tuple(found)
