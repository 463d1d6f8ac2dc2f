"""FastRNN: residual updates weighted by two scalars, which are trained through a sigmoid.

``weight_hh`` is W and ``weight_ih`` V, the paper's U and W.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn import HiddenState, StepLayer


class _Terms(NamedTuple):
    W_t: Tensor
    alpha: Tensor
    beta: Tensor


class FastRNN(StepLayer):
    r"""Tanh RNN with a weighted residual connection.

    .. math::
        h_n = \alpha \tanh(W h_{n-1} + V u_n + b) + \beta h_{n-1}

    Parameters of layer k are ``weight_ih_lk`` [H, F or D * H], ``weight_hh_lk`` [H, H], ``bias_lk``
    [H], ``raw_update_lk`` and ``raw_carry_lk`` [1]: alpha and beta are their sigmoids.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also reads the sequence backwards.
        update_weight: Initial value of alpha, in (0, 1). Default 0.05.
        carry_weight: Initial value of beta, in (0, 1). Default 0.95.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h [L * D, B, H].

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Note:
        With alpha + beta <= 1 the state stays within [-1, 1]. The paper recommends alpha near 1/N
        and beta near 1 - alpha for sequences of N steps. The defaults and the other initial
        weights, U(-1/sqrt(H), 1/sqrt(H)), are ours.

    Example:
        >>> import torch
        >>> layer = FastRNN(6, 32, batch_first=True)
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
        update_weight: float = 0.05,
        carry_weight: float = 0.95,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional
        )
        inside: dict[str, Any] = {"low": 0.0, "high": 1.0, "low_open": True, "high_open": True}
        self.update_weight = _checks.number("update_weight", update_weight, **inside)
        self.carry_weight = _checks.number("carry_weight", carry_weight, **inside)
        self.make_parameters(device=device, dtype=dtype)

    def parameter_shapes(self, input_size: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes listed above."""
        H = self.hidden_size
        return {
            "weight_ih": (H, input_size),
            "weight_hh": (H, H),
            "bias": (H,),
            "raw_update": (1,),
            "raw_carry": (1,),
        }

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Initialise scalars with the given values, weights from U(-1/sqrt(H), 1/sqrt(H))."""
        if name.startswith("raw_"):
            value = getattr(self, name.removeprefix("raw_") + "_weight")
            parameter.fill_(math.log(value / (1 - value)))
        else:
            super().init_parameter(name, parameter)

    def prepare(self, w: Any) -> _Terms:
        """Return the transposed recurrent matrix, alpha and beta."""
        return _Terms(w.weight_hh.t(), torch.sigmoid(w.raw_update), torch.sigmoid(w.raw_carry))

    def step_function(
        self, u: Tensor, state: HiddenState, w: _Terms, dt: float | Tensor
    ) -> HiddenState:
        """Take one step of the equation above."""
        (h,) = state
        return HiddenState(w.alpha * torch.tanh(torch.addmm(u, h, w.W_t)) + w.beta * h)
