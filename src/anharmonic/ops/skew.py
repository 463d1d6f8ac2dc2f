"""A recurrence whose state matrix is skew-symmetric and depends on state and input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Unpack

import torch
from torch import Tensor

from anharmonic.ops.equation import Equation, HiddenState
from anharmonic.ops.sequence import SequenceOptions, check_numbers, run


class SkewWeights(NamedTuple):
    """Weights of one layer in one direction.

    weight_ih [2H, F] (V_s, V), weight_hh [2H, H] (W_s, M), bias [2H] or None.

    Example:
        >>> SkewWeights(torch.ones(8, 3), torch.eye(8), None).weight_ih.shape
        torch.Size([8, 3])
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor | None


class SkewMatrices(NamedTuple):
    """The matrix of the gate, W_s, and the skew-symmetric C = (M - M^T) / sqrt(2), transposed."""

    W_s_t: Tensor
    C_t: Tensor


@dataclass(frozen=True)
class SkewEquation(Equation):
    r"""An explicit step of y' = tanh(V u + b) + A(y, u) y, with a skew-symmetric A.

    .. math::
        s_n &= \hat\sigma(W_s y_{n-1} + V_s u_n + b_s), \qquad C = (M - M^T) / \sqrt 2 \\
        y_n &= y_{n-1} + dt\,\big(\tanh(V u_n + b) + s_n \odot C (s_n \odot y_{n-1})\big)

    Example:
        >>> SkewEquation(dt=0.1).shapes(3, 8)["weight_ih"]
        (16, 3)
    """

    dt: float = 0.01

    kernel: ClassVar[str] = "skew"
    Weights: ClassVar[Any] = SkewWeights
    State: ClassVar[Any] = HiddenState

    def shapes(self, inputs: int, hidden: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of V, of W_s above M, and of b."""
        return {
            "weight_ih": (2 * hidden, inputs),
            "weight_hh": (2 * hidden, hidden),
            "bias": (2 * hidden,),
        }

    def prepare(self, w: SkewWeights) -> SkewMatrices:
        """Return W_s and C, transposed."""
        W_s, M = w.weight_hh.chunk(2)
        return SkewMatrices(W_s.t(), (M.t() - M) / math.sqrt(2.0))

    def step(
        self, u: Tensor, state: HiddenState, w: SkewMatrices, dt: float | Tensor
    ) -> HiddenState:
        """Take one step of the equation above."""
        (y,) = state
        u_s, u_0 = u.chunk(2, dim=1)
        s = torch.sigmoid(torch.addmm(u_s, y, w.W_s_t))
        return HiddenState(y + dt * (torch.tanh(u_0) + s * torch.mm(s * y, w.C_t)))


def skew(
    x: Tensor,
    weights: Sequence[SkewWeights],
    y0: Tensor,
    *,
    dt: float,
    **options: Unpack[SequenceOptions],
) -> tuple[Tensor | None, Tensor]:
    """Run a stack of skew-symmetric layers over a sequence; ``SkewEquation`` is the equation.

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial states.
        dt: Step, > 0.
        options: Directions, lengths, memory and others; see ``SequenceOptions``.

    Shape:
        x [T, B, F]; y0 [L * D, B, H] with D directions. Returns outputs y [T, B, D * H] ([B, D * H]
        for ``output="last"``, None for "none") and final y [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, a shape does not fit, or policy or backend do not support
            this input.

    Example:
        >>> import torch
        >>> w = SkewWeights(torch.ones(6, 2), torch.zeros(6, 3), None)
        >>> out, y = skew(torch.ones(5, 4, 2), [w], torch.zeros(1, 4, 3), dt=0.1)
        >>> out.shape, torch.equal(out[-1], y[0])
        (torch.Size([5, 4, 3]), True)
    """
    check_numbers(dt=dt)
    return run(SkewEquation(dt), x, weights, (y0,), **options)  # type: ignore[return-value]
