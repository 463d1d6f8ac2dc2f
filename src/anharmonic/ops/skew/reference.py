"""The recurrence with a skew-symmetric matrix as a loop to check by eye."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic.ops.memory import walk_chain
from anharmonic.ops.steps import Steps, keep


def skew_reference(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    lengths: Tensor | None,
    masks: list[Tensor] | None,
    elapsed: Tensor | None,
    whole: bool,
    memory: str,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain of ``ops.skew`` in plain PyTorch; z only passes through."""

    def walk(
        weight: tuple[Any, ...], levels: list[Tensor], y: Tensor, z: Tensor, steps: Steps
    ) -> tuple[Tensor, Tensor, Tensor]:
        V, W, b = weight
        drive = F.linear(levels[-1], V, b)  # of gate and source, all these steps
        W_s, M = W.chunk(2)
        C_t = (M.t() - M) / math.sqrt(2.0)
        W_s_t = W_s.t()
        outputs = []
        for u, gap, valid in zip(drive.unbind(0), steps.gaps(), steps.holds(), strict=True):
            h: Any = dt if gap is None else dt * gap
            u_s, u_0 = u.chunk(2, dim=1)
            s = torch.sigmoid(torch.addmm(u_s, y, W_s_t))
            A_y = s * torch.mm(s * y, C_t)
            y = keep(valid, y + h * (torch.tanh(u_0) + A_y), y)
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
