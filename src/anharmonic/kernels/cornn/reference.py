"""The coRNN recurrence as a loop to check by eye."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic.kernels.stack import Source, hold, run_stack


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
    bidirectional: bool,
    lengths: Tensor | None,
    masks: list[Tensor] | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Runs ``kernels.cornn`` step by step in plain PyTorch; same arguments and shapes."""
    gamma, epsilon = frequency, damping

    def walk(
        k: int, layer: int, source: Source, y: Tensor, z: Tensor, valid: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        V, W, W_z, b = weights[k]
        drive = F.linear(source(layer), V, b)  # V u_n + b, all steps at once
        W_t, W_z_t = W.t(), W_z.t()
        outputs = []
        for u, keep in zip(drive.unbind(0), hold(valid, len(drive)), strict=True):
            force = torch.tanh(torch.addmm(torch.addmm(u, y, W_t), z, W_z_t)) - gamma * y
            if scheme == "explicit":
                z_new = z + dt * (force - epsilon * z)
            else:
                z_new = (z + dt * force) / (1 + dt * epsilon)
            y_new = y + dt * z_new
            y = y_new if keep is None else torch.where(keep, y_new, y)
            z = z_new if keep is None else torch.where(keep, z_new, z)
            outputs.append(y)
        return torch.stack(outputs), y, z

    return run_stack(walk, x, y0, z0, bidirectional=bidirectional, lengths=lengths, masks=masks)
