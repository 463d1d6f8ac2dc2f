"""Neural oscillators: undamped, coupled within a layer or independent of each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from anharmonic import _checks
from anharmonic.nn.sequence.layer import SequenceLayer
from anharmonic.nn.sequence.unicornn import KAIMING_SLOPE
from anharmonic.nn.stability import warn_unstable
from anharmonic.ops import Equation, OscillatorEquation, OscillatorWeights, State
from anharmonic.ops.oscillator import ACTIVATIONS, SCHEMES

SQUARED_FREQUENCIES = (0.5, 1.5)
"""Bounds of the initial squared frequencies."""


class NeuralOscillator(SequenceLayer):
    r"""Neural oscillators in their general form: a stack of layers, called like ``nn.LSTM``.

    Equation (4.1), with y the positions, z = y' the velocities and u the input:

    .. math::
        y'' = \sigma(W y + V u + b)

    Discretised with :math:`f_n(y) = \sigma(W y + V u_n + b)` (the paper fixes no scheme):

    .. math::
        \text{symplectic-euler: } z_n &= z_{n-1} + dt\, f_n(y_{n-1}), \quad
            y_n = y_{n-1} + dt\, z_n \\
        \text{velocity-verlet: } z_{n-1/2} &= z_{n-1} + \tfrac{dt}{2} f_n(y_{n-1}), \quad
            y_n = y_{n-1} + dt\, z_{n-1/2}, \quad z_n = z_{n-1/2} + \tfrac{dt}{2} f_n(y_n)

    Symplectic Euler has order 1 wherever in the step the input is sampled. Velocity Verlet holds
    :math:`u_n` during step n. It has order 2 if :math:`u_n` is the input in the middle of the step,
    at :math:`t_{n-1} + dt / 2`. A layer above then also sees the layer below in the middle of the
    step, :math:`y_{n-1} + \tfrac{dt}{2} z_{n-1/2}`; in symplectic Euler it sees :math:`y_n`. Note
    the sign: +σ here, -tanh in UnICORNN.

    Parameters of layer k are ``weight_ih_lk`` (V) [H, F or D * H], ``weight_hh_lk`` (W) [H, H] and
    ``bias_lk`` [H], those of a reverse direction end in ``_reverse``.

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
        dt: Step size, > 0. Default 0.05.
        scheme: "symplectic-euler" or "velocity-verlet" (two evaluations of σ per step).
        activation: σ: "tanh", "sin", or "identity", which makes the layer linear.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: y and z [L * D, B, H]; elapsed [T, B] likewise.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Note:
        The equations have no damping. Near rest y'' = W y is stable iff the eigenvalues of W are
        real and negative, -ω², and its steps are stable iff dt ω < 2. Therefore W starts as -Q
        diag(ω²) Qᵀ with Q a random rotation and ω² from U(0.5, 1.5). V and b start as in UnICORNN:
        V Kaiming-uniform with slope 8, b zero. Training may leave this region; ``|σ| <= 1`` then
        still keeps ``|y_n|`` below (n dt)². A ``StabilityWarning`` refers to the initial values
        only. The driven oscillators are chaotic over long times. In two layers driven by noise, the
        difference between two runs grew threefold in 50 time units and 5,000-fold in 250. Gradients
        grow with it, so choose dt by the length of the sequence. With ``elapsed`` e_n, step n uses
        dt e_n instead of dt. On a CPU, symplectic Euler with tanh runs on coRNN's compiled kernel,
        the others on the reference.

    Example:
        >>> import torch
        >>> layer = NeuralOscillator(6, 32, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.y.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Lanthaler, Rusch and Mishra, Neural Oscillators are Universal, NeurIPS 2023.
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
        scheme: str = "symplectic-euler",
        activation: str = "tanh",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, memory
        )
        self._set(dt, scheme, activation)
        self.make_parameters(device=device, dtype=dtype)

    def equation(self) -> OscillatorEquation:
        """Return the equation with the current parameter values."""
        return OscillatorEquation(self.dt, self.scheme, self.activation)

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Initialise V Kaiming-uniform (slope 8), b with 0, W as below."""
        if name == "weight_hh":
            self._initialise_couplings(parameter)
        elif name == "weight_ih":
            torch.nn.init.kaiming_uniform_(parameter, a=KAIMING_SLOPE)
        else:
            parameter.zero_()

    def _initialise_couplings(self, parameter: Tensor) -> None:
        precise = torch.promote_types(parameter.dtype, torch.float32)  # QR needs it
        Q = torch.nn.init.orthogonal_(torch.empty_like(parameter, dtype=precise))
        squares = torch.empty_like(Q[0]).uniform_(*SQUARED_FREQUENCIES)
        parameter.copy_(-(Q * squares) @ Q.t())

    def _set(self, dt: float, scheme: str, activation: str) -> None:
        self.dt = _checks.number("dt", dt, low=0.0, low_open=True)
        self.scheme = _checks.choice("scheme", scheme, SCHEMES)
        self.activation = _checks.choice("activation", activation, ACTIVATIONS)
        self._warn_unstable()

    def _warn_unstable(self, longest: float = 1.0) -> bool:
        largest = math.sqrt(SQUARED_FREQUENCIES[1])
        if self.dt * longest * largest < 2:
            return False
        return warn_unstable(
            f"dt * frequency < 2 must hold, and frequencies start up to {largest:.3g}",
            f"dt={self.dt:g}",
            "use a smaller dt",
            longest,
        )


class MultiLayerNeuralOscillator(NeuralOscillator):
    r"""Multi-layer neural oscillators, called like ``nn.LSTM``.

    Equation (4.2) for layer l, with :math:`y^0 = u` the input:

    .. math::
        (y^l)'' = \sigma(w^l \odot y^l + V^l y^{l-1} + b^l)

    Discretised like ``NeuralOscillator``; every step is invertible and preserves volume. Note the
    sign: +σ here, -tanh in UnICORNN.

    Parameters of layer k are ``weight_ih_lk`` (V) [m_k, F or D * m_(k-1)], ``weight_hh_lk`` (w) and
    ``bias_lk`` [m_k], with m_k from ``hidden_sizes``; those of a reverse direction end in
    ``_reverse``.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons of the top layer, and of every layer without ``hidden_sizes``; H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        hidden_sizes: Neurons of every layer from the bottom up, ending with ``hidden_size``. None
            gives all layers ``hidden_size``.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also reads the sequence backwards.
        memory: What to keep for the backward pass. "stored" keeps all states, "chunked" keeps some
            and recomputes the rest, "reversible" keeps the final state only (one direction,
            symplectic Euler, tanh), "auto" chooses one of the first two.
        dt: Step size, > 0. Default 0.05.
        scheme: "symplectic-euler" or "velocity-verlet" (two evaluations of σ per step).
        activation: σ: "tanh", "sin", or "identity", which makes the layer linear.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; elapsed [T, B] likewise; state: y and z [L * D, B, M] with M
        the largest width. Narrower layers fill the front of their row; the rest is zero.

    Raises:
        ValueError: If an argument is out of range, or the widths do not fit.
        TypeError: If an argument has the wrong type.

    Note:
        The equations have no damping. Near rest neuron i is stable iff w_i = -ω² < 0, and its steps
        are stable iff dt ω < 2. Therefore w starts from U(-1.5, -0.5). V and b start as in
        UnICORNN: V Kaiming-uniform with slope 8, b zero. ``|σ| <= 1`` keeps ``|y_n|`` below (n dt)²
        for all weights. A ``StabilityWarning`` refers to the initial values only; see
        ``NeuralOscillator`` for long times. With ``elapsed`` e_n, step n uses dt e_n instead of dt.
        On a CPU, symplectic Euler with tanh runs on UnICORNN's compiled kernel
        (``memory="reversible"`` on its grid), the others on the reference. Layers of unequal width
        cost as much as layers of the largest width.

    Example:
        >>> import torch
        >>> layer = MultiLayerNeuralOscillator(6, 32, 3, hidden_sizes=[64, 48, 32])
        >>> output, state = layer(torch.zeros(100, 8, 6))
        >>> output.shape, state.y.shape
        (torch.Size([100, 8, 32]), torch.Size([3, 8, 64]))

    References:
        Lanthaler, Rusch and Mishra, Neural Oscillators are Universal, NeurIPS 2023.
    """

    _invertible = True

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        hidden_sizes: list[int] | None = None,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        memory: str = "auto",
        dt: float = 0.05,
        scheme: str = "symplectic-euler",
        activation: str = "tanh",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        SequenceLayer.__init__(
            self, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            memory,
        )  # fmt: skip
        self.hidden_sizes = None if hidden_sizes is None else self._checked_widths(hidden_sizes)
        self._state_size = max(self.hidden_sizes or [hidden_size])
        self._set(dt, scheme, activation)
        _checks.require(
            memory != "reversible" or self.equation().invertible, "memory", memory,
            f"'stored', 'chunked' or 'auto' for scheme={scheme!r} with activation={activation!r}",
            "use memory='chunked', or scheme='symplectic-euler' and activation='tanh'",
        )  # fmt: skip
        self.make_parameters(device=device, dtype=dtype)

    def _checked_widths(self, hidden_sizes: list[int]) -> list[int]:
        """Return the width of every layer."""
        _checks.require(
            isinstance(hidden_sizes, list | tuple), "hidden_sizes", hidden_sizes,
            "a list of ints, one per layer, or None", "list the widths from the bottom up",
            TypeError,
        )  # fmt: skip
        widths = [_checks.positive_int(f"hidden_sizes[{k}]", m) for k, m in enumerate(hidden_sizes)]
        _checks.require(
            len(widths) == self.num_layers and widths[-1] == self.hidden_size, "hidden_sizes",
            widths, f"{self.num_layers} widths (num_layers), the last of them "
            f"hidden_size={self.hidden_size}", "make the three agree",
        )  # fmt: skip
        return widths

    def equation(self) -> OscillatorEquation:
        """Return the equation with the current parameter values."""
        return OscillatorEquation(self.dt, self.scheme, self.activation, independent=True)

    def _initialise_couplings(self, parameter: Tensor) -> None:
        low, high = SQUARED_FREQUENCIES
        parameter.uniform_(-high, -low)

    # ---- layers of unlike widths are computed as if all were the widest -------------------------
    def _output_widths(self) -> list[int]:
        sizes = self.hidden_sizes or [self.hidden_size] * self.num_layers
        return [self.num_directions * size for size in sizes]

    def _shapes(self, layer: int, widths: list[int]) -> dict[str, tuple[int, ...]]:
        size = widths[layer + 1] // self.num_directions
        return self.equation().shapes(widths[layer], size)

    def _weights(self, equation: Equation, suffixes: Sequence[str] | None = None) -> list[Any]:
        """Return the weights; narrower layers are padded with neurons that stay at rest."""
        weights: list[OscillatorWeights] = super()._weights(equation, suffixes)
        if self.hidden_sizes is None or suffixes is not None:
            return weights
        wide, D, filled = max(self.hidden_sizes), self.num_directions, []
        for k, (V, w, b) in enumerate(weights):
            below, missing = k // D - 1, wide - len(w)
            if below >= 0:  # the columns of each direction of the layer below
                size = self.hidden_sizes[below]
                V = pad(V.reshape(len(w), D, size), (0, wide - size)).flatten(1)
            b = None if b is None else pad(b, (0, missing))
            filled.append(OscillatorWeights(pad(V, (0, 0, 0, missing)), pad(w, (0, missing)), b))
        return filled

    def _run(self, *call: Any) -> tuple[Tensor | None, Any]:
        result, last = super()._run(*call)
        if result is not None and self.hidden_sizes is not None:
            by_direction = result.reshape(*result.shape[:-1], self.num_directions, self._state_size)
            result = by_direction[..., : self.hidden_size].flatten(-2)
        return result, last
