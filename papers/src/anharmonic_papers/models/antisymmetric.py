"""AntisymmetricRNN and its gated form: Euler steps of a stable ODE.

The Jacobian of h' = tanh((W - W^T - gamma I) h + V u + b) has eigenvalues on (or a little left of)
the imaginary axis. ``weight_skew`` is the strictly lower triangle of W - W^T, row by row.
"""

import math
from typing import Any

import torch
from torch import Tensor

from anharmonic.nn import HiddenState
from anharmonic_papers.models.base import ODELayer, free_entries, skew_matrix


class _Antisymmetric(ODELayer):
    """Base of both: the matrix M, shapes and initial values."""

    _blocks = 1  # affine maps of the input

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
        dt: float = 0.05,
        diffusion: float = 0.1,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional
        )
        self.set_step(dt, diffusion)
        self.make_parameters(device=device, dtype=dtype)

    def parameter_shapes(self, input_size: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes listed above."""
        H, wide = self.hidden_size, self._blocks * self.hidden_size
        return {
            "weight_ih": (wide, input_size),
            "weight_skew": (free_entries(H),),
            "bias": (wide,),
        }

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Initialise a parameter as described in the note above."""
        if name == "bias":
            parameter.zero_()
        else:
            parameter.normal_(
                0.0, 1 / math.sqrt(parameter.shape[-1] if name == "weight_ih" else self.hidden_size)
            )

    def matrix(self, w: Any) -> Tensor:
        """Return the recurrent matrix M [H, H] from the parameters of a layer."""
        skew = skew_matrix(w.weight_skew, self.hidden_size)
        return skew - self.diffusion * torch.eye(len(skew)).to(skew)

    def prepare(self, w: Any) -> Tensor:
        """Return M, transposed."""
        return self.matrix(w).t()


class AntisymmetricRNN(_Antisymmetric):
    r"""RNN as Euler steps of an ODE with a skew-symmetric matrix and some diffusion.

    .. math::
        h_n = h_{n-1} + dt \tanh((W - W^T - \gamma I) h_{n-1} + V u_n + b)

    Parameters of layer k are ``weight_ih_lk`` [H, F or D * H], ``weight_skew_lk`` [H (H - 1) / 2],
    the strictly lower triangle of the skew matrix, and ``bias_lk`` [H].

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also reads the sequence backwards.
        dt: Step size, the paper's epsilon, > 0. Default 0.05.
        diffusion: The paper's gamma, >= 0; dt * diffusion < 2 (otherwise, or with dt > 1, there is
            a ``StabilityWarning``). Default 0.1.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h [L * D, B, H]; elapsed [T, B] likewise.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Note:
        M has the eigenvalues -gamma ± i omega. A step of its linear part does not grow if dt
        (gamma^2 + omega^2) <= 2 gamma for each of them. The tanh always bounds the state by n dt. W
        is strictly triangular, so the skew matrix has as many parameters as degrees of freedom. Its
        entries start from N(0, 1/H), V from N(0, 1/F), biases at zero. With the default dt and
        gamma the condition then holds approximately (ours).

    Example:
        >>> import torch
        >>> layer = AntisymmetricRNN(6, 32, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.h.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Chang, Chen, Haber and Chi, AntisymmetricRNN: A Dynamical System View on Recurrent Neural
        Networks, ICLR 2019.
    """

    def step_function(
        self, u: Tensor, state: HiddenState, w: Tensor, dt: float | Tensor
    ) -> HiddenState:
        """Take one step of the equation above."""
        (h,) = state
        return HiddenState(h + dt * torch.tanh(torch.addmm(u, h, w)))


class GatedAntisymmetricRNN(_Antisymmetric):
    r"""AntisymmetricRNN with a gate on its steps; the gate shares the recurrent matrix.

    .. math::
        z_n &= \hat\sigma(M h_{n-1} + V_z u_n + b_z), \quad M = W - W^T - \gamma I \\
        h_n &= h_{n-1} + dt\, z_n \odot \tanh(M h_{n-1} + V u_n + b)

    Parameters of layer k are ``weight_ih_lk`` [2H, F or D * H] (V_z, V), ``weight_skew_lk``
    [H (H - 1) / 2], the strictly lower triangle of the skew matrix, and ``bias_lk`` [2H] (b_z, b).

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also reads the sequence backwards.
        dt: Step size, the paper's epsilon, > 0. Default 0.05.
        diffusion: The paper's gamma, >= 0; dt * diffusion < 2 (otherwise, or with dt > 1, there is
            a ``StabilityWarning``). Default 0.1.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h [L * D, B, H]; elapsed [T, B] likewise.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Note:
        Initial weights and defaults are those of ``AntisymmetricRNN``.

    Example:
        >>> import torch
        >>> layer = GatedAntisymmetricRNN(6, 32, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.h.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Chang, Chen, Haber and Chi, AntisymmetricRNN: A Dynamical System View on Recurrent Neural
        Networks, ICLR 2019.
    """

    _blocks = 2

    def step_function(
        self, u: Tensor, state: HiddenState, w: Tensor, dt: float | Tensor
    ) -> HiddenState:
        """Take one step of the equation above."""
        (h,) = state
        u_z, u_h = u.chunk(2, dim=-1)
        z = torch.sigmoid(torch.addmm(u_z, h, w))
        return HiddenState(h + dt * (z * torch.tanh(torch.addmm(u_h, h, w))))
