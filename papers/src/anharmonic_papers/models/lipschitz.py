"""LipschitzRNN: a linear part and a Lipschitz nonlinearity, both between symmetric and skew.

The equation is h' = A h + tanh(W h + V u + b), with the input held during a step. ``weight_linear``
is M_A, ``weight_hh`` M_W, ``weight_ih`` V (the paper's U).
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic import _checks, _tensors
from anharmonic.nn import HiddenState
from anharmonic_papers.models.base import ODELayer

SCHEMES = ("euler", "midpoint")


class _Terms(NamedTuple):
    A_t: Tensor
    W_t: Tensor


class LipschitzRNN(ODELayer):
    r"""Lipschitz recurrent network, in Euler or midpoint steps.

    .. math::
        h_n = h_{n-1} + dt\,(A h_{n-1} + \tanh(W h_{n-1} + V u_n + b)), \quad
        A = (1 - \beta)(M_A + M_A^T) + \beta (M_A - M_A^T) - \gamma I

    and W likewise of M_W. Parameters of layer k are ``weight_ih_lk`` [H, F or D * H],
    ``weight_linear_lk`` (M_A) and ``weight_hh_lk`` (M_W) [H, H], and ``bias_lk`` [H].

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also reads the sequence backwards.
        dt: Step size, the paper's epsilon, > 0. Default 0.05.
        skewness: The paper's beta, in [0, 1]: 0 is symmetric, 1 skew. Default 0.75.
        diffusion: The paper's gamma, >= 0; dt * diffusion < 2 (otherwise, or with dt > 1, there is
            a ``StabilityWarning``). Default 0.1.
        scheme: "euler" (first order) or "midpoint" (second order, twice the work).
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h [L * D, B, H]; elapsed [T, B] likewise.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Note:
        If the symmetric part of A is negative definite, the states of the equation stay bounded for
        every input. A and W share beta and gamma. M_A and M_W start from N(0, 1/H^2). M_A is
        reduced if an eigenvalue of its symmetric part would exceed -gamma / 2. V and b start from
        U(-1/sqrt(H), 1/sqrt(H)). Initial weights and defaults are ours.

    Example:
        >>> import torch
        >>> layer = LipschitzRNN(6, 32, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.h.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Erichson, Azencot, Queiruga, Hodgkinson and Mahoney, Lipschitz Recurrent Neural Networks,
        ICLR 2021.
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
        dt: float = 0.05,
        skewness: float = 0.75,
        diffusion: float = 0.1,
        scheme: str = "euler",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional
        )
        self.set_step(dt, diffusion)
        self.skewness = _checks.number("skewness", skewness, low=0.0, high=1.0)
        self.scheme = _checks.choice("scheme", scheme, SCHEMES)
        self.make_parameters(device=device, dtype=dtype)

    def parameter_shapes(self, input_size: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes listed above."""
        H = self.hidden_size
        return {
            "weight_ih": (H, input_size),
            "weight_linear": (H, H),
            "weight_hh": (H, H),
            "bias": (H,),
        }

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Initialise a parameter as described in the note above."""
        if name in ("weight_linear", "weight_hh"):
            parameter.normal_(0.0, 1 / self.hidden_size)
            if name == "weight_linear" and _tensors.has_values(parameter):
                self._calm(parameter)
        else:
            super().init_parameter(name, parameter)

    def _calm(self, M: Tensor) -> None:
        """Reduce M_A if necessary, so that every direction decays initially."""
        growth = (1 - self.skewness) * (M + M.t())
        fastest = float(torch.linalg.eigvalsh(growth.double()).max())
        if fastest > self.diffusion / 2 > 0:
            M.mul_(self.diffusion / 2 / fastest)

    def blended(self, M: Tensor) -> Tensor:
        """Return (1 - beta)(M + M^T) + beta (M - M^T) - gamma I for a parameter M [H, H]."""
        beta = self.skewness
        return M + (1 - 2 * beta) * M.t() - self.diffusion * torch.eye(len(M)).to(M)

    def prepare(self, w: Any) -> _Terms:
        """Return A and W, transposed."""
        return _Terms(self.blended(w.weight_linear).t(), self.blended(w.weight_hh).t())

    def step_function(
        self, u: Tensor, state: HiddenState, w: _Terms, dt: float | Tensor
    ) -> HiddenState:
        """Take one step of the equation above."""
        (h,) = state
        slope = _slope(u, h, w)
        if self.scheme == "midpoint":
            slope = _slope(u, h + dt * (slope / 2), w)
        return HiddenState(h + dt * slope)


def _slope(u: Tensor, h: Tensor, w: _Terms) -> Tensor:
    return h @ w.A_t + torch.tanh(torch.addmm(u, h, w.W_t))
