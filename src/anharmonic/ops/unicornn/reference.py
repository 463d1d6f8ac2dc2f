"""The UnICORNN recurrence as a loop to check by eye."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from anharmonic.ops.memory import walk_chain
from anharmonic.ops.steps import Steps, keep
from anharmonic.ops.unicornn import grid
from anharmonic.ops.unicornn.drive import drive_and_steps


def unicornn_reference(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: Sequence[float],
    frequency: float,
    skipped_layers: int | None,
    lengths: Tensor | None,
    masks: list[Tensor] | None,
    elapsed: Tensor | None,
    whole: bool,
    memory: str,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain of ``ops.unicornn`` in plain PyTorch, one step after another.

    With ``memory="reversible"`` it walks on the grid of ``unicornn/grid.py``.
    """
    reversible = memory == "reversible"
    output, y, z = walk_chain(
        grid.walk if reversible else walk,
        x,
        [(*w, h, frequency, skipped_layers) for w, h in zip(weights, dt, strict=True)],
        grid.rounded(y0) if reversible else y0,
        grid.rounded(z0) if reversible else z0,
        lengths=lengths,
        masks=masks,
        elapsed=elapsed,
        whole=whole,
        memory=memory,
        undo=grid.undo if reversible else None,
    )
    return output, y.to(y0.dtype), z.to(z0.dtype)


def walk(
    weight: tuple[Any, ...], levels: list[Tensor], y: Tensor, z: Tensor, steps: Steps
) -> tuple[Tensor, Tensor, Tensor]:
    """Walks one layer over a few steps."""
    drive, w, alpha, sizes = drive_and_steps(weight, levels, steps)
    outputs = []
    for x, h, valid in zip(drive, sizes, steps.holds(), strict=True):
        z_new = z - h * (torch.tanh(w * y + x) + alpha * y)
        y_new = y + h * z_new
        y, z = keep(valid, y_new, y), keep(valid, z_new, z)
        outputs.append(y)
    return torch.stack(outputs), y, z
