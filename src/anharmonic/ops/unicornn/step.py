"""One step of UnICORNN: the equation."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic.ops.recurrence import Layer, State


class UnICORNNWeights(NamedTuple):
    """Weights of one layer in one direction: V [H, F], w, b or None, c [H]; Λ [H, F'] or None."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor | None
    timescale: Tensor
    weight_skip: Tensor | None = None


class UnICORNNTerms(NamedTuple):
    """What a layer is made of: its weights, its largest step dt and S."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor | None
    timescale: Tensor
    weight_skip: Tensor | None
    dt: float
    skipped_layers: int | None


def unicornn_layer(terms: UnICORNNTerms, inputs: list[Tensor]) -> Layer:
    """A layer ready for a stretch of time: x_n = V y_n^{l-1} + b (+ Λ y_n^{l-S-1}), h = dt σ̂(c)."""
    drive = F.linear(inputs[-1], terms.weight_ih, terms.bias)
    if terms.weight_skip is not None and terms.skipped_layers is not None:
        drive = drive + F.linear(inputs[-1 - terms.skipped_layers], terms.weight_skip)
    return Layer(drive, terms.weight_hh, terms.dt * torch.sigmoid(terms.timescale))


def unicornn_step(x: Tensor, state: State, w: Tensor, h: Tensor, frequency: float) -> State:
    r"""Equation (3.6); ``frequency`` is α.

    .. math::
        z_n &= z_{n-1} - h \odot [\tanh(w \odot y_{n-1} + x_n) + \alpha y_{n-1}] \\
        y_n &= y_{n-1} + h \odot z_n
    """
    y, z = state
    z = z - h * (torch.tanh(w * y + x) + frequency * y)
    return State(y + h * z, z)
