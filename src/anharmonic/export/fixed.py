"""Fixed-point arithmetic: how a model's numbers become integers.

The integer v * 2^f represents a value v with format f. Matrices have int8 or int16 entries and a
format per row, chosen so that sums of products fit into 32 bits; biases have 16 bits. Arguments of
tanh have f = 16, its values f = 15. A state variable has 32 bits, and products use the upper 16, so
small increments of a long memory are not lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import require

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ARGUMENT, VALUE, HIDDEN = 16, 15, 14
"""Formats of arguments and values of tanh; bits of a state below the 16 bits of products."""
MOST = 32767
MISSING = -32768
"""A missing value of a sample."""
LIMIT = MOST << HIDDEN
_MOST_REACH = 2.0**12  # largest contribution of a row to an argument
_SUM = 65535  # largest sum of a row's magnitudes; times 2^15 it stays below 2^31


@dataclass(frozen=True)
class FixedMatrix:
    """A matrix of integers; row i of its product is shifted by shift[i] to become an argument."""

    weight: Ints
    shift: Ints

    def __call__(self, x: Ints) -> Ints:
        """Return its contribution to the arguments: x [N, columns] to [N, rows]."""
        return np.asarray(shifted(x @ self.weight.T, self.shift))


def matrix(real: Floats, x_format: int, bits: int, where: str) -> FixedMatrix:
    """Round a matrix.

    Args:
        real: The matrix.
        x_format: The format of the 16-bit factor.
        bits: Bits of an entry: 8 or 16.
        where: Its name, for error messages.

    Raises:
        ValueError: If a row could contribute more.
    """
    rows, shifts = [], []
    for row in real:
        largest, total = float(np.abs(row).max(initial=0.0)), float(np.abs(row).sum())
        reach = total * 2.0 ** (15 - x_format)
        expected = f"small enough for whole numbers, below {_MOST_REACH:g}"
        advice = "export with floating-point weights"
        require(reach < _MOST_REACH, where, f"a row that reaches {reach:.3g}", expected, advice)
        f = 0
        if largest > 0:
            # Half a unit per entry for rounding.
            room = (2 ** (bits - 1) - 1.5) / largest, (_SUM - len(row) / 2) / total
            f = math.floor(math.log2(min(room)))
        f = min(f, 30 + ARGUMENT - x_format)
        rows.append(np.rint(row * 2.0**f))
        shifts.append(f + x_format - ARGUMENT)
    return FixedMatrix(np.array(rows).astype(np.int64), np.array(shifts, np.int64))


def bias(real: Floats) -> tuple[Ints, int]:
    """Round a bias so that it fits into 16 bits after a right shift.

    Returns:
        The integers in the format of arguments, and the shift.
    """
    largest = float(np.abs(real).max(initial=0.0)) * 2.0**ARGUMENT
    shift = max(0, math.ceil(math.log2(max(largest, 1.0) / (MOST - 0.5))))
    return np.rint(real * 2.0 ** (ARGUMENT - shift)).astype(np.int64) << shift, shift


def shifted(v: Any, shift: Any) -> Any:
    """Divide by 2^shift and round, halves up; shift left if shift < 0."""
    right = np.maximum(shift, 1)
    return np.where(
        np.asarray(shift) > 0,
        (v >> right) + ((v >> (right - 1)) & 1),
        v << np.maximum(-np.asarray(shift), 0),
    )


@dataclass(frozen=True)
class Factor:
    """A constant, or one constant per neuron: value = m * 2^-f."""

    m: Any
    f: int

    def times(self, v: Any, v_format: int, to: int) -> Any:
        """Return its product with 16-bit integers in another format."""
        return shifted(self.m * v, min(31, self.f + v_format - to))


def factor(real: Any) -> Factor:
    """Round a constant to 15 bits (the largest of several)."""
    largest = float(np.abs(real).max())
    f = 0 if largest == 0 else min(40, math.floor(math.log2(MOST / largest)))
    m = np.rint(np.asarray(real) * 2.0**f).astype(np.int64)
    return Factor(m if m.ndim else int(m), f)


def state_format(largest: float, most: int = 24) -> int:
    """Return the format for a variable's largest calibration value plus a tenth."""
    return min(most, math.floor(15 - math.log2(max(1.1 * largest, 2.0**-20))))


def limited(v: Ints) -> Ints:
    """Clip variables to their format."""
    return np.clip(v, -LIMIT, LIMIT)


def upper(v: Ints) -> Ints:
    """Return the upper 16 bits of variables, which enter products."""
    return np.asarray(shifted(v, HIDDEN))


def in_floats(mean: Floats, std: Floats) -> tuple[Floats, Floats]:
    """Return the means as float holds them, and the rests; 0 if no rest matters beside `std`."""
    high = mean.astype(np.float32).astype(np.float64)
    rest = mean - high
    return high, rest * np.any(np.abs(rest) / std > 1e-7)


def quantised(centred: NDArray[np.float32], gain: NDArray[np.float32]) -> NDArray[np.int16]:
    """Round samples [..., C] without their means to integers; NaN becomes ``MISSING``."""
    v = np.clip(centred * gain, -MOST, MOST)
    whole = np.trunc(v + np.where(v < 0, np.float32(-0.5), np.float32(0.5)))
    return np.where(np.isnan(v), MISSING, whole).astype(np.int16)


TABLE = np.minimum(np.rint(np.tanh(np.arange(257) / 32) * 2**VALUE), MOST).astype(np.int64)
"""tanh at 0, 1/32, ..., 8."""


def tanh(x: Ints) -> Ints:
    """Return tanh of arguments in their format, interpolated linearly in the table."""
    size = np.minimum(np.abs(x), (8 << ARGUMENT) - 1)
    at, rest = size >> 11, size & 2047
    y = TABLE[at] + (((TABLE[at + 1] - TABLE[at]) * rest + 1024) >> 11)
    y = np.where(np.abs(x) >= 8 << ARGUMENT, MOST, y)
    return np.where(x < 0, -y, y)


def sigmoid(x: Ints) -> Ints:
    """Return the sigmoid of arguments in their format: 0 to 32767."""
    return (32768 + tanh(x >> 1)) >> 1
