"""UnICORNN: undamped independent controlled oscillatory recurrent neural network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn.sequence.cell import SequenceCell
from anharmonic.nn.sequence.layer import SequenceLayer
from anharmonic.nn.stability import warn_unstable
from anharmonic.ops import State, UnICORNNEquation

KAIMING_SLOPE = 8  # in the paper's initialisation of V


def _time_steps(layer: Any) -> list[float]:
    """Return the time step of every layer; a cell has one."""
    dt = layer.dt
    return list(dt) if isinstance(dt, list) else [dt] * getattr(layer, "num_layers", 1)


class UnICORNN(SequenceLayer):
    r"""Undamped independent oscillators with learned time scales, called like ``nn.LSTM``.

    Equations (3.1), with y the positions, z the velocities and u the input:

    .. math::
        y'' = -[\tanh(w \odot y + V u + b) + \alpha y]

    Discretisation (3.6) for layer l, with learned time scales :math:`h^l = dt^l\,\hat\sigma(c^l)`
    and :math:`y_n^0 = u_n`:

    .. math::
        x_n^l &= V^l y_n^{l-1} + b^l \quad (+\ \Lambda^l y_n^{l-S-1} \text{ if } l > S) \\
        z_n^l &= z_{n-1}^l - h^l \odot [\tanh(w^l \odot y_{n-1}^l + x_n^l) + \alpha y_{n-1}^l] \\
        y_n^l &= y_{n-1}^l + h^l \odot z_n^l

    The step is exactly invertible, (3.7), and preserves volume. The term in brackets is the
    residual stacking (3.79).

    Parameters of layer k are ``weight_ih_lk`` (V) [H, F or D * H], ``weight_hh_lk`` (w),
    ``bias_lk`` and ``timescale_lk`` (c) [H], and ``weight_skip_lk`` (Λ) where a skip connection
    ends. Those of a reverse direction end in ``_reverse``. Frozen time scales are buffers of the
    same name.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also reads the sequence backwards.
        memory: What to keep for the backward pass. "stored" keeps all states, "chunked" keeps some
            and recomputes the rest, "reversible" keeps the final state only (one direction), "auto"
            chooses one of the first two.
        dt: Largest step size, > 0: one number, or a list with one per layer. Default 0.1.
        frequency: Frequency control α, >= 0. Default 1.
        trainable_timescales: Whether the time scales c are learned.
        input_scale: Factor, >= 0, of the first layer's initial V. From about 8 on, tanh acts as a
            gate from the start, which helps to find single steps in a long sequence. Default 1.
        timescale_range: The time scales c start uniformly within plus or minus this number, >= 0.
            Default 0.1. A value of 2 spreads the steps h from dt / 8 to 7 dt / 8.
        skipped_layers: S >= 2 adds to each layer l > S the output of level l - S - 1 through a
            learned matrix Λ; None stacks plainly.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: y and z [L * D, B, H]; elapsed [T, B] likewise.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Note:
        The linear part is stable iff h sqrt(α) < 2 for every neuron. Since h < dt, a
        ``StabilityWarning`` appears if dt sqrt(α) >= 2. With ``elapsed`` e_n, step n uses h e_n
        instead of h, and the condition must hold for the longest gap. ``memory="reversible"``
        rounds every increment to a multiple of 2⁻⁴⁰ and keeps states within 1024 (otherwise
        ``OverflowError``). Each step can then be undone bit for bit, while plain inversion in
        floating point drifts. In (3.79) the first skip connection, l = S + 1, starts at the input,
        so its Λ is [H, F]. (Starting one layer later would leave L = 3, S = 2, which the paper
        reports, without any skip.) Λ is initialised like V, which the paper does not state. Skips
        carry what the next layer sees, so dropout acts on both. The published code also applies
        dropout after the last layer; this layer applies it only between layers, as PyTorch does.

    Example:
        >>> import torch
        >>> layer = UnICORNN(6, 32, num_layers=3, dt=0.1, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.y.shape
        (torch.Size([8, 100, 32]), torch.Size([3, 8, 32]))

    References:
        Rusch and Mishra, UnICORNN: A recurrent model for learning very long time dependencies,
        ICML 2021.
    """

    state_type = State
    has_step_size = True
    _steps = property(_time_steps)
    _invertible = True

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
        memory: str = "auto",
        dt: float | list[float] = 0.1,
        frequency: float = 1.0,
        trainable_timescales: bool = True,
        input_scale: float = 1.0,
        timescale_range: float = 0.1,
        skipped_layers: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, memory
        )
        self._set(dt, frequency, trainable_timescales, num_layers)
        self.input_scale = _checks.number("input_scale", input_scale, low=0.0)
        self.timescale_range = _checks.number("timescale_range", timescale_range, low=0.0)
        if skipped_layers is not None:
            _checks.positive_int("skipped_layers", skipped_layers)
            _checks.require(
                2 <= skipped_layers < num_layers, "skipped_layers", skipped_layers,
                f"None or at least 2 and below num_layers={num_layers}",
                "stack more layers or skip fewer",
            )  # fmt: skip
        self.skipped_layers = skipped_layers
        self.make_parameters(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Redraw every weight and set b to 0.

        V is Kaiming-uniform (slope 8); the first layer's is multiplied by ``input_scale``. w is
        from U(0, 1), c from U(-timescale_range, timescale_range).
        """
        super().reset_parameters()
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.startswith("weight_ih_l0"):
                    parameter.mul_(self.input_scale)

    def equation(self) -> UnICORNNEquation:
        """Return the equation with the current parameter values."""
        return UnICORNNEquation(tuple(self._steps), self.frequency, self.skipped_layers)

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Initialise V and Λ Kaiming-uniform (slope 8), w from U(0, 1), c around 0, b with 0."""
        if name in ("weight_ih", "weight_skip"):
            torch.nn.init.kaiming_uniform_(parameter, a=KAIMING_SLOPE)
        elif name == "weight_hh":
            parameter.uniform_(0.0, 1.0)
        elif name == "timescale":
            parameter.uniform_(-self.timescale_range, self.timescale_range)
        else:
            parameter.zero_()

    def _frozen_names(self) -> frozenset[str]:
        return frozenset() if self.trainable_timescales else frozenset({"timescale"})

    def _set(
        self: Any,
        dt: float | Sequence[float],
        frequency: float,
        trainable_timescales: bool,
        num_layers: int,
    ) -> None:
        self.frequency = _checks.number("frequency", frequency, low=0.0)
        self.trainable_timescales = _checks.boolean("trainable_timescales", trainable_timescales)
        if isinstance(dt, list | tuple):
            _checks.require(
                len(dt) == num_layers, "dt", dt, f"one number or one for each of {num_layers} "
                "layers (num_layers)", "give as many steps as layers",
            )  # fmt: skip
            self.dt: float | list[float] = [
                _checks.number(f"dt[{k}]", v, low=0.0, low_open=True) for k, v in enumerate(dt)
            ]
        else:
            self.dt = _checks.number("dt", dt, low=0.0, low_open=True)
        self._warn_unstable()

    def _warn_unstable(self, longest: float = 1.0) -> bool:
        largest = max(self._steps) * longest
        if largest * math.sqrt(self.frequency) >= 2:
            return warn_unstable(
                "h * sqrt(frequency) < 2 must hold, where h = dt * sigmoid(timescale) < dt",
                f"dt={max(self._steps):g}, frequency={self.frequency:g}, "
                f"dt * sqrt(frequency)={largest * math.sqrt(self.frequency):.3g}",
                "use a smaller dt or frequency",
                longest,
            )
        return False


class UnICORNNCell(SequenceCell):
    r"""One step of one UnICORNN layer, (3.5) with learned time scales.

    Parameters are ``weight_ih`` [H, F], ``weight_hh``, ``bias`` and ``timescale`` [H].

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons, H >= 1.
        bias: Whether the affine maps have a bias.
        dt: Largest step size, > 0. Default 0.1.
        frequency: Frequency control α, >= 0. Default 1.
        trainable_timescales: Whether the time scales c are learned.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x_t [B, F] or [F]; state (y, z) [B, H] or [H] each; elapsed [B] or []. Returns the new
        state; its y is the output.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Example:
        >>> import torch
        >>> cell = UnICORNNCell(6, 32)
        >>> state = cell(torch.zeros(8, 6))
        >>> cell(torch.zeros(8, 6), state).y.shape
        torch.Size([8, 32])

    References:
        Rusch and Mishra, UnICORNN, ICML 2021.
    """

    layer_class = UnICORNN
    _steps = UnICORNN._steps
    skipped_layers = None
    timescale_range = 0.1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        dt: float = 0.1,
        frequency: float = 1.0,
        trainable_timescales: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias)
        UnICORNN._set(self, _checks.number("dt", dt), frequency, trainable_timescales, 1)
        self.make_parameters(device=device, dtype=dtype)
