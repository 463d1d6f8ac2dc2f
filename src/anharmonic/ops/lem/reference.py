"""The LEM recurrence as a loop to check by eye."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic.ops.memory import walk_chain
from anharmonic.ops.steps import Steps, keep


def lem_reference(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    multiscale: bool,
    gate_floor: float | None,
    lengths: Tensor | None,
    masks: list[Tensor] | None,
    elapsed: Tensor | None,
    whole: bool,
    memory: str,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain of ``ops.lem`` in plain PyTorch, one step after another."""

    def walk(
        weight: tuple[Any, ...], levels: list[Tensor], y: Tensor, z: Tensor, steps: Steps
    ) -> tuple[Tensor, Tensor, Tensor]:
        V, W, W_y, b = weight
        H = W_y.shape[0]
        drive = F.linear(levels[-1], V, b)  # V u_n + b of every row block, all these steps
        # What y_{n-1} joins (gates and z) and what z_n joins (y).
        before, after = drive.split_with_sizes([drive.shape[-1] - H, H], dim=-1)
        W_t, W_y_t = W.t(), W_y.t()
        outputs = []
        for u, u_y, gap, valid in zip(
            before.unbind(0), after.unbind(0), steps.gaps(), steps.holds(), strict=True
        ):
            h: Any = dt if gap is None else dt * gap
            blocks = torch.addmm(u, y, W_t)
            if multiscale:
                pre_gates, pre_z = blocks.split_with_sizes([2 * H, H], dim=1)
                gates = h * torch.sigmoid(pre_gates)
                if gate_floor is not None:
                    gates = gates.clamp(gate_floor, 1.0)
                a, e = gates.chunk(2, dim=1)
            else:
                pre_z, a, e = blocks, h, h
            z_new = torch.lerp(z, torch.tanh(pre_z), a)  # (1 - a) z + a tanh(...)
            y_new = torch.lerp(y, torch.tanh(torch.addmm(u_y, z_new, W_y_t)), e)
            y, z = keep(valid, y_new, y), keep(valid, z_new, z)
            outputs.append(y)
        return torch.stack(outputs), y, z

    return walk_chain(
        walk,
        x,
        weights,
        y0,
        z0,
        lengths=lengths,
        masks=masks,
        elapsed=elapsed,
        whole=whole,
        memory=memory,
    )
