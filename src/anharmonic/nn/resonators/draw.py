"""Random resonators for series of some length, and their biases."""

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
"""The end of a series is read from oscillators with a period of at least this part of it."""
_MOST_CHANNELS = 9
POOLS = ("share", "excess", "run", "position", "largest", "rms", "end")
"""What can be pooled, in the order of the features."""


class Bank(NamedTuple):
    """Resonators: weight [2 C, K], frequency [K], q [K], biases [2, B, K], slow (indices), step."""

    weight: Tensor
    frequency: Tensor
    q: Tensor
    biases: Tensor
    slow: Tensor
    step: Propagator

    def driven(self, read: Tensor, offsets: Tensor, elapsed: Tensor | None = None) -> Driven:
        """The resonators with what drives them."""
        return Driven(read, offsets, self.weight, self.frequency, self.q, elapsed, self.step)

    def features(
        self, state: Tensor, pooled: Tensor, steps: Tensor, names: tuple[str, ...]
    ) -> Array:
        """Return features [N, D] of sequences, from what was pooled of so many steps >= 1.

        state [N, 2, K] holds y and z at the end; pooled is [N, 2, 2 B + 5, K], steps [N].
        """
        pools, n = Pools.of(pooled), steps.to(pooled.dtype)[:, None, None]
        half = slice(None, None, 2)
        above = pools.above[:, :, 0, half]
        made: dict[str, Callable[[], Tensor]] = {
            "share": lambda: pools.above / n[..., None],
            "excess": lambda: pools.excess / n[..., None],
            "run": lambda: pools.longest / n,
            "position": lambda: torch.where(
                above > 0, pools.position[..., half] / (above.clamp(min=1) * n), -1.0
            ),
            "largest": lambda: pools.largest,
            "rms": lambda: (pools.square / n).sqrt(),
            "end": lambda: state[:, :, self.slow],
        }
        return torch.cat([made[name]().flatten(1) for name in names], dim=1).numpy()


class Ranges(NamedTuple):
    """What is drawn log-uniformly: periods in samples, and qualities."""

    periods: tuple[float, float]
    q: tuple[float, float]


def draw_bank(
    rng: np.random.Generator, channels: int, oscillators: int, length: float, ranges: Ranges
) -> Bank:
    """Random resonators; their biases are still missing.

    Half of them read channels, half their first differences: one channel or the sum of some, with
    random signs.

    Args:
        rng: Source of all randomness.
        channels: C.
        oscillators: K.
        length: Samples of a typical series.
        ranges: Of periods and qualities.
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
        rng.random(oscillators)  # as many numbers as below, where nothing is left to choose
        weight[(2 * np.arange(oscillators) >= oscillators).astype(int), np.arange(oscillators)] = 1
        return weight
    for k in range(oscillators):
        number = int(2 ** rng.uniform(0, math.log2(min(channels, _MOST_CHANNELS) + 1)))
        chosen = rng.choice(channels, min(number, channels), replace=False)
        signs = rng.choice([-1.0, 1.0], len(chosen)) if len(chosen) > 1 else 1.0
        weight[chosen + channels * (2 * k >= oscillators), k] = signs
    return weight


def draw_quantiles(rng: np.random.Generator, sample: Tensor, number: int) -> Tensor:
    """Random quantiles of the responses of every oscillator: random ones of a sample.

    Shape:
        sample [samples, 2, K]; result [2, number, K].
    """
    at = torch.from_numpy(rng.integers(len(sample), size=(number, *sample.shape[1:])))
    return sample.gather(0, at).transpose(0, 1).contiguous()


def _log_uniform(rng: np.random.Generator, low: float, high: float, size: int) -> Array:
    return np.exp(rng.uniform(math.log(low), math.log(high), size))
