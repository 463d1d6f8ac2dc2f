"""Features of series for a linear model: pooled responses of random resonators."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn.resonators.draw import (
    DEFAULT_POOLS,
    MOST_SAMPLES,
    POOLS,
    Ranges,
    draw_bank,
    draw_lengths,
    draw_quantiles,
)
from anharmonic.nn.resonators.scaling import (
    SCALINGS,
    Array,
    moments,
    require_finite,
    scaled,
    scaled_running,
)
from anharmonic.nn.resonators.stream import ResonatorStream
from anharmonic.ops.resonator import at_rest, in_place, no_pools, pool_rows, respond

# A response without variation must not win a competition through its tiny deviation.
_LEAST_DEVIATION = 1e-6
_SERIES_FOR_BIASES, _SAMPLES_FOR_BIASES = 32, 32
# Limit for the oscillators of all streams together: 4 GB.
_MOST_STREAMED = 50_000_000
# Batch size. Pools that fit the processor's cache, in reused memory, take half the time.
_POOLED_AT_ONCE, _SAMPLES_AT_ONCE, _RESPONSES_AT_ONCE = 2_000_000, 4_000_000, 2_000_000


class ResonatorFeatures:
    """Features of series: pooled responses of random damped oscillators.

    Each oscillator reads a random sum of channels, or of their first differences, and has a random
    frequency and damping. The features pool its position y, and its velocity divided by its
    frequency, over time:

    - "share": the share of time above each of its biases;
    - "stretches": the longest stretches of time above and below each bias;
    - "crossings": how often it rises above each bias, per sample;
    - "position": the mean time at which it was above the first bias (every second oscillator);
    - "largest" and "smallest": the largest and the smallest value;
    - "competition": the shares of time in which its response was the largest, and the smallest, of
      eight oscillators, each in units of its deviation in training;
    - "end": the last value (oscillators with a period above a fifth of a series);
    - "length": the length of the series compared with random training series, if lengths differ.
      Omit it if a stream is classified before its end;
    - on request "excess", the mean excess above each bias, "rms", the root mean square, and "run",
      the longest stretch above the first bias alone.

    A linear model of the standardised features classifies small data sets well without tuning.

    Args:
        num_oscillators: Number of oscillators, >= 1.
        num_biases: Number of biases of each oscillator, >= 1; quantiles of its responses to
            training series.
        scaling: "train" scales channels by the mean and deviation of the training set. "series"
            uses those of each series, which excludes streaming. "running" uses those of the samples
            so far.
        seed: Seed of all random draws.
        pools: Names of the pools, from the list above.
        periods: The shortest period in samples, and the longest in lengths of a typical series (the
            median of the training set). Periods are drawn log-uniformly in between.
        q: Lowest and highest quality factor, also drawn log-uniformly; below 1/2 is overdamped.

    Shape:
        Series are arrays [T, C] with T <= 2^24, in a list (lengths may differ) or as one array
        [N, T, C]; features are float32 [N, D].

    Raises:
        ValueError: If an argument is outside its range.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> series = [rng.normal(size=(length, 1)) for length in (30, 40, 50)]
        >>> features = ResonatorFeatures(num_oscillators=20).fit(series)
        >>> features.transform(series).shape == (3, features.num_features)
        True
    """

    def __init__(
        self,
        num_oscillators: int = 1000,
        num_biases: int = 2,
        scaling: str = "train",
        seed: int = 0,
        pools: Sequence[str] = DEFAULT_POOLS,
        periods: tuple[float, float] = (2.5, 1.0),
        q: tuple[float, float] = (0.7, 10.0),
    ) -> None:
        self.num_oscillators = _checks.positive_int("num_oscillators", num_oscillators)
        self.num_biases = _checks.positive_int("num_biases", num_biases)
        self.scaling = _checks.choice("scaling", scaling, SCALINGS)
        self.seed = _checks.natural("seed", seed)
        self.pools = tuple(_checks.choice("pools", name, POOLS) for name in pools)
        _checks.require(
            len(self.pools) > 0, "pools", pools, "at least one name", f"choose from {POOLS}"
        )
        self.periods = _pair("periods", periods)
        self.q = _pair("q", q)
        _checks.require(
            self.q[0] <= self.q[1], "q", q, "(lowest, highest)", "pass the lower one first"
        )
        self.num_channels: int | None = None

    @property
    def num_features(self) -> int:
        """The number D of features of a series."""
        self._fitted()
        none = no_pools(1, self._bank.biases)
        rest = torch.zeros(1, 2, self.num_oscillators)
        return int(self._bank.features(rest, none, torch.ones(1), self.pools).shape[1])

    def fit(self, sequences: Sequence[Array] | Array) -> Self:
        """Draw the oscillators, and their biases from responses to training series.

        Raises:
            ValueError: If there is no series, one is empty, shapes differ or a number is not
                finite.
        """
        x, offsets = _packed(sequences)
        rng = np.random.default_rng(self.seed)
        self.num_channels = x.shape[1]
        self._mean, self._deviation = moments(x)
        length = float(np.median(np.diff(offsets)))
        shortest, longest = self.periods[0], self.periods[1] * length
        ranges = Ranges((shortest, max(longest, 2 * shortest)), self.q)
        self._bank = draw_bank(rng, self.num_channels, self.num_oscillators, length, ranges)
        sample = self._sampled_responses(x, offsets, rng)
        self._bank = self._bank._replace(biases=draw_quantiles(rng, sample, self.num_biases))
        if "competition" in self.pools:
            scale = 1 / (sample.std(dim=0, correction=0) + _LEAST_DEVIATION)
            self._bank = self._bank._replace(scale=scale)
        if "length" in self.pools:
            lengths = draw_lengths(rng, np.diff(offsets), self.num_oscillators)
            self._bank = self._bank._replace(lengths=lengths)
        return self

    def transform(
        self, sequences: Sequence[Array] | Array, elapsed: Sequence[Array] | None = None
    ) -> Array:
        """Return the features of each series, float32 [N, D], independent of the rest of the batch.

        Args:
            sequences: The series.
            elapsed: Time since the previous sample, in samples: one array [T] per series. None
                means 1 everywhere.

        Raises:
            ValueError: As for ``fit``; also if ``fit`` was not called, or the number of channels
                differs.
        """
        return np.concatenate(list(self.transform_in_parts(sequences, elapsed)))

    def transform_in_parts(
        self, sequences: Sequence[Array] | Array, elapsed: Sequence[Array] | None = None
    ) -> Iterator[Array]:
        """Yield the features of successive groups of series, to save memory.

        Args:
            sequences: As in ``transform``.
            elapsed: As in ``transform``.

        Yields:
            The features of the next series; together they equal those of ``transform``.
        """
        self._fitted()
        x, offsets = _packed(sequences, self.num_channels)
        times = None if elapsed is None else _packed_times(elapsed, offsets)
        biases = self._bank.biases
        pooled_each = self.num_oscillators * 2 * pool_rows(self.num_biases)
        for first, last in _parts(offsets, max(1, _POOLED_AT_ONCE // pooled_each)):
            part = slice(offsets[first], offsets[last])
            own = torch.from_numpy(offsets[first : last + 1] - offsets[first])
            gaps = None if times is None else times[part]
            driven = self._bank.driven(self._read(x[part], own.numpy()), own, gaps)
            state, pooled = at_rest(last - first, driven), no_pools(last - first, biases)
            before = torch.zeros(last - first, dtype=torch.int64)
            in_place(driven, biases, state, pooled, before, self._bank.scale)()
            yield self._bank.features(state, pooled, own.diff(), self.pools)

    def fit_transform(self, sequences: Sequence[Array] | Array) -> Array:
        """Call ``fit``, then return the features of the same series."""
        return self.fit(sequences).transform(sequences)

    def stream(self, num_streams: int = 1) -> ResonatorStream:
        """Start streams of series, whose features are available after any sample.

        The features equal those of ``transform`` to the last bit.

        Args:
            num_streams: Number of parallel series, >= 1.

        Raises:
            ValueError: If ``fit`` was not called, or scaling is "series".
        """
        self._fitted()
        _checks.require(
            self.scaling != "series",
            "scaling",
            self.scaling,
            "'train' or 'running' for a stream, as a series' own scale is known at its end",
            "fit with scaling='train'",
        )
        constants = (self._mean, self._deviation) if self.scaling == "train" else None
        number = _checks.positive_int("num_streams", num_streams)
        most = max(1, _MOST_STREAMED // self.num_oscillators)
        expected, advice = f"<= {most} for {self.num_oscillators} oscillators", "take fewer at once"
        _checks.require(number <= most, "num_streams", number, expected, advice)
        return ResonatorStream(self._bank, self.pools, constants, number)

    def _fitted(self) -> None:
        _checks.require(
            self.num_channels is not None,
            "features",
            self.__class__.__name__,
            "fitted before they are used",
            "call fit(sequences) first",
        )

    def _read(self, x: Array, offsets: Array) -> Tensor:
        """Return the oscillators' input: scaled channels and differences, float32 [S, 2 C]."""
        channels = x.shape[1]
        read = np.empty((len(x), 2 * channels), np.float32)
        if self.scaling == "train":
            read[:, :channels] = scaled(x, self._mean, self._deviation)
        elif self.scaling == "series":
            for start, end in itertools.pairwise(offsets):
                read[start:end, :channels] = scaled(x[start:end], *moments(x[start:end]))
        else:
            read[:, :channels] = scaled_running(x, offsets)
        read[:1, channels:] = 0
        read[1:, channels:] = read[1:, :channels] - read[:-1, :channels]
        read[offsets[:-1], channels:] = 0
        return torch.from_numpy(read)

    def _sampled_responses(self, x: Array, offsets: Array, rng: np.random.Generator) -> Tensor:
        """Return responses y and z to some training series at some times, [samples, 2, K]."""
        number, lengths = len(offsets) - 1, np.diff(offsets)
        chosen = rng.choice(number, min(number, _SERIES_FOR_BIASES), replace=False)
        times = [rng.integers(lengths[n], size=_SAMPLES_FOR_BIASES) for n in chosen]
        packed = np.concatenate([[0], np.cumsum(lengths[chosen])])
        read = [
            self._read(x[offsets[n] : offsets[n + 1]], np.array([0, lengths[n]])) for n in chosen
        ]
        found = []
        # Few calls for short series; not all responses of long ones at once.
        for first, last in _parts(packed, len(chosen), _RESPONSES_AT_ONCE // self.num_oscillators):
            own = torch.from_numpy(packed[first : last + 1] - packed[first])
            responses, _ = respond(self._bank.driven(torch.cat(read[first:last]), own))
            at = [int(start) + t for start, t in zip(own, times[first:last], strict=False)]
            found.append(responses[torch.from_numpy(np.concatenate(at))])
        return torch.cat(found)


def _pair(name: str, ends: tuple[float, float]) -> tuple[float, float]:
    _checks.require(len(ends) == 2, name, ends, "two numbers", "pass a tuple of two")
    first, second = (_checks.number(name, end, low=0.0, low_open=True) for end in ends)
    return first, second


def _packed(sequences: Any, channels: int | None = None) -> tuple[Array, Array]:
    """Return all samples concatenated [S, C], and where each series begins, int64 [N + 1]."""
    series = [np.asarray(s) for s in sequences]
    _checks.require(
        len(series) > 0, "sequences", len(series), "at least one series", "pass [N, T, C] or a list"
    )
    channels = series[0].shape[-1] if channels is None and series[0].ndim else channels
    for number, s in enumerate(series):
        if s.ndim != 2 or len(s) == 0 or s.shape[1] != channels:
            _checks.require(
                False,
                f"sequences[{number}]",
                s.shape,
                f"an array [T, C] with T >= 1 and C = {channels}",
                "pass every series as steps by channels",
            )
    lengths = [len(s) for s in series]
    _checks.require(
        max(lengths) <= MOST_SAMPLES, "sequences", f"a series of {max(lengths)} samples",
        f"series of <= {MOST_SAMPLES} samples", "cut it into shorter ones",
    )  # fmt: skip
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    x = np.concatenate(series)
    if x.dtype.kind not in "biuf" or not np.isfinite(x).all():
        for number, s in enumerate(series):
            require_finite(f"sequences[{number}]", s)
    return x, offsets


def _packed_times(elapsed: Any, offsets: Array) -> Tensor:
    times = [np.asarray(t, np.float64) for t in elapsed]
    lengths = np.diff(offsets)
    _checks.require(
        len(times) == len(lengths), "elapsed", len(times), f"a list of {len(lengths)} arrays",
        "pass one for every series",
    )  # fmt: skip
    for number, (t, length) in enumerate(zip(times, lengths, strict=True)):
        right = (t >= 0) & np.isfinite(t)
        if t.shape != (length,) or not right.all():
            came = f"shape {t.shape}" if t.shape != (length,) else f"{t[~right][0]:g}"
            expected = f"elapsed[{number}] must be finite times >= 0 of shape {(int(length),)}"
            advice = "pass the time since the previous sample for each"
            raise ValueError(_checks.message(expected, came, advice))
    return torch.from_numpy(np.concatenate(times))


def _parts(offsets: Array, most: int, samples: int = _SAMPLES_AT_ONCE) -> Iterator[tuple[int, int]]:
    """Yield first and last (exclusive) index of each group, limited in series and samples."""
    first, number = 0, len(offsets) - 1
    while first < number:
        last = int(np.searchsorted(offsets, offsets[first] + samples, "right")) - 1
        last = min(max(last, first + 1), first + most, number)
        yield first, last
        first = last
