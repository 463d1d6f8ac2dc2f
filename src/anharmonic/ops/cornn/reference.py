"""The coRNN recurrence as a loop to check by eye."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic.ops.memory import walk_chain
from anharmonic.ops.steps import Steps, keep


def cornn_reference(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float | Tensor,
    frequency: float | Tensor,
    damping: float | Tensor,
    scheme: str,
    lengths: Tensor | None,
    masks: list[Tensor] | None,
    elapsed: Tensor | None,
    whole: bool,
    memory: str,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain of ``ops.cornn`` in plain PyTorch, one step after another."""

    def walk(
        weight: tuple[Any, ...], levels: list[Tensor], y: Tensor, z: Tensor, steps: Steps
    ) -> tuple[Tensor, Tensor, Tensor]:
        V, W, W_z, b, dt, gamma, epsilon = weight
        drive = F.linear(levels[-1], V, b)  # V u_n + b of all these steps
        W_t, W_z_t = W.t(), W_z.t()
        outputs = []
        for u, gap, valid in zip(drive.unbind(0), steps.gaps(), steps.holds(), strict=True):
            h = dt if gap is None else dt * gap
            force = torch.tanh(torch.addmm(torch.addmm(u, y, W_t), z, W_z_t)) - gamma * y
            if scheme == "explicit":
                z_new = z + h * (force - epsilon * z)
            else:
                z_new = (z + h * force) / (1 + h * epsilon)
            y_new = y + h * z_new
            y, z = keep(valid, y_new, y), keep(valid, z_new, z)
            outputs.append(y)
        return torch.stack(outputs), y, z

    return walk_chain(
        walk,
        x,
        [(*weight, dt, frequency, damping) for weight in weights],
        y0,
        z0,
        lengths=lengths,
        masks=masks,
        elapsed=elapsed,
        whole=whole,
        memory=memory,
    )
