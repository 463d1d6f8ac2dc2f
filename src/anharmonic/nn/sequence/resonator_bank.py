"""ResonatorBank: uncoupled damped oscillators driven by a sequence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic import _checks, _tensors
from anharmonic.nn.sequence.layer import SequenceLayer
from anharmonic.ops import State
from anharmonic.ops.resonator import Driven, Pools, Propagator, pool, propagator, resonator_step


class _Terms(NamedTuple):
    frequency: Tensor
    q: Tensor
    steps: Propagator


class ResonatorBank(SequenceLayer):
    r"""Bank of driven, damped oscillators, solved exactly, called like ``nn.LSTM``.

    .. math::
        y'' = \omega^2 (u - y) - \frac{\omega}{q}\, y', \qquad u = V x + b, \qquad z = y' / \omega

    The input is held constant over a step, and the step is exact for any length (see
    ``ops.resonator.resonator_step``). The layer is linear, stable for every frequency, and exact
    for uneven sampling with ``elapsed``. Its output is y. Follow it with a nonlinearity, or use
    ``pool``.

    Use the bank inside a network that is trained with gradients. ``nn.Resonators`` and
    ``estimators.ResonatorClassifier`` are whole models, fitted in one pass.

    Parameters of layer k are ``weight_ih_lk`` [H, F or D * H] (V), ``bias_lk`` [H],
    ``log_frequency_lk`` and ``log_q_lk`` [H]; those of a reverse direction end in ``_reverse``.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether the input's map has a bias b.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also reads the sequence backwards.
        dt: Time between samples, > 0. Default 1: frequencies are in radians per sample.
        periods: Shortest and longest initial period 2 pi / omega; drawn log-uniformly in between.
        q: Lowest and highest initial quality factor, also drawn log-uniformly; below 1/2 is
            overdamped.
        trainable: Whether the parameters are trained; False gives a bank of fixed random
            resonators.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: y, z [L * D, B, H]; elapsed [T, B] likewise.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Example:
        >>> import torch
        >>> bank = ResonatorBank(6, 32, batch_first=True)
        >>> output, state = bank(torch.zeros(8, 100, 6))
        >>> output.shape, state.z.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Lanthaler, Rusch and Mishra, Neural Oscillators are Universal, NeurIPS 2023: such a bank
        computes the windowed sine transform of its input.
    """

    state_type = State
    has_step_size = True

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dt: float = 1.0,
        periods: Sequence[float] = (2.5, 1000.0),
        q: Sequence[float] = (0.5, 10.0),
        trainable: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional
        )
        self.dt = _checks.number("dt", dt, low=0.0, low_open=True)
        self.periods, self.q = _range("periods", periods), _range("q", q)
        self.trainable = _checks.boolean("trainable", trainable)
        self.make_parameters(device=device, dtype=dtype)
        self.requires_grad_(self.trainable)

    def parameter_shapes(self, input_size: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of V, b, and the logarithms of frequency and quality factor."""
        H = self.hidden_size
        return {"weight_ih": (H, input_size), "bias": (H,), "log_frequency": (H,), "log_q": (H,)}

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Draw frequencies and qualities log-uniformly, weights from U(-1/sqrt(H), 1/sqrt(H))."""
        if name == "log_frequency":
            short, long = self.periods
            parameter.uniform_(math.log(2 * math.pi / long), math.log(2 * math.pi / short))
        elif name == "log_q":
            parameter.uniform_(*map(math.log, self.q))
        else:
            super().init_parameter(name, parameter)

    def prepare(self, w: Any) -> _Terms:
        """Return frequency and quality factor, and the step over dt."""
        frequency, q = w.log_frequency.exp(), w.log_q.exp()
        return _Terms(frequency, q, propagator(frequency, q, self.dt))

    def step_function(self, u: Tensor, state: State, w: _Terms, dt: float | Tensor) -> State:
        """The equation above."""
        uneven = isinstance(dt, Tensor)
        return resonator_step(u, state, propagator(w.frequency, w.q, dt) if uneven else w.steps)

    def pool(
        self,
        x: Tensor,
        biases: Tensor,
        lengths: Tensor | None = None,
        elapsed: Tensor | None = None,
    ) -> Tensor:
        """Pool y and z of the first layer over time instead of returning them.

        Without gradients this runs in the C library, which stores no responses. Shares above a bias
        have gradient 0; all other gradients are exact.

        Args:
            x: Sequences, always [B, T, F].
            biases: Thresholds for shares and excesses, for y and for z.
            lengths: Valid steps of each sequence; all if None.
            elapsed: Time since the previous sample in steps; 1 if None.

        Shape:
            x [B, T, F]; biases [2, M, H]; lengths [B]; elapsed [B, T]. Returns [B, (4 M + 4) H]:
            for y and z, the shares of time above each bias, mean excesses, maxima and root mean
            squares.

        Example:
            >>> import torch
            >>> bank = ResonatorBank(1, 4)
            >>> bank.pool(torch.zeros(3, 10, 1), torch.zeros(2, 1, 4)).shape
            torch.Size([3, 32])
        """
        _checks.require(
            x.dim() == 3 and x.shape[1] > 0 and x.shape[2] == self.input_size,
            "x", x, f"sequences [B, T, {self.input_size}] with T >= 1", "pass a batch",
        )  # fmt: skip
        _checks.require(
            biases.dim() == 3 and biases.shape[::2] == (2, self.hidden_size),
            "biases", biases, f"of shape [2, M, {self.hidden_size}]", "pass rows for y and for z",
        )  # fmt: skip
        batch, steps, _ = x.shape
        lengths = x.new_full((batch,), steps, dtype=torch.int64) if lengths is None else lengths
        _checks.require(
            lengths.shape == (batch,) and bool(((lengths > 0) & (lengths <= steps)).all()),
            "lengths", lengths, f"{batch} numbers from 1 to {steps}", "pass the valid steps",
        )  # fmt: skip
        valid = torch.arange(steps, device=x.device) < lengths[:, None]
        weights = self.layer_weights()
        terms = self.prepare(weights)
        inputs, weight = x[valid], weights.weight_ih.t()
        if weights.bias is not None:  # one more input, which is always 1
            inputs = torch.cat([inputs, inputs.new_ones(len(inputs), 1)], dim=1)
            weight = torch.cat([weight, weights.bias[None]])
        gaps = None
        if elapsed is not None:
            _tensors.has_shape("elapsed", elapsed, (batch, steps), "give one time per sample")
            gaps = elapsed[valid].double()
            _tensors.nonnegative("elapsed", gaps)
        driven = Driven(
            inputs, torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]), weight,
            terms.frequency * self.dt, terms.q, gaps,
        )  # fmt: skip
        pools, n = Pools.of(pool(driven, biases)[1]), lengths.to(x.dtype)[:, None, None]
        found = (
            pools.above / n[..., None],
            pools.excess / n[..., None],
            pools.largest,
            (pools.square / n).clamp(min=torch.finfo(x.dtype).tiny).sqrt(),  # 0 has no slope
        )
        return torch.cat([part.flatten(1) for part in found], dim=1)


def _range(name: str, ends: Sequence[float]) -> list[float]:
    _checks.require(
        isinstance(ends, Sequence) and len(ends) == 2, name, ends, "two numbers", "pass (low, high)"
    )
    low = _checks.number(f"{name}[0]", ends[0], low=0.0, low_open=True)
    return [low, _checks.number(f"{name}[1]", ends[1], low=low)]
