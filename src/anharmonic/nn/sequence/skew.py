"""SkewRNN: the discrete relative of a neural ODE with a skew-symmetric state matrix."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn.sequence.layer import SequenceLayer
from anharmonic.nn.stability import warn_unstable
from anharmonic.ops import SkewEquation


class SkewRNN(SequenceLayer):
    r"""Recurrent network with a skew-symmetric state matrix, a stack called like ``nn.LSTM``.

    .. math::
        y_n = y_{n-1} + dt\, f(y_{n-1}, u_n), \qquad f(y, u) = f(0, u) + A(y, u)\, y

    This is Example 2.8 with an input u and the f of (3.1). A, skew-symmetric whatever s, costs one
    product with a constant matrix: gates of state and input scale its rows and columns,

    .. math::
        A(y, u) = \text{diag}(s)\, C\, \text{diag}(s), \quad C = (M - M^T) / \sqrt 2, \quad
        s = \hat\sigma(W_s y + V_s u + b_s), \qquad f(0, u) = \tanh(V u + b)

    Parameters of layer k are ``weight_ih_lk`` [2H, F or D * H] (V_s, V), ``weight_hh_lk`` [2H, H]
    (W_s, M) and ``bias_lk`` [2H] (b_s, b); those of a reverse direction end in ``_reverse``.

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
        dt: Step size, > 0; above 1 a ``StabilityWarning`` is given. Default 0.01.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h [L * D, B, H]; elapsed [T, B] likewise.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Note:
        The thesis gives the recurrence and no layer: input, gates and the form of A are ours. A
        step without input makes states longer by the factor sqrt(1 + dt^2 \|A y\|^2 / \|y\|^2), at
        most sqrt(1 + dt^2 \|C\|^2): steps with T dt^2 well below 1 nearly keep the norm, of states
        and, where the gates are constant, of gradients (the Jacobian of f is then A). The norm of C
        is near 1.2 at the start. Where the gates depend on the state the Jacobian is not skew:
        small differences then grow with the time T dt, by 10^12 at T dt = 200 with the weights of
        the start (130 neurons, two layers). All weights and biases start from U(-1/sqrt(H),
        1/sqrt(H)).

    Example:
        >>> import torch
        >>> layer = SkewRNN(input_size=6, hidden_size=32, dt=0.05, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.h.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Nestaas, Theoretically Motivated Neural ODE Architectures for Stable Adjoint Behavior, 2022.
    """

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
        dt: float = 0.01,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, memory
        )
        self.dt = _checks.number("dt", dt, low=0.0, low_open=True)
        self._warn_unstable()
        self.make_parameters(device=device, dtype=dtype)

    def state_matrix(self, y: Tensor, x_t: Tensor) -> Tensor:
        """The skew-symmetric matrix A(y, u) of the first layer.

        Args:
            y: States of that layer.
            x_t: Input of one step.

        Shape:
            y [B, H]; x_t [B, F]; result [B, H, H].
        """
        H = self.hidden_size
        weights = self.layer_weights()
        W_s, M = weights.weight_hh.chunk(2)
        V_s = weights.weight_ih[:H]
        b_s = 0.0 if weights.bias is None else weights.bias[:H]
        s = torch.sigmoid(y @ W_s.t() + x_t @ V_s.t() + b_s)
        scale = s.unsqueeze(-1) * s.unsqueeze(-2)  # symmetric to the last bit
        matrix: Tensor = scale * (M - M.t()) / math.sqrt(2.0)
        return matrix

    def equation(self) -> SkewEquation:
        """Return the equation with the current parameter values."""
        return SkewEquation(self.dt)

    def _warn_unstable(self, longest: float = 1.0) -> bool:
        if self.dt * longest <= 1:  # no step keeps the norm: they differ in how much they add
            return False
        return warn_unstable("dt must be <= 1", f"dt={self.dt:g}", "choose a smaller dt", longest)
