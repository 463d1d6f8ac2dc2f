"""coRNN: coupled oscillatory recurrent neural network."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.nn.sequence.cell import SequenceCell
from anharmonic.nn.sequence.layer import EquationModule, SequenceLayer
from anharmonic.nn.stability import check_learned, warn_unstable
from anharmonic.ops import CoRNNEquation, State
from anharmonic.ops.cornn import SCHEMES


class CoRNN(SequenceLayer):
    r"""Coupled oscillatory recurrent network: a stack of layers, called like ``nn.LSTM``.

    Equations (2.1), with y the positions, z the velocities and u the input:

    .. math::
        y'' = \tanh(W y + \mathcal{W} y' + V u + b) - \gamma y - \epsilon y'

    Discretisation (2.3), with :math:`A = W y_{n-1} + \mathcal{W} z_{n-1} + V u_n + b`:

    .. math::
        \text{explicit: } z_n &= (1 - dt\,\epsilon) z_{n-1} + dt \tanh A - dt\,\gamma y_{n-1} \\
        \text{implicit: } z_n &= (z_{n-1} + dt \tanh A - dt\,\gamma y_{n-1}) / (1 + dt\,\epsilon) \\
        y_n &= y_{n-1} + dt\, z_n

    Parameters of layer k are ``weight_ih_lk`` (V) [H, F or D * H], ``weight_hy_lk`` (W) and
    ``weight_hz_lk`` (𝒲) [H, H] and ``bias_lk`` (b) [H]. Those of a reverse direction end in
    ``_reverse``. All layers share the learned scalars ``raw_dt``, ``raw_frequency`` and
    ``raw_damping``.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also reads the sequence backwards.
        memory: What to keep for the backward pass. "stored" keeps all states, "chunked" keeps some
            and recomputes the rest, "auto" chooses by size.
        dt: Step size, > 0 (in (0, 1) if trainable). Default 0.05.
        frequency: Frequency control γ, >= 0. Default 1.
        damping: Damping ε; stable only if > 0. Default 1.
        scheme: "explicit" damping (the published numbers) or "implicit".
        trainable_dt: Whether dt = σ̂(raw_dt) is learned.
        trainable_frequency: Whether γ = relu(raw_frequency) is learned, from above 0.
        trainable_damping: Whether ε = relu(raw_damping) is learned, from above 0.
        input_scale: Factor, >= 0, of every layer's initial V and b. About 30 makes tanh act as a
            gate from the start, which helps to find single steps in a long sequence. Default 1.
        recurrent_scale: Factor, >= 0, of every layer's initial W and 𝒲. The slow part of the state
            is stable at the start if W is small compared with γ. Default 1.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: y and z [L * D, B, H]; elapsed [T, B] likewise.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Note:
        The linear part is stable iff ε > 0 and dt²γ + 2 dt ε < 4 (explicit) or dt²γ < 4 + 2 dt ε
        (implicit); other settings issue a ``StabilityWarning``. With ``elapsed`` e_n, step n uses
        dt e_n instead of dt, and the conditions must hold for the longest gap. All weights start
        from U(-b, b), where b is 1/sqrt(F + 2H) times their scale. The paper leaves open whether W,
        𝒲 and V form one affine map or three. This layer follows the published scripts, which use
        one.

    Example:
        >>> import torch
        >>> layer = CoRNN(6, 32, dt=0.1, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.y.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Rusch and Mishra, Coupled Oscillatory Recurrent Neural Network (coRNN): An accurate and
        (gradient) stable architecture for learning long time dependencies, ICLR 2021.
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
        memory: str = "auto",
        dt: float = 0.05,
        frequency: float = 1.0,
        damping: float = 1.0,
        scheme: str = "explicit",
        trainable_dt: bool = False,
        trainable_frequency: bool = False,
        trainable_damping: bool = False,
        input_scale: float = 1.0,
        recurrent_scale: float = 1.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, memory
        )
        self.input_scale = _checks.number("input_scale", input_scale, low=0.0)
        self.recurrent_scale = _checks.number("recurrent_scale", recurrent_scale, low=0.0)
        factory = {"device": device, "dtype": dtype}
        self._set(
            dt, frequency, damping, scheme, trainable_dt, trainable_frequency, trainable_damping,
            **factory,
        )  # fmt: skip
        self.make_parameters(**factory)

    def equation(self) -> CoRNNEquation:
        """Return the equation with the current parameter values."""
        return CoRNNEquation(*CoRNN.scalars(self), self.scheme)

    def scalars(self: Any) -> tuple[float | Tensor, float | Tensor, float | Tensor]:
        """The dt, frequency and damping in use: dt = σ̂(raw_dt), the others relu(raw)."""
        return (
            torch.sigmoid(self.raw_dt) if self.trainable_dt else self.dt,
            torch.relu(self.raw_frequency) if self.trainable_frequency else self.frequency,
            torch.relu(self.raw_damping) if self.trainable_damping else self.damping,
        )

    def _initialise(self, name: str, parameter: Tensor, inputs: int) -> None:
        bound = 1 / math.sqrt(inputs + 2 * self.hidden_size)  # one affine map on [u, y, z]
        recurrent = name in ("weight_hy", "weight_hz")
        bound *= self.recurrent_scale if recurrent else self.input_scale
        parameter.uniform_(-bound, bound)

    def reset_parameters(self: Any) -> None:
        """Redraw every weight from U(-b, b) with b = 1/sqrt(F + 2H) times its scale."""
        EquationModule.reset_parameters(self)  # cells call this as well
        with torch.no_grad():
            if self.trainable_dt:
                self.raw_dt.fill_(math.log(self.dt / (1 - self.dt)))
            if self.trainable_frequency:
                self.raw_frequency.fill_(self.frequency)
            if self.trainable_damping:
                self.raw_damping.fill_(self.damping)

    def _set(
        self: Any,
        dt: float,
        frequency: float,
        damping: float,
        scheme: str,
        trainable_dt: bool,
        trainable_frequency: bool,
        trainable_damping: bool,
        **factory: Any,
    ) -> None:
        self.trainable_dt = _checks.boolean("trainable_dt", trainable_dt)
        self.trainable_frequency = _checks.boolean("trainable_frequency", trainable_frequency)
        self.trainable_damping = _checks.boolean("trainable_damping", trainable_damping)
        one = 1.0 if trainable_dt else math.inf
        self.dt = _checks.number("dt", dt, low=0.0, high=one, low_open=True, high_open=True)
        self.frequency = _checks.number("frequency", frequency, low=0.0)
        low = 0.0 if trainable_damping else -math.inf
        self.damping = _checks.number("damping", damping, low=low)
        check_learned("frequency", self.frequency, trainable_frequency)
        check_learned("damping", self.damping, trainable_damping)
        self.scheme = _checks.choice("scheme", scheme, SCHEMES)
        if trainable_dt:
            self.raw_dt = nn.Parameter(torch.empty((), **factory))
        if trainable_frequency:
            self.raw_frequency = nn.Parameter(torch.empty((), **factory))
        if trainable_damping:
            self.raw_damping = nn.Parameter(torch.empty((), **factory))
        self._warn_unstable()

    def _warn_unstable(self, longest: float = 1.0) -> bool:
        h, gamma, epsilon = self.dt * longest, self.frequency, self.damping
        if self.scheme == "explicit":
            condition = "damping > 0 and dt^2 * frequency + 2 * dt * damping < 4 must hold"
            stable = h * h * gamma + 2 * h * epsilon < 4
        else:
            condition = "damping > 0 and dt^2 * frequency < 4 + 2 * dt * damping must hold"
            stable = h * h * gamma < 4 + 2 * h * epsilon
        if not stable or epsilon <= 0:
            return warn_unstable(
                f"of the {self.scheme} scheme {condition}",
                f"dt={self.dt:g}, frequency={gamma:g}, damping={epsilon:g}",
                "use a positive damping" if epsilon <= 0 else "use a smaller dt",
                longest,
            )
        return False


class CoRNNCell(SequenceCell):
    r"""One step of coRNN, (2.3), with explicit damping by default (``scheme``).

    Parameters are ``weight_ih`` [H, F], ``weight_hy`` and ``weight_hz`` [H, H] and ``bias`` [H].

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons, H >= 1.
        bias: Whether the affine maps have a bias.
        dt: Step size, > 0 (in (0, 1) if trainable). Default 0.05.
        frequency: Frequency control γ, >= 0. Default 1.
        damping: Damping ε; stable only if > 0. Default 1.
        scheme: "explicit" damping (the published numbers) or "implicit".
        trainable_dt: Whether dt = σ̂(raw_dt) is learned.
        trainable_frequency: Whether γ = relu(raw_frequency) is learned, from above 0.
        trainable_damping: Whether ε = relu(raw_damping) is learned, from above 0.
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
        >>> cell = CoRNNCell(6, 32)
        >>> state = cell(torch.zeros(8, 6))
        >>> cell(torch.zeros(8, 6), state).y.shape
        torch.Size([8, 32])

    References:
        Rusch and Mishra, coRNN, ICLR 2021.
    """

    layer_class = CoRNN
    input_scale = recurrent_scale = 1.0

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        dt: float = 0.05,
        frequency: float = 1.0,
        damping: float = 1.0,
        scheme: str = "explicit",
        trainable_dt: bool = False,
        trainable_frequency: bool = False,
        trainable_damping: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias)
        factory = {"device": device, "dtype": dtype}
        CoRNN._set(
            self, dt, frequency, damping, scheme, trainable_dt, trainable_frequency,
            trainable_damping, **factory,
        )  # fmt: skip
        self.make_parameters(**factory)

    def scalars(self) -> tuple[float | Tensor, float | Tensor, float | Tensor]:
        """Return the dt, frequency and damping in use; see ``CoRNN.scalars``."""
        return CoRNN.scalars(self)

    def reset_parameters(self) -> None:
        """Redraw every weight; see ``CoRNN.reset_parameters``."""
        CoRNN.reset_parameters(self)
