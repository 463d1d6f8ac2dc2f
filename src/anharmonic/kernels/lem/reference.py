"""The LEM recurrence as a loop to check by eye."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic.kernels.stack import Source, hold, run_stack


def lem_reference(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    multiscale: bool,
    gate_floor: float | None,
    bidirectional: bool,
    lengths: Tensor | None,
    masks: list[Tensor] | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Runs ``kernels.lem`` step by step in plain PyTorch; same arguments and shapes."""

    def walk(
        k: int, layer: int, source: Source, y: Tensor, z: Tensor, valid: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        V, W, W_y, b = weights[k]
        H = W_y.shape[0]
        drive = F.linear(source(layer), V, b)  # V u_n + b of every row block, all steps at once
        # What y_{n-1} joins (gates and z) and what z_n joins (y).
        before, after = drive.split_with_sizes([drive.shape[-1] - H, H], dim=-1)
        W_t, W_y_t = W.t(), W_y.t()
        outputs = []
        steps = zip(before.unbind(0), after.unbind(0), hold(valid, len(drive)), strict=True)
        for u, u_y, keep in steps:
            blocks = torch.addmm(u, y, W_t)
            if multiscale:
                pre_gates, pre_z = blocks.split_with_sizes([2 * H, H], dim=1)
                gates = dt * torch.sigmoid(pre_gates)
                if gate_floor is not None:
                    gates = gates.clamp(gate_floor, 1.0)
                a, e = gates.chunk(2, dim=1)
                z_new = torch.lerp(z, torch.tanh(pre_z), a)  # (1 - a) z + a tanh(...)
                y_new = torch.lerp(y, torch.tanh(torch.addmm(u_y, z_new, W_y_t)), e)
            else:
                z_new = torch.lerp(z, torch.tanh(blocks), dt)
                y_new = torch.lerp(y, torch.tanh(torch.addmm(u_y, z_new, W_y_t)), dt)
            y = y_new if keep is None else torch.where(keep, y_new, y)
            z = z_new if keep is None else torch.where(keep, z_new, z)
            outputs.append(y)
        return torch.stack(outputs), y, z

    return run_stack(walk, x, y0, z0, bidirectional=bidirectional, lengths=lengths, masks=masks)
