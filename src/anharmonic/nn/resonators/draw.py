"""Random resonators and their biases, drawn for series of a given length."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from anharmonic.ops.resonator import Driven, Pools, Propagator, propagator

Array = np.ndarray[Any, np.dtype[Any]]

SLOW = 0.2
"""Oscillators with a period of at least this fraction of a series give their last value."""
MOST_SAMPLES = 2**24
"""Largest number of samples of a series; float32 pools count no further."""
_MOST_CHANNELS = 9
# Width of a comparison of lengths, in standard deviations of their logarithm.
_LENGTH_WIDTH = 0.4
POOLS = (
    "share", "excess", "run", "stretches", "crossings", "position", "largest", "smallest", "rms",
    "competition", "end", "length",
)  # fmt: skip
"""Names of all pools."""
DEFAULT_POOLS = (
    "share", "stretches", "crossings", "position", "largest", "smallest", "competition", "end",
    "length",
)  # fmt: skip
"""Names of the default pools."""


def num_features(name: str, oscillators: int, biases: int, slow: int, lengths: int) -> int:
    """Return the number of features of a pool, given the numbers of all that has features.

    ``slow`` oscillators give their last value; ``lengths`` compare the length of a series.
    """
    each = {"share": biases, "excess": biases, "crossings": biases, "stretches": 2 * biases}
    counts = {"position": 2 * (-(-oscillators // 2)), "end": 2 * slow, "length": lengths}
    return counts.get(name, 2 * oscillators * (each | {"competition": 2}).get(name, 1))


class Bank(NamedTuple):
    """Resonators, and the thresholds of their pools.

    Attributes:
        weight: Weights of channels and their first differences in each oscillator's input.
        frequency: In radians per sample.
        q: Quality factor.
        biases: Thresholds of y and z.
        slow: Indices of the oscillators whose last value is a feature.
        step: ``propagator(frequency, q)``.
        scale: Factors on y and z before they compete; None if they do not.
        lengths: Lengths to compare a series' length with, and the width of each comparison.

    Shape:
        weight [2 C, K]; frequency and q [K]; biases [2, B, K]; scale [2, K]; lengths [2, L].
    """

    weight: Tensor
    frequency: Tensor
    q: Tensor
    biases: Tensor
    slow: Tensor
    step: Propagator
    scale: Tensor | None = None
    lengths: Tensor = torch.zeros(2, 0)

    def driven(self, read: Tensor, offsets: Tensor, elapsed: Tensor | None = None) -> Driven:
        """Return the resonators with their input weights."""
        return Driven(read, offsets, self.weight, self.frequency, self.q, elapsed, self.step)

    def features(
        self, state: Tensor, pooled: Tensor, steps: Tensor, names: tuple[str, ...]
    ) -> Array:
        """Return features [N, D] of sequences from their pooled responses.

        state [N, 2, K] holds y and z at the end; pooled is [N, 2, 6 B + 6, K]; steps [N] are >= 1.
        """
        pools, n = Pools.of(pooled), steps.to(pooled.dtype)[:, None, None]
        half = slice(None, None, 2)
        above = pools.above[:, :, 0, half]
        made: dict[str, Callable[[], Tensor]] = {
            "share": lambda: pools.above / n[..., None],
            "excess": lambda: pools.excess / n[..., None],
            "run": lambda: pools.longest[:, :, 0] / n,
            "stretches": lambda: torch.cat([pools.longest, pools.longest_below], 2) / n[..., None],
            "crossings": lambda: pools.crossings / n[..., None],
            "position": lambda: torch.where(
                above > 0, pools.position[..., half] / (above.clamp(min=1) * n), -1.0
            ),
            "largest": lambda: pools.largest,
            "smallest": lambda: pools.smallest,
            "competition": lambda: torch.stack([pools.most, pools.least], 2) / n[..., None],
            "rms": lambda: (pools.square / n).sqrt(),
            "end": lambda: state[:, :, self.slow],
            "length": lambda: self._length_features(steps.to(pooled.dtype)),
        }
        return torch.cat([made[name]().flatten(1) for name in names], dim=1).numpy()

    def _length_features(self, steps: Tensor) -> Tensor:
        """Return features [N, L], alternately a soft step and a bump at each length."""
        x = (steps[:, None] - self.lengths[0]) / self.lengths[1]
        is_step = torch.arange(x.shape[1]) % 2 == 0
        return torch.where(is_step, x / (1 + x.abs()), 1 / (1 + x * x))


class Ranges(NamedTuple):
    """Ranges of log-uniform draws: periods in samples, and quality factors."""

    periods: tuple[float, float]
    q: tuple[float, float]


def draw_bank(
    rng: np.random.Generator, channels: int, oscillators: int, length: float, ranges: Ranges
) -> Bank:
    """Draw random resonators without biases, for series of ``length`` samples.

    Half of them read channels, half first differences of channels. Each reads one channel, or a sum
    of several with random signs.
    """
    weight = _draw_weight(rng, channels, oscillators)
    period = _log_uniform(rng, *ranges.periods, oscillators)
    frequency = torch.from_numpy(2 * math.pi / period).float()
    q = torch.from_numpy(_log_uniform(rng, *ranges.q, oscillators)).float()
    return Bank(
        torch.from_numpy(weight),
        frequency,
        q,
        torch.zeros(2, 0, oscillators),
        torch.from_numpy(np.flatnonzero(period >= SLOW * length)),
        propagator(frequency, q),
    )


def _draw_weight(rng: np.random.Generator, channels: int, oscillators: int) -> Array:
    weight = np.zeros((2 * channels, oscillators), np.float32)
    if channels == 1:
        rng.random(oscillators)  # keeps the random numbers aligned with the branch below
        weight[(2 * np.arange(oscillators) >= oscillators).astype(int), np.arange(oscillators)] = 1
        return weight
    for k in range(oscillators):
        number = int(2 ** rng.uniform(0, math.log2(min(channels, _MOST_CHANNELS) + 1)))
        chosen = rng.choice(channels, min(number, channels), replace=False)
        signs = rng.choice([-1.0, 1.0], len(chosen)) if len(chosen) > 1 else 1.0
        weight[chosen + channels * (2 * k >= oscillators), k] = signs
    return weight


def draw_quantiles(rng: np.random.Generator, sample: Tensor, number: int) -> Tensor:
    """Draw random quantiles of each oscillator's responses from a sample.

    Shape:
        sample [samples, 2, K]; result [2, number, K].
    """
    at = torch.from_numpy(rng.integers(len(sample), size=(number, *sample.shape[1:])))
    return sample.gather(0, at).transpose(0, 1).contiguous()


def draw_lengths(rng: np.random.Generator, lengths: Array, number: int) -> Tensor:
    """Draw lengths of training series and the widths of comparisons with them, [2, L].

    L is 0 if all series have the same length.
    """
    if lengths.min() == lengths.max():
        return torch.zeros(2, 0)
    spread = _LENGTH_WIDTH * float(np.log(lengths).std())
    drawn = torch.from_numpy(rng.choice(lengths, number)).float()
    return torch.stack([drawn, spread * drawn])


def _log_uniform(rng: np.random.Generator, low: float, high: float, size: int) -> Array:
    return np.exp(rng.uniform(math.log(low), math.log(high), size))
