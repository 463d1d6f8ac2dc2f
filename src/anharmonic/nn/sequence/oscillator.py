"""Neural oscillators, the general form: a layer of coupled oscillators without damping."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from anharmonic import _checks, ops
from anharmonic.nn.sequence.kernel_layer import KernelLayer
from anharmonic.nn.sequence.unicornn import KAIMING_SLOPE
from anharmonic.nn.stability import warn_unstable
from anharmonic.ops.oscillator import ACTIVATIONS, SCHEMES

SQUARED_FREQUENCIES = (0.5, 1.5)
"""Between these the squares of the oscillators' frequencies start."""


class _NeuralOscillators(KernelLayer):
    """What both kinds share: step size, scheme, activation, and the kernel."""

    _op = ops.oscillator
    _weights_type = ops.OscillatorWeights

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

    def _initialise(self, stem: str, parameter: Tensor, width: int) -> None:
        if stem == "weight_hh":
            self._initialise_couplings(parameter)
        elif stem == "weight_ih":
            torch.nn.init.kaiming_uniform_(parameter, a=KAIMING_SLOPE)
        else:
            parameter.zero_()

    def _initialise_couplings(self, parameter: Tensor) -> None:
        """Fills W, or w, in place."""
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        return {"dt": self.dt, "scheme": self.scheme, "activation": self.activation}


class NeuralOscillator(_NeuralOscillators):
    r"""Neural oscillators in the general form (4.1), a stack with the call of ``nn.LSTM``.

    Equation (4.1), with y the positions, z = y' the velocities and u the input:

    .. math::
        y'' = \sigma(W y + V u + b)

    Discretised with :math:`f_n(y) = \sigma(W y + V u_n + b)` (the paper fixes no scheme):

    .. math::
        \text{symplectic-euler: } z_n &= z_{n-1} + dt\, f_n(y_{n-1}), \quad
            y_n = y_{n-1} + dt\, z_n \\
        \text{velocity-verlet: } z_{n-1/2} &= z_{n-1} + \tfrac{dt}{2} f_n(y_{n-1}), \quad
            y_n = y_{n-1} + dt\, z_{n-1/2}, \quad z_n = z_{n-1/2} + \tfrac{dt}{2} f_n(y_n)

    Symplectic Euler is of order 1 wherever in its step the input is sampled. Velocity Verlet holds
    :math:`u_n` during step n and is of order 2 if :math:`u_n` is the input in the middle of the
    step, at :math:`t_{n-1} + dt / 2`. A layer above then sees the layer below in the middle of the
    step too: :math:`y_{n-1} + \tfrac{dt}{2} z_{n-1/2}`; in symplectic Euler it sees :math:`y_n`.
    Mind the sign: +σ here, where UnICORNN has -tanh.

    Parameters of layer k are ``weight_ih_lk`` (V) [H, F or D * H], ``weight_hh_lk`` (W) [H, H] and
    ``bias_lk`` [H], those of a reverse direction end in ``_reverse``.

    Args:
        dt: Step size, > 0. Default 0.05.
        scheme: "symplectic-euler" or "velocity-verlet" (two evaluations of σ per step).
        activation: σ: "tanh", "sin", or "identity", which makes the layer linear.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: y and z [L * D, B, H]; elapsed [T, B] likewise.

    Note:
        Nothing damps here: near rest y'' = W y is stable iff the eigenvalues of W are real and
        negative, -ω², and its steps iff dt ω < 2. So W starts as -Q diag(ω²) Qᵀ with Q a random
        rotation and ω² from U(0.5, 1.5); V and b start as UnICORNN's: V Kaiming-uniform with slope
        8, b zero. Training may leave this region; ``|σ| <= 1`` then still keeps ``|y_n|`` below
        (n dt)². A ``StabilityWarning`` is about the start. Driven long enough the oscillators are
        chaotic: between two runs of two layers under noise the difference grew threefold in 50
        time units and five thousandfold in 250, and gradients grow with it, so choose dt by the
        length of the sequence. With ``elapsed`` e_n dt becomes dt e_n. Symplectic Euler with tanh
        runs on coRNN's
        compiled kernel on a CPU, the others on the reference.

    Example:
        >>> import torch
        >>> layer = NeuralOscillator(6, 32, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.y.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Lanthaler, Rusch and Mishra, Neural Oscillators are Universal, NeurIPS 2023.
    """

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

    def _shapes(self, layer: int, widths: list[int]) -> dict[str, tuple[int, ...]]:
        H = self.hidden_size
        return {"weight_ih": (H, widths[layer]), "weight_hh": (H, H), "bias": (H,)}

    def _initialise_couplings(self, parameter: Tensor) -> None:
        precise = torch.promote_types(parameter.dtype, torch.float32)  # QR needs it
        Q = torch.nn.init.orthogonal_(torch.empty_like(parameter, dtype=precise))
        squares = torch.empty_like(Q[0]).uniform_(*SQUARED_FREQUENCIES)
        parameter.copy_(-(Q * squares) @ Q.t())
