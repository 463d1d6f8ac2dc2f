"""One step of the recurrence with a skew-symmetric matrix: the equation."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic.ops.recurrence import HiddenState, Layer


class SkewWeights(NamedTuple):
    """Weights of one layer in one direction.

    weight_ih [2H, F] (V_s, V), weight_hh [2H, H] (W_s, M), bias [2H] or None.
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor | None


class SkewMatrices(NamedTuple):
    """The matrix of the gate, W_s, and the skew-symmetric C = (M - M^T) / sqrt(2), transposed."""

    W_s_t: Tensor
    C_t: Tensor


def skew_layer(weights: SkewWeights, inputs: list[Tensor], dt: float) -> Layer:
    """A layer ready for a stretch of time; its drive is that of gate and source."""
    W_s, M = weights.weight_hh.chunk(2)
    matrices = SkewMatrices(W_s.t(), (M.t() - M) / math.sqrt(2.0))
    return Layer(F.linear(inputs[-1], weights.weight_ih, weights.bias), matrices, dt)


def skew_step(u: Tensor, state: HiddenState, w: SkewMatrices, dt: float | Tensor) -> HiddenState:
    r"""An explicit step of y' = tanh(V u + b) + A(y, u) y, with a skew-symmetric A.

    .. math::
        s_n &= \hat\sigma(W_s y_{n-1} + V_s u_n + b_s), \qquad C = (M - M^T) / \sqrt 2 \\
        y_n &= y_{n-1} + dt\,\big(\tanh(V u_n + b) + s_n \odot C (s_n \odot y_{n-1})\big)
    """
    (y,) = state
    u_s, u_0 = u.chunk(2, dim=1)
    s = torch.sigmoid(torch.addmm(u_s, y, w.W_s_t))
    return HiddenState(y + dt * (torch.tanh(u_0) + s * torch.mm(s * y, w.C_t)))
