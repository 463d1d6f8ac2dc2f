"""Streams of resonators, updated sample by sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn.resonators.draw import MOST_SAMPLES, Bank
from anharmonic.nn.resonators.scaling import Array, RunningScale, require_finite, scaled
from anharmonic.ops.resonator import at_rest, in_place, no_pools

_STEPS = ("_even", "_uneven")


class ResonatorStream:
    """A stream of series, updated sample by sample; made by ``ResonatorFeatures.stream``.

    It can be pickled and copied.

    Args:
        bank: The resonators.
        pools: Names of the pools.
        constants: Mean and deviation of channels; None uses those of the samples so far.
        num_streams: Number of parallel series.

    Example:
        >>> import numpy as np
        >>> from anharmonic.nn import ResonatorFeatures
        >>> series = np.random.default_rng(0).normal(size=(3, 30, 1))
        >>> features = ResonatorFeatures(num_oscillators=20).fit(series)
        >>> stream = features.stream(num_streams=3)
        >>> for t in range(30):
        ...     stream.update(series[:, t])
        >>> bool((stream.features() == features.transform(series)).all())
        True
    """

    def __init__(
        self,
        bank: Bank,
        pools: tuple[str, ...],
        constants: tuple[Array, Array] | None,
        num_streams: int,
    ) -> None:
        self.num_streams = num_streams
        self._bank, self._pools, self._constants = bank, pools, constants
        self._channels = len(bank.weight) // 2
        self._each = torch.arange(num_streams + 1)
        self.reset()

    def reset(self) -> None:
        """Restart and forget all samples."""
        self.num_steps = 0
        shape = (self.num_streams, self._channels)
        self._running = None if self._constants is not None else RunningScale(shape)
        self._read = torch.zeros(self.num_streams, 2 * self._channels)
        self._before = torch.zeros(self.num_streams, dtype=torch.int64)
        self._state = at_rest(self.num_streams, self._bank.driven(self._read, self._each))
        self._pooled = no_pools(self.num_streams, self._bank.biases)
        self._gaps = torch.ones(self.num_streams, dtype=torch.float64)
        self._bind()

    def _bind(self) -> None:
        """Make the two steps, which hold the addresses of these tensors."""
        self._even, self._uneven = self._step(None), self._step(self._gaps)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs; it makes its own steps."""
        return {name: value for name, value in vars(self).items() if name not in _STEPS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._bind()

    def _step(self, gaps: Tensor | None) -> Callable[[], None]:
        driven = self._bank.driven(self._read, self._each, gaps)
        return in_place(
            driven, self._bank.biases, self._state, self._pooled, self._before, self._bank.scale
        )

    def update(self, x_t: Array, elapsed: float | None = None) -> None:
        """Take the next sample of each stream, of at most 2^24.

        Args:
            x_t: The samples.
            elapsed: Time since the previous samples, >= 0, in samples; None means 1.

        Shape:
            x_t [num_streams, C], or [C] if there is one stream.

        Raises:
            ValueError: If its shape is wrong, a number is not finite, or there were 2^24 samples.
        """
        if self.num_steps >= MOST_SAMPLES:
            came, expected = f"{self.num_steps} samples", f"of <= {MOST_SAMPLES} samples"
            _checks.require(False, "stream", came, expected, "call reset()")
        x_t, shape = np.asarray(x_t), (self.num_streams, self._channels)
        if x_t.ndim == 1 and self.num_streams == 1:
            x_t = x_t[None]
        _checks.require(
            x_t.shape == shape, "x_t", x_t.shape, f"of shape {shape}", "pass a sample per stream"
        )
        require_finite("x_t", x_t)
        if elapsed is not None:
            self._gaps.fill_(_checks.number("elapsed", elapsed, low=0.0))
        if self._running is not None:
            now = self._running(x_t)
        else:
            assert self._constants is not None
            now = scaled(x_t, *self._constants)
        read, C = self._read.numpy(), self._channels
        read[:, C:] = now - read[:, :C] if self.num_steps else 0
        read[:, :C] = now
        self._before.fill_(self.num_steps)
        if elapsed is None:
            self._even()
        else:
            self._uneven()
        self.num_steps += 1

    def features(self) -> Array:
        """Return the features of the samples so far, float32 [num_streams, D].

        Raises:
            ValueError: If there was no sample yet.
        """
        _checks.require(
            self.num_steps > 0, "stream", 0, "one with samples", "call update(x_t) first"
        )
        steps = torch.full((self.num_streams,), self.num_steps)
        return self._bank.features(self._state, self._pooled, steps, self._pools)
