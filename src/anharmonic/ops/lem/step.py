"""One step of LEM: the equation."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic.ops.recurrence import Layer, State


class LEMWeights(NamedTuple):
    """Weights of one layer in one direction.

    weight_ih [4H, F] (V1, V2, Vz, Vy), weight_hh [3H, H] (W1, W2, Wz), weight_zh [H, H] (Wy),
    bias [4H] or None; without multiscale [2H, F] (Vz, Vy), [H, H] (Wz), [H, H], [2H].
    """

    weight_ih: Tensor
    weight_hh: Tensor
    weight_zh: Tensor
    bias: Tensor | None


class LEMDrive(NamedTuple):
    """V u_n + b of the maps that read y_{n-1} (gates, z) and of the one that reads z_n (y)."""

    gates_z: Tensor
    y: Tensor


class LEMMatrices(NamedTuple):
    """The recurrent maps, transposed: W1, W2, Wz, which act on y_{n-1}, and Wy, on z_n."""

    gates_z: Tensor
    y: Tensor


def lem_layer(weights: LEMWeights, inputs: list[Tensor], dt: float) -> Layer:
    """A layer ready for a stretch of time."""
    drive = F.linear(inputs[-1], weights.weight_ih, weights.bias)
    H = weights.weight_zh.shape[0]
    gates_z, y = drive.split_with_sizes([drive.shape[-1] - H, H], dim=-1)
    matrices = LEMMatrices(weights.weight_hh.t(), weights.weight_zh.t())
    return Layer(LEMDrive(gates_z, y), matrices, dt)


def lem_step(
    u: LEMDrive, state: State, w: LEMMatrices, dt: float | Tensor, gate_floor: float | None = None
) -> State:
    r"""Equation (5.3); without multiscale both gates are dt.

    .. math::
        a_n &= dt\,\hat\sigma(W_1 y_{n-1} + V_1 u_n + b_1), \quad
        e_n = dt\,\hat\sigma(W_2 y_{n-1} + V_2 u_n + b_2) \\
        z_n &= (1 - a_n) \odot z_{n-1} + a_n \odot \tanh(W_z y_{n-1} + V_z u_n + b_z) \\
        y_n &= (1 - e_n) \odot y_{n-1} + e_n \odot \tanh(W_y z_n + V_y u_n + b_y)

    With ``gate_floor`` a and e are clipped to [gate_floor, 1].
    """
    y, z = state
    H = y.shape[-1]
    A_z, a, e = torch.addmm(u.gates_z, y, w.gates_z), dt, dt
    if A_z.shape[1] > H:
        A_gates, A_z = A_z.split_with_sizes([2 * H, H], dim=1)
        gates = dt * torch.sigmoid(A_gates)
        if gate_floor is not None:
            gates = gates.clamp(gate_floor, 1.0)
        a, e = gates.chunk(2, dim=1)
    z = torch.lerp(z, torch.tanh(A_z), a)
    y = torch.lerp(y, torch.tanh(torch.addmm(u.y, z, w.y)), e)
    return State(y, z)
