r"""UnICORNN on a fixed-point grid, where a step can be undone bit for bit.

States are float64 multiples of 2⁻⁴⁰ below 2¹⁰ in size. Increments are computed in the layer's own
dtype (``f(y)`` is y in that dtype), rounded to the grid by R and added, which is exact:

.. math::
    z_n &= z_{n-1} - R(h\,(\tanh(w f(y_{n-1}) + x_n) + \alpha f(y_{n-1}))) \\
    y_n &= y_{n-1} + R(h\, f(z_n))

The increment of y depends on z_n alone and that of z on y_{n-1} alone, so that subtracting them in
the other order gives back the same bits. R counts as the identity in derivatives.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from anharmonic.ops.memory import GRID_LIMIT, off_grid
from anharmonic.ops.recurrence import State, Steps, keep
from anharmonic.ops.unicornn.step import UnICORNNTerms, unicornn_layer

SPACING = 2.0**-40


class _Round(torch.autograd.Function):
    """R: the nearest multiple of the spacing, ties to even, as float64; derivative 1."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        ctx.dtype = value.dtype
        return (value.double() / SPACING).round_() * SPACING

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad.to(ctx.dtype)


def rounded(value: Tensor) -> Tensor:
    """R(value): float64, on the grid, contiguous.

    Example:
        >>> rounded(torch.tensor([0.5, 2.0**-41, 3 * 2.0**-41])).mul(2.0**40).tolist()
        [549755813888.0, 0.0, 2.0]
    """
    return _Round.apply(value.contiguous())  # type: ignore[no-untyped-call, no-any-return]


def walk(
    terms: UnICORNNTerms, inputs: list[Tensor], state: State, steps: Steps, frequency: float
) -> tuple[Tensor, State]:
    """Walks one layer over a few steps; y and z on the grid.

    Raises:
        OverflowError: If a state leaves the grid.
    """
    layer = unicornn_layer(terms, inputs)
    (y, z), w, dtype = state, layer.weights, inputs[-1].dtype
    outputs, largest = [], y.new_zeros(())
    f_y = y.to(dtype)
    for x, gap, valid in zip(layer.drives(), steps.gaps(), steps.running(), strict=True):
        h = layer.dt if gap is None else layer.dt * gap
        z_new = z - rounded(h * (torch.tanh(w * f_y + x) + frequency * f_y))
        y_new = y + rounded(h * z_new.to(dtype))
        y, z = keep(valid, y_new, y), keep(valid, z_new, z)
        f_y = y.to(dtype)
        outputs.append(f_y)
        largest = torch.maximum(largest, torch.maximum(y.detach().abs(), z.detach().abs()).amax())
    if not largest.is_meta and not float(largest) < GRID_LIMIT:
        raise off_grid(f"a state of {float(largest):g}, which left the grid")
    return torch.stack(outputs), State(y, z)


def undo(
    terms: UnICORNNTerms, inputs: list[Tensor], state: State, steps: Steps, frequency: float
) -> tuple[Tensor, State]:
    """Walks one layer back: from the state after these steps to that before, bit for bit."""
    layer = unicornn_layer(terms, inputs)
    (y, z), w, dtype = state, layer.weights, inputs[-1].dtype
    outputs = []
    backwards = list(zip(layer.drives(), steps.gaps(), steps.running(), strict=True))[::-1]
    for x, gap, valid in backwards:
        h = layer.dt if gap is None else layer.dt * gap
        outputs.append(y.to(dtype))
        y_old = y - rounded(h * z.to(dtype))
        f_y = y_old.to(dtype)
        z_old = z + rounded(h * (torch.tanh(w * f_y + x) + frequency * f_y))
        y, z = keep(valid, y_old, y), keep(valid, z_old, z)
    return torch.stack(outputs[::-1]), State(y, z)
