"""FastGRNN: a small gated network in which gate and update share their matrices."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn.sequence.layer import SequenceLayer
from anharmonic.ops import HiddenState


class _Terms(NamedTuple):
    W_t: Tensor
    zeta: Tensor
    nu: Tensor


class FastGRNN(SequenceLayer):
    r"""Gated FastRNN: gate and update share their matrices.

    .. math::
        z_n &= \hat\sigma(W h_{n-1} + V u_n + b_z) \\
        h_n &= (\zeta (1 - z_n) + \nu) \odot \tanh(W h_{n-1} + V u_n + b) + z_n \odot h_{n-1}

    Parameters of layer k are ``weight_ih_lk`` [H, F or D * H], ``weight_hh_lk`` [H, H], ``bias_lk``
    [2H] (b_z, b), ``raw_gate_scale_lk`` and ``raw_gate_shift_lk`` [1], whose sigmoids are zeta and
    nu.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also reads the sequence backwards.
        gate_scale: Initial value of zeta, in (0, 1). Default 0.95.
        gate_shift: Initial value of nu, in (0, 1). Default 0.02.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h [L * D, B, H].

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Note:
        The matrices have full rank and are neither sparse nor quantised. The initial values of the
        scalars and the initial weights, U(-1/sqrt(H), 1/sqrt(H)), are our choice.

    Example:
        >>> import torch
        >>> layer = FastGRNN(6, 32, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.h.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Kusupati et al., FastGRNN: A Fast, Accurate, Stable and Tiny Kilobyte Sized Gated Recurrent
        Neural Network, NeurIPS 2018.
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
        gate_scale: float = 0.95,
        gate_shift: float = 0.02,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional
        )
        inside: dict[str, Any] = {"low": 0.0, "high": 1.0, "low_open": True, "high_open": True}
        self.gate_scale = _checks.number("gate_scale", gate_scale, **inside)
        self.gate_shift = _checks.number("gate_shift", gate_shift, **inside)
        self.make_parameters(device=device, dtype=dtype)

    def parameter_shapes(self, input_size: int) -> dict[str, tuple[int, ...]]:
        """V, W, (b_z, b), and the two scalars before their sigmoid."""
        H = self.hidden_size
        return {
            "weight_ih": (H, input_size),
            "weight_hh": (H, H),
            "bias": (2 * H,),
            "raw_gate_scale": (1,),
            "raw_gate_shift": (1,),
        }

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Initialise scalars with the given values, weights from U(-1/sqrt(H), 1/sqrt(H))."""
        if name.startswith("raw_"):
            value = getattr(self, name.removeprefix("raw_"))
            parameter.fill_(math.log(value / (1 - value)))
        else:
            super().init_parameter(name, parameter)

    def drive(self, x: Tensor, w: Any) -> Tensor:
        """Return V u_n + b for gate and update, which share the product V u_n."""
        shared = F.linear(x, w.weight_ih)
        return torch.cat((shared, shared), dim=-1) + (0.0 if w.bias is None else w.bias)

    def prepare(self, w: Any) -> _Terms:
        """Return the transposed recurrent matrix, zeta and nu."""
        zeta, nu = torch.sigmoid(w.raw_gate_scale), torch.sigmoid(w.raw_gate_shift)
        return _Terms(w.weight_hh.t(), zeta, nu)

    def step_function(
        self, u: Tensor, state: HiddenState, w: _Terms, dt: float | Tensor
    ) -> HiddenState:
        """The equation above."""
        (h,) = state
        recurrent = h @ w.W_t
        u_z, u_h = u.chunk(2, dim=-1)
        z = torch.sigmoid(recurrent + u_z)
        return HiddenState((w.zeta * (1 - z) + w.nu) * torch.tanh(recurrent + u_h) + z * h)
