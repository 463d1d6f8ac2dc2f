"""Features of series for a linear model: what a bank of random resonators does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn.resonators.scaling import SCALINGS, Array, RunningScale, moments, scaled
from anharmonic.ops.recurrence import State
from anharmonic.ops.resonator import (
    Driven,
    Pools,
    Propagator,
    features_of,
    no_pools,
    pool_reference,
    propagator,
    respond_reference,
)

SHORTEST_PERIOD, LONGEST_PERIOD = 2.5, 2.0
"""Periods are drawn from 2.5 steps to twice the length of a series."""
LOWEST_Q, HIGHEST_Q = 0.3, 5.0
_SERIES_FOR_BIASES, _SAMPLES_FOR_BIASES = 32, 32
_AT_ONCE = 256


class _Bank(NamedTuple):
    weight: Tensor
    steps: Propagator
    biases: Tensor


class ResonatorFeatures:
    """Features of series: random damped oscillators are driven by them, and pooled.

    Each oscillator reads a random mixture of channels, every other one their first differences, at
    a random frequency and damping. From its position y and its velocity over its frequency
    are pooled the share of time above each of its biases and the mean excess above it, the largest
    value and the root mean square. A linear model of the standardised features is a good
    classifier of small data sets, without anything to tune.

    Args:
        num_oscillators: How many oscillators, >= 1.
        num_biases: Biases of each oscillator, >= 1, quantiles of its responses to training series.
        scaling: "train" scales channels by mean and deviation of the training set; "series" scales
            every series by its own, which needs its end and so does not stream; "running" by those
            of its samples so far.
        seed: Of everything that is drawn.

    Shape:
        Series are arrays [T, C], in a list (lengths may differ) or as one array [N, T, C]; features
        are float32 [N, D].

    Raises:
        ValueError: If an argument is outside its range.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> series = [rng.normal(size=(length, 1)) for length in (30, 40, 50)]
        >>> features = ResonatorFeatures(num_oscillators=20, num_biases=1).fit(series)
        >>> features.transform(series).shape
        (3, 160)
    """

    def __init__(
        self,
        num_oscillators: int = 800,
        num_biases: int = 2,
        scaling: str = "train",
        seed: int = 0,
    ) -> None:
        self.num_oscillators = _checks.positive_int("num_oscillators", num_oscillators)
        self.num_biases = _checks.positive_int("num_biases", num_biases)
        self.scaling = _checks.choice("scaling", scaling, SCALINGS)
        self.seed = _checks.natural("seed", seed)
        self.num_channels: int | None = None

    @property
    def num_features(self) -> int:
        """D, the number of features of a series."""
        return (4 * self.num_biases + 4) * self.num_oscillators

    def fit(self, sequences: Sequence[Array] | Array) -> Self:
        """Draws the oscillators, and their biases from what training series do to them.

        Raises:
            ValueError: If there is no series, one is empty, shapes differ or a number is not
                finite.
        """
        x, offsets = _packed(sequences)
        rng = np.random.default_rng(self.seed)
        self.num_channels = x.shape[1]
        self._mean, self._deviation = moments(x)
        length = float(np.median(np.diff(offsets)))
        weight = _mixtures(rng, self.num_channels, self.num_oscillators)
        shortest, longest = SHORTEST_PERIOD, max(LONGEST_PERIOD * length, 2 * SHORTEST_PERIOD)
        period = _log_uniform(rng, shortest, longest, self.num_oscillators)
        q = _log_uniform(rng, LOWEST_Q, HIGHEST_Q, self.num_oscillators)
        steps = propagator(
            torch.from_numpy(2 * math.pi / period).float(), torch.from_numpy(q).float()
        )
        self._bank = _Bank(torch.from_numpy(weight), steps, torch.zeros(2, 1, 1))
        sample = self._sampled_responses(x, offsets, rng)
        self._bank = self._bank._replace(biases=_quantiles(sample, self.num_biases, rng))
        return self

    def transform(self, sequences: Sequence[Array] | Array) -> Array:
        """The features of each series, float32 [N, D]; what else is in the batch has no effect.

        Raises:
            ValueError: As ``fit``, or if it was not called, or with another number of channels.
        """
        self._fitted()
        x, offsets = _packed(sequences, self.num_channels)
        found = []
        for first in range(0, len(offsets) - 1, _AT_ONCE):
            part = offsets[first : first + _AT_ONCE + 1]
            driven = self._driven(x[part[0] : part[-1]], part - part[0])
            _, pools = pool_reference(driven, self._bank.biases, *self._start(len(part) - 1))
            found.append(features_of(pools, driven.offsets.diff()).numpy())
        return np.concatenate(found)

    def fit_transform(self, sequences: Sequence[Array] | Array) -> Array:
        """``fit``, then the features of the same series."""
        return self.fit(sequences).transform(sequences)

    def stream(self, num_streams: int = 1) -> ResonatorStream:
        """Begins series whose samples come one by one: features of what has come, at any time.

        They are those of ``transform`` to the last bit.

        Args:
            num_streams: How many series run side by side, >= 1.

        Raises:
            ValueError: If ``fit`` was not called, or each series is scaled by itself.
        """
        self._fitted()
        _checks.require(
            self.scaling != "series",
            "scaling",
            self.scaling,
            "'train' or 'running' for a stream, as a series' own scale is known at its end",
            "fit with scaling='train'",
        )
        return ResonatorStream(self, _checks.positive_int("num_streams", num_streams))

    def _fitted(self) -> None:
        _checks.require(
            self.num_channels is not None,
            "features",
            self.__class__.__name__,
            "fitted before they are used",
            "call fit(sequences) first",
        )

    def _driven(self, x: Array, offsets: Array) -> Driven:
        """The bank, driven by what it reads: scaled channels and their differences."""
        read = np.empty((len(x), 2 * x.shape[1]), np.float32)
        channels = x.shape[1]
        for start, end in itertools.pairwise(offsets):
            read[start:end, :channels] = self._scaled(x[start:end])
        read[:1, channels:] = 0
        read[1:, channels:] = read[1:, :channels] - read[:-1, :channels]
        read[offsets[:-1], channels:] = 0
        return Driven(
            torch.from_numpy(read), torch.from_numpy(offsets), self._bank.weight, self._bank.steps
        )

    def _scaled(self, series: Array) -> Array:
        if self.scaling == "train":
            return scaled(series, self._mean, self._deviation)
        if self.scaling == "series":
            return scaled(series, *moments(series))
        running = RunningScale(series.shape[1:])
        return np.stack([running(x_t) for x_t in series])

    def _start(self, number: int) -> tuple[State, Pools]:
        rest = torch.zeros(number, self.num_oscillators)
        return State(rest, rest), no_pools(rest, number, self._bank.biases)

    def _sampled_responses(self, x: Array, offsets: Array, rng: np.random.Generator) -> Tensor:
        """Responses y and z to some training series at some times, [samples, 2, K]."""
        number = len(offsets) - 1
        found = []
        for n in rng.choice(number, min(number, _SERIES_FOR_BIASES), replace=False):
            part = x[offsets[n] : offsets[n + 1]]
            driven = self._driven(part, np.array([0, len(part)]))
            responses = torch.stack(respond_reference(driven, self._start(1)[0]), dim=1)
            at = rng.integers(len(part), size=_SAMPLES_FOR_BIASES)
            found.append(responses[torch.from_numpy(at)])
        return torch.cat(found)


class ResonatorStream:
    """Series whose samples come one by one; ``ResonatorFeatures.stream`` makes it.

    Example:
        >>> import numpy as np
        >>> series = np.random.default_rng(0).normal(size=(3, 30, 1))
        >>> features = ResonatorFeatures(num_oscillators=20).fit(series)
        >>> stream = features.stream(num_streams=3)
        >>> for t in range(30):
        ...     stream.update(series[:, t])
        >>> bool((stream.features() == features.transform(series)).all())
        True
    """

    def __init__(self, features: ResonatorFeatures, num_streams: int) -> None:
        self._features, self.num_streams = features, num_streams
        self.reset()

    def reset(self) -> None:
        """Begins anew: forgets all samples."""
        made = self._features
        self.num_steps = 0
        self._state, self._pools = made._start(self.num_streams)
        self._running = RunningScale((self.num_streams, made.num_channels or 0))
        self._before: Array | None = None

    def update(self, x_t: Array) -> None:
        """Takes the next sample of each stream, [num_streams, C], or [C] if there is one.

        Raises:
            ValueError: If it has another shape or a number that is not finite.
        """
        made, shape = self._features, (self.num_streams, self._features.num_channels or 0)
        x_t = np.asarray(x_t, np.float64)
        if x_t.ndim == 1 and self.num_streams == 1:
            x_t = x_t[None]
        _checks.require(
            x_t.shape == shape, "x_t", x_t.shape, f"of shape {shape}", "pass a sample per stream"
        )
        _require_finite("x_t", x_t)
        if made.scaling == "running":
            now = self._running(x_t)
        else:
            now = scaled(x_t, made._mean, made._deviation)
        change = np.zeros_like(now) if self._before is None else now - self._before
        self._before = now
        driven = Driven(
            torch.from_numpy(np.concatenate([now, change], axis=1)),
            torch.arange(self.num_streams + 1),
            made._bank.weight,
            made._bank.steps,
        )
        self._state, self._pools = pool_reference(
            driven, made._bank.biases, self._state, self._pools
        )
        self.num_steps += 1

    def features(self) -> Array:
        """The features of what has come so far, float32 [num_streams, D].

        Raises:
            ValueError: If no sample has come.
        """
        _checks.require(
            self.num_steps > 0, "stream", 0, "one with samples", "call update(x_t) first"
        )
        return features_of(self._pools, torch.full((self.num_streams,), self.num_steps)).numpy()


def _packed(sequences: Any, channels: int | None = None) -> tuple[Array, Array]:
    """All samples in a row [S, C], as they came, and where each series begins, int64 [N + 1]."""
    series = [np.asarray(s) for s in sequences]
    _checks.require(
        len(series) > 0, "sequences", len(series), "at least one series", "pass [N, T, C] or a list"
    )
    channels = series[0].shape[-1] if channels is None and series[0].ndim else channels
    for number, s in enumerate(series):
        _checks.require(
            s.ndim == 2 and len(s) > 0 and s.shape[1] == channels,
            f"sequences[{number}]",
            s.shape,
            f"an array [T, C] with T >= 1 and C = {channels}",
            "pass every series as steps by channels",
        )
        _require_finite(f"sequences[{number}]", s)
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in series])]).astype(np.int64)
    return np.concatenate(series), offsets


def _require_finite(name: str, x: Array) -> None:
    finite = np.isfinite(x).all()
    _checks.require(
        bool(finite), name, "NaN or infinity", "finite numbers", "fill gaps before, e.g. forward"
    )


def _log_uniform(rng: np.random.Generator, low: float, high: float, size: int) -> Array:
    return np.exp(rng.uniform(math.log(low), math.log(high), size))


def _mixtures(rng: np.random.Generator, channels: int, oscillators: int) -> Array:
    """What each oscillator reads, [2 C, K]: channels with random signs, or their differences."""
    weight = np.zeros((2 * channels, oscillators), np.float32)
    for k in range(oscillators):
        number = int(2 ** rng.uniform(0, math.log2(min(channels, 9) + 1)))
        chosen = rng.choice(channels, min(number, channels), replace=False)
        signs = rng.choice([-1.0, 1.0], len(chosen)) if len(chosen) > 1 else 1.0
        weight[chosen + channels * (k % 2), k] = signs
    return weight


def _quantiles(sample: Tensor, biases: int, rng: np.random.Generator) -> Tensor:
    """Of the responses of every oscillator, [samples, 2, K] -> [2, biases, K]."""
    ordered = sample.sort(dim=0).values
    at = torch.from_numpy(rng.integers(len(sample), size=(biases, *sample.shape[1:])))
    return ordered.gather(0, at).transpose(0, 1).contiguous()
