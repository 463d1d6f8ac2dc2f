"""One step of coRNN: the equation."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic.ops.recurrence import Layer, State


class CoRNNWeights(NamedTuple):
    """Weights of one layer in one direction: V [H, F], W [H, H], 𝒲 [H, H], b [H] or None."""

    weight_ih: Tensor
    weight_hy: Tensor
    weight_hz: Tensor
    bias: Tensor | None


class CoRNNTerms(NamedTuple):
    """What a layer is made of: its weights, and the scalars, which may have gradients too."""

    weight_ih: Tensor
    weight_hy: Tensor
    weight_hz: Tensor
    bias: Tensor | None
    dt: float | Tensor
    frequency: float | Tensor
    damping: float | Tensor


def cornn_layer(terms: CoRNNTerms, inputs: list[Tensor]) -> Layer:
    """A layer ready for a stretch of time: the drive V u_n + b, and W, 𝒲 transposed."""
    drive = F.linear(inputs[-1], terms.weight_ih, terms.bias)
    turned = terms._replace(weight_hy=terms.weight_hy.t(), weight_hz=terms.weight_hz.t())
    return Layer(drive, turned, terms.dt)


def cornn_step(
    u: Tensor, state: State, w: CoRNNTerms, dt: float | Tensor, scheme: str = "explicit"
) -> State:
    r"""Equation (2.3), with A = W y + 𝒲 z + V u + b; ε acts on the old or the new velocity.

    .. math::
        \text{explicit: } z_n &= z_{n-1} + dt\,(\tanh A - \gamma y_{n-1} - \epsilon z_{n-1}) \\
        \text{implicit: } z_n &= (z_{n-1} + dt\,(\tanh A - \gamma y_{n-1})) / (1 + dt\,\epsilon) \\
        y_n &= y_{n-1} + dt\, z_n
    """
    y, z = state
    A = torch.addmm(torch.addmm(u, y, w.weight_hy), z, w.weight_hz)
    force = torch.tanh(A) - w.frequency * y
    if scheme == "explicit":
        z = z + dt * (force - w.damping * z)
    else:
        z = (z + dt * force) / (1 + dt * w.damping)
    return State(y + dt * z, z)
