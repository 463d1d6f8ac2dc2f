"""FastGRNN."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn.sequence.one_state import OneStateLayer, Update


class FastLayer(OneStateLayer):
    """What both share: matrices, two scalars in (0, 1), and how they start."""

    _biases = 1
    _scalars: tuple[str, str]

    def _set_scalars(self, first: float, second: float) -> None:
        for name, value in zip(self._scalars, (first, second), strict=True):
            open_ends = {"low_open": True, "high_open": True}
            setattr(self, name, _checks.number(name, value, low=0.0, high=1.0, **open_ends))

    def _shapes(self, layer: int, widths: list[int]) -> dict[str, tuple[int, ...]]:
        H = self.hidden_size
        first, second = (_raw(name) for name in self._scalars)
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (H, widths[layer]), "weight_hh": (H, H)}
        return {**shapes, "bias": (self._biases * H,), first: (1,), second: (1,)}

    def _initialise(self, stem: str, parameter: Tensor, width: int) -> None:
        for name in self._scalars:
            if stem == _raw(name):
                value = getattr(self, name)
                parameter.fill_(math.log(value / (1 - value)))
                return
        parameter.uniform_(-1 / math.sqrt(self.hidden_size), 1 / math.sqrt(self.hidden_size))

    def _pair(self, suffix: str) -> tuple[Tensor, Tensor]:
        """The two scalars of a layer, [1] each."""
        first, second = (torch.sigmoid(self._weight(_raw(n) + suffix)) for n in self._scalars)
        return first, second


def _raw(scalar: str) -> str:
    return "raw_" + scalar.removesuffix("_weight")


class FastGRNN(FastLayer):
    r"""Gated FastRNN: gate and update share their matrices.

    .. math::
        z_n &= \hat\sigma(W h_{n-1} + V u_n + b_z) \\
        h_n &= (\zeta (1 - z_n) + \nu) \odot \tanh(W h_{n-1} + V u_n + b) + z_n \odot h_{n-1}

    Parameters of layer k are ``weight_ih_lk`` [H, F or D * H], ``weight_hh_lk`` [H, H], ``bias_lk``
    [2H] (b_z, b), ``raw_gate_scale_lk`` and ``raw_gate_shift_lk`` [1]: zeta and nu are their
    sigmoids.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Layers stacked on each other, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also walks from the end.
        gate_scale: First value of zeta, in (0, 1). Default 0.95.
        gate_shift: First value of nu, in (0, 1). Default 0.02.
        device: Where the parameters live.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h [L * D, B, H].

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument is of the wrong kind.

    Note:
        The matrices are of full rank, dense and not quantised. First values of the scalars and the
        other initial weights, U(-1/sqrt(H), 1/sqrt(H)), are ours.

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

    _biases = 2
    _scalars = ("gate_scale", "gate_shift")

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
        self._set_scalars(gate_scale, gate_shift)
        self._make_layers(device=device, dtype=dtype)

    def _drive(self, x: Tensor, suffix: str) -> Tensor:
        shared = F.linear(x, self._weight("weight_ih" + suffix))  # for gate and update alike
        b = self._weight("bias" + suffix)
        return torch.cat((shared, shared), dim=-1) + (0.0 if b is None else b)

    def _update(self, suffix: str) -> Update:
        W_t = self._weight("weight_hh" + suffix).t()
        zeta, nu = self._pair(suffix)

        def update(h: Tensor, u: Tensor, gap: Tensor | None) -> Tensor:
            recurrent = h @ W_t
            u_z, u_h = u.chunk(2, dim=-1)
            z = torch.sigmoid(recurrent + u_z)
            return (zeta * (1 - z) + nu) * torch.tanh(recurrent + u_h) + z * h

        return update
