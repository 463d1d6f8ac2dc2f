"""The neural oscillators' recurrence as a loop to check by eye."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic.ops.memory import walk_chain
from anharmonic.ops.oscillator.relatives import as_unicornn
from anharmonic.ops.steps import Steps, keep
from anharmonic.ops.unicornn.reference import unicornn_reference

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "sin": torch.sin,
    "identity": lambda A: A,
}
"""σ by name."""


def oscillator_reference(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    scheme: str,
    activation: str,
    is_top: bool,
    lengths: Tensor | None,
    masks: list[Tensor] | None,
    elapsed: Tensor | None,
    whole: bool,
    memory: str,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain of ``ops.oscillator`` in plain PyTorch, one step after another.

    ``is_top`` says whether the last of these layers is the top one of its stack. With
    ``memory="reversible"`` it walks on the grid of ``unicornn/grid.py``.
    """
    shared: dict[str, Any] = {
        "lengths": lengths, "masks": masks, "elapsed": elapsed, "whole": whole, "memory": memory,
    }  # fmt: skip
    if memory == "reversible":
        turned, own = as_unicornn(weights, dt)
        return unicornn_reference(x, turned, y0, z0, **own, **shared)
    sigma, top = ACTIVATIONS[activation], len(weights) - 1
    layers = [(*w, dt, scheme, sigma, is_top and k == top) for k, w in enumerate(weights)]
    return walk_chain(walk, x, layers, y0, z0, **shared)


def walk(
    weight: tuple[Any, ...], levels: list[Tensor], y: Tensor, z: Tensor, steps: Steps
) -> tuple[Tensor, Tensor, Tensor]:
    """Walks one layer over a few steps."""
    V, W, b, dt, scheme, sigma, is_top = weight
    drive = F.linear(levels[-1], V, b)  # V u_n + b of all these steps
    W_t = W.t() if W.dim() == 2 else W

    def force(u: Tensor, y: Tensor) -> Tensor:
        return sigma(torch.addmm(u, y, W_t) if W.dim() == 2 else u + W_t * y)  # type: ignore[no-any-return]

    outputs = []
    for u, gap, valid in zip(drive.unbind(0), steps.gaps(), steps.holds(), strict=True):
        h = dt if gap is None else dt * gap
        if scheme == "symplectic-euler":
            z_new = z + h * force(u, y)
            y_new = y + h * z_new
            seen = y_new
        else:
            z_half = z + h / 2 * force(u, y)
            y_new = y + h * z_half
            z_new = z_half + h / 2 * force(u, y_new)
            seen = y_new if is_top else y + h / 2 * z_half
        y, z = keep(valid, y_new, y), keep(valid, z_new, z)
        outputs.append(y if is_top else seen)
    return torch.stack(outputs), y, z
