"""LEM: long expressive memory."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn.sequence.cell import SequenceCell
from anharmonic.nn.sequence.layer import SequenceLayer
from anharmonic.nn.stability import warn_unstable
from anharmonic.ops import LEMEquation, State


class LEM(SequenceLayer):
    r"""Long expressive memory: a stack of layers, called like ``nn.LSTM``.

    Equations (5.2), with y the slow and z the fast state and u the input:

    .. math::
        y' &= \hat\sigma(W_2 y + V_2 u + b_2) \odot (\tanh(W_y z + V_y u + b_y) - y) \\
        z' &= \hat\sigma(W_1 y + V_1 u + b_1) \odot (\tanh(W_z y + V_z u + b_z) - z)

    Discretisation (5.3):

    .. math::
        a_n &= dt\,\hat\sigma(W_1 y_{n-1} + V_1 u_n + b_1), \quad
        e_n = dt\,\hat\sigma(W_2 y_{n-1} + V_2 u_n + b_2) \\
        z_n &= (1 - a_n) \odot z_{n-1} + a_n \odot \tanh(W_z y_{n-1} + V_z u_n + b_z) \\
        y_n &= (1 - e_n) \odot y_{n-1} + e_n \odot \tanh(W_y z_n + V_y u_n + b_y)

    Both gates read the old y; only the last line reads the new z.

    Parameters of layer k are ``weight_ih_lk`` [4H, F or D * H] with the row blocks
    V1 (gate of z), V2 (gate of y), Vz, Vy; ``weight_hh_lk`` [3H, H] (W1, W2, Wz); ``weight_zh_lk``
    [H, H] (Wy); ``bias_lk`` [4H] (b1, b2, bz, by). Without multiscale only the rows of z and y
    remain. Those of a reverse direction end in ``_reverse``. LEM has as many parameters as an LSTM
    with one bias.

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
        dt: Step size, > 0; states stay bounded for dt <= 1. Default 1.
        multiscale: Whether the gates are learned; if not, both equal dt.
        gate_floor: Clips both gates to [gate_floor, 1], in [0, 1]; None does not clip.
        chrono_length: Longest dependency expected, in steps, for chrono initialisation
            (chrono_length * dt > 2): b_1 = -log U[1, chrono_length * dt - 1], the other biases 0.
            None initialises the biases like the other weights.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: y and z [L * D, B, H]; elapsed [T, B] likewise.

    Raises:
        ValueError: If an argument is out of range or conflicts with another.
        TypeError: If an argument has the wrong type.

    Note:
        For dt <= 1 the states stay within [-1, 1]. A larger dt (one tuned value is 1.9) issues a
        ``StabilityWarning``. With ``elapsed``, the gap multiplies dt before the gates are clipped,
        and the bound holds where the product is at most 1. All weights, and without
        ``chrono_length`` all biases, start from U(-1/sqrt(H), 1/sqrt(H)). The paper does not show
        clearly which gate has the chrono bias. Here it is the gate of z, whose leak then has time
        constants up to ``chrono_length`` steps, as in the chrono LSTM. The published code has two
        biases per gate; this layer has their sum. Gates are clipped in evaluation as well.

    Example:
        >>> import torch
        >>> layer = LEM(input_size=6, hidden_size=32, dt=0.01, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.z.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Rusch, Mishra, Erichson and Mahoney, Long Expressive Memory for Sequence Modeling,
        ICLR 2022. Chrono initialisation: Tallec and Ollivier, Can recurrent neural networks warp
        time?, ICLR 2018.
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
        dt: float = 1.0,
        multiscale: bool = True,
        gate_floor: float | None = None,
        chrono_length: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, memory
        )
        self._set(dt, multiscale, gate_floor, chrono_length)
        self.make_parameters(device=device, dtype=dtype)

    def equation(self) -> LEMEquation:
        """Return the equation with the current parameter values."""
        return LEMEquation(self.dt, self.multiscale, self.gate_floor)

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Draw weights, and biases without ``chrono_length``, from U(-1/sqrt(H), 1/sqrt(H))."""
        H = self.hidden_size
        if name == "bias" and self.chrono_length is not None:
            longest = self.chrono_length * self.dt - 1
            parameter.zero_()
            parameter[:H].uniform_(1.0, longest).log_().neg_()  # b_1 = -log U[1, T dt - 1]
        else:
            parameter.uniform_(-1 / math.sqrt(H), 1 / math.sqrt(H))

    def _set(
        self: Any, dt: float, multiscale: bool, gate_floor: float | None, chrono_length: int | None
    ) -> None:
        self.dt = _checks.number("dt", dt, low=0.0, low_open=True)
        self.multiscale = _checks.boolean("multiscale", multiscale)
        if gate_floor is not None:
            gate_floor = _checks.number("gate_floor", gate_floor, low=0.0, high=1.0)
        self.gate_floor = gate_floor
        if chrono_length is not None:
            _checks.positive_int("chrono_length", chrono_length)
            _checks.require(
                chrono_length * self.dt > 2, "chrono_length", chrono_length,
                f"> 2 / dt for dt={self.dt:g}",
                "give the longest dependency in steps, or a larger dt",
            )  # fmt: skip
        self.chrono_length = chrono_length
        _checks.require(
            gate_floor is None or multiscale, "gate_floor", gate_floor,
            "None without learned gates, multiscale=False",
            "drop gate_floor or set multiscale=True",
        )  # fmt: skip
        _checks.require(
            chrono_length is None or (multiscale and self._has_bias), "chrono_length",
            chrono_length, "None without learned gates and their bias, "
            f"multiscale={multiscale}, bias={self._has_bias}",
            "drop chrono_length or set multiscale=True and bias=True",
        )  # fmt: skip
        self._warn_unstable()

    def _warn_unstable(self, longest: float = 1.0) -> bool:
        most = 1 if longest == 1 else 2
        if self.dt * longest > most and self.gate_floor is None:
            return warn_unstable(
                "dt <= 1 must hold (states then stay within [-1, 1])"
                if most == 1
                else "dt * elapsed < 2 must hold (at most 1 keeps states within [-1, 1])",
                f"dt={self.dt:g}",
                "use a smaller dt, or watch the size of the states",
                longest,
            )
        return False


class LEMCell(SequenceCell):
    r"""One step of LEM, (5.3).

    Parameters are ``weight_ih`` [4H, F], ``weight_hh`` [3H, H], ``weight_zh`` [H, H] and
    ``bias`` [4H]; without multiscale [2H, F], [H, H], [H, H] and [2H].

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons, H >= 1.
        bias: Whether the affine maps have a bias.
        dt: Step size, > 0; states stay bounded for dt <= 1. Default 1.
        multiscale: Whether the gates are learned; if not, both equal dt.
        gate_floor: Clips both gates to [gate_floor, 1], in [0, 1]; None does not clip.
        chrono_length: Longest dependency expected, in steps, for chrono initialisation
            (chrono_length * dt > 2): b_1 = -log U[1, chrono_length * dt - 1], the other biases 0.
            None initialises the biases like the other weights.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x_t [B, F] or [F]; state (y, z) [B, H] or [H] each; elapsed [B] or []. Returns the new
        state; its y is the output.

    Raises:
        ValueError: If an argument is out of range or conflicts with another.
        TypeError: If an argument has the wrong type.

    Example:
        >>> import torch
        >>> cell = LEMCell(6, 32)
        >>> state = cell(torch.zeros(8, 6))
        >>> cell(torch.zeros(8, 6), state).y.shape
        torch.Size([8, 32])

    References:
        Rusch et al., Long Expressive Memory for Sequence Modeling, ICLR 2022.
    """

    layer_class = LEM

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        dt: float = 1.0,
        multiscale: bool = True,
        gate_floor: float | None = None,
        chrono_length: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias)
        LEM._set(self, dt, multiscale, gate_floor, chrono_length)
        self.make_parameters(device=device, dtype=dtype)
