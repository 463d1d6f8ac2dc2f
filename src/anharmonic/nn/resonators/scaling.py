"""Scaling of the resonators' input by statistics of the training set or of each series."""

from __future__ import annotations

from typing import Any

import numpy as np

from anharmonic import _checks

Array = np.ndarray[Any, np.dtype[Any]]

SCALINGS = ("train", "series", "running")
"""Known kinds of scaling."""

# A deviation below this share of the mean is rounding error of a constant channel.
_LEAST = 1e-8


def moments(x: Array) -> tuple[Array, Array]:
    """Return mean and deviation of each channel of [S, C], 1 for a constant one; float64."""
    mean = x.mean(axis=0, dtype=np.float64)
    deviation = np.sqrt(((x - mean) ** 2).mean(axis=0))
    return mean, np.where(deviation > _LEAST * np.abs(mean), deviation, 1.0)


def scaled(x: Array, mean: Array, deviation: Array) -> Array:
    """Return (x - mean) / deviation, computed in float64, as float32."""
    return ((x - mean) / deviation).astype(np.float32)


class RunningScale:
    """Scales each sample by the mean and deviation of the samples so far, including itself.

    Example:
        >>> scale = RunningScale((1,))
        >>> [float(scale(np.array([v]))[0]) for v in (3.0, 5.0)]
        [0.0, 1.0]
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._count = 0
        self._mean = np.zeros(shape)
        self._square = np.zeros(shape)  # sum of squared distances from the mean

    def __call__(self, x_t: Array) -> Array:
        """Return the scaled sample, float32."""
        return self.exact(x_t).astype(np.float32)

    def exact(self, x_t: Array) -> Array:
        """Return the scaled sample, float64."""
        self._count += 1
        before = x_t - self._mean
        self._mean = self._mean + before / self._count
        self._square = self._square + before * (x_t - self._mean)
        deviation = np.sqrt(self._square / self._count)
        known = deviation > _LEAST * np.abs(self._mean)
        return np.asarray((x_t - self._mean) / np.where(known, deviation, 1.0))


def scaled_running(x: Array, offsets: Array) -> Array:
    """Scale each series as ``RunningScale`` does sample by sample: [S, C] and [N + 1]."""
    lengths = np.diff(offsets)
    scale = RunningScale((len(lengths), x.shape[1]))
    result = np.empty(x.shape, np.float32)
    for t in range(int(lengths.max())):
        runs = t < lengths
        at = np.where(runs, offsets[:-1] + t, offsets[:-1])  # ended series are not used
        result[at[runs]] = scale(x[at])[runs]
    return result


def require_finite(name: str, x: Array) -> None:
    """Raise an error if there is NaN or infinity."""
    numbers = x.dtype.kind in "biuf"
    came, advice = str(x.dtype), "convert it"
    _checks.require(numbers, name, came, "an array of real numbers", advice, TypeError)
    _checks.require(
        bool(np.isfinite(x).all()),
        name,
        "NaN or infinity",
        "finite numbers",
        "fill gaps before, e.g. forward",
    )
