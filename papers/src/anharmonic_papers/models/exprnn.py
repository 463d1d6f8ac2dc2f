"""expRNN: an RNN whose recurrent matrix is the exponential of a skew-symmetric matrix.

exp(A) is orthogonal with determinant 1. ``weight_skew`` is the strictly lower triangle of A, row by
row; ``weight_ih`` is V, the paper's T.
"""

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn import HiddenState, StepLayer
from anharmonic_papers.models.base import free_entries, skew_matrix

INITIALISATIONS = ("cayley", "henaff")


class _Terms(NamedTuple):
    Q_t: Tensor
    bias: Tensor | None


class ExpRNN(StepLayer):
    r"""Orthogonal recurrent network through the matrix exponential, with modReLU.

    .. math::
        h_n = \sigma(\exp(A) h_{n-1} + V u_n), \quad A^T = -A, \quad
        \sigma(z) = \operatorname{sign}(z) \max(|z| + b, 0)

    Parameters of layer k are ``weight_ih_lk`` [H, F or D * H], ``weight_skew_lk`` [H (H - 1) / 2],
    the strictly lower triangle of A, and ``bias_lk`` [H].

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether the modReLU has a bias; without it, the modReLU is the identity and the layer
            linear.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also reads the sequence backwards.
        initialisation: How the angles s of A's diagonal blocks (0 s; -s 0) start, all else zero:
            "cayley", s = -sqrt((1 - cos u) / (1 + cos u)) with u from U(0, pi/2), or "henaff", s
            from U(-pi, pi).
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h [L * D, B, H].

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Note:
        Without input, the norm of h never grows if b <= 0, and stays constant if b = 0. V starts
        from U(-1/sqrt(H), 1/sqrt(H)) and b from U(-0.01, 0.01) (ours).
        ``torch.nn.utils.parametrizations.orthogonal`` with ``matrix_exp`` is the same map, but
        stores H^2 numbers of which it uses H (H - 1) / 2. The exponential is always computed in
        float64. In float32 its error of about 1e-6 would repeat at every step.

    Example:
        >>> import torch
        >>> layer = ExpRNN(6, 32, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.h.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Lezcano-Casado and Martínez-Rubio, Cheap Orthogonal Constraints in Neural Networks: A Simple
        Parametrization of the Orthogonal and Unitary Group, ICML 2019.
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
        initialisation: str = "cayley",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional
        )
        self.initialisation = _checks.choice("initialisation", initialisation, INITIALISATIONS)
        self.make_parameters(device=device, dtype=dtype)

    def parameter_shapes(self, input_size: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes listed above."""
        H = self.hidden_size
        return {
            "weight_ih": (H, input_size),
            "weight_skew": (free_entries(H),),
            "bias": (H,),
        }

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Initialise a parameter as described in the note above."""
        if name == "weight_ih":
            super().init_parameter(name, parameter)
        elif name == "bias":
            parameter.uniform_(-0.01, 0.01)
        else:
            angles = parameter.new_empty(self.hidden_size // 2)
            if self.initialisation == "cayley":
                angles.uniform_(0.0, math.pi / 2).div_(2).tan_().neg_()  # the square root above
            else:
                angles.uniform_(-math.pi, math.pi)
            block = torch.arange(len(angles), device=parameter.device)
            parameter.zero_()
            parameter[block * (2 * block + 3)] = -angles  # rows 2i + 1, columns 2i of the triangle

    def prepare(self, w: Any) -> _Terms:
        """Return the recurrent matrix exp(A), transposed, and the bias."""
        Q = torch.linalg.matrix_exp(skew_matrix(w.weight_skew.double(), self.hidden_size))
        return _Terms(Q.to(w.weight_skew.dtype).t(), w.bias)

    def drive(self, x: Tensor, w: Any) -> Tensor:
        """Return V u_n; the bias belongs to the modReLU."""
        return F.linear(x, w.weight_ih)

    def step_function(
        self, u: Tensor, state: HiddenState, w: _Terms, dt: float | Tensor
    ) -> HiddenState:
        """Take one step of the equation above."""
        z = torch.addmm(u, state.h, w.Q_t)
        return HiddenState(z if w.bias is None else torch.sign(z) * torch.relu(z.abs() + w.bias))
