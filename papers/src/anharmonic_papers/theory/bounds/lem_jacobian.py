r"""What the papers say about the Jacobian of a LEM step (before T 5.2.2), exactly.

With A, B, C, D what the gate of z, the gate of y, the update of z and that of y see, and blocks in
the order [y, z], :math:`\partial X_n / \partial X_{n-1} = I + dt\,E + dt^2 F` where

.. math::
    E_{zz} &= -\mathrm{diag}(\hat\sigma(A)) \\
    E_{zy} &= \mathrm{diag}(\hat\sigma'(A)(\tanh C - z_{n-1})) W_1
              + \mathrm{diag}(\hat\sigma(A) \tanh' C) W_z \\
    E_{yz} &= \mathrm{diag}(\hat\sigma(B) \tanh' D) W_y \\
    E_{yy} &= -\mathrm{diag}(\hat\sigma(B))
              + \mathrm{diag}(\hat\sigma'(B)(\tanh D - y_{n-1})) W_2 \\
    F_{yz} &= -E_{yz}\, \mathrm{diag}(\hat\sigma(A)), \quad F_{yy} = E_{yz} E_{zy}, \quad
    F_{z\cdot} = 0.

What the checks take, unless they say otherwise:

    layer: One layer, one direction, learned gates without a floor, float64.
    x: One sequence.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from anharmonic.nn import LEM
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.bounds.lem_states import check_gates, envelope, open_gates, scaled
from anharmonic_papers.theory.gradients import column_sum, jacobians, row_sum
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import check_one_sequence, trajectory, weights


class Seen(NamedTuple):
    """A LEM's run: what its gates and updates see at steps 1 to T, and its states 0 to T."""

    A: Tensor
    B: Tensor
    C: Tensor
    D: Tensor
    y: Tensor
    z: Tensor


def seen(layer: LEM, x: Tensor) -> Seen:
    """A to D [T, H] and the states [T + 1, H] of one sequence from rest, x [T, 1, F]."""
    check_gates(layer)
    check_one_sequence(x)
    values, path = weights(layer), trajectory(layer, x)
    y, z = path.y[:, 0, 0], path.z[:, 0, 0]
    drive = x[:, 0] @ values["weight_ih"].T + values["bias"]
    drive_A, drive_B, drive_C, drive_D = drive.chunk(4, dim=-1)
    by_A, by_B, by_C = (y[:-1] @ values["weight_hh"].T).chunk(3, dim=-1)
    D = drive_D + z[1:] @ values["weight_zh"].T
    return Seen(drive_A + by_A, drive_B + by_B, drive_C + by_C, D, y, z)


def parts(layer: LEM, x: Tensor) -> tuple[Tensor, Tensor]:
    """The E and F of every step, [T, 2H, 2H] each."""
    run, values = seen(layer, x), weights(layer)
    W1, W2, Wz = values["weight_hh"].chunk(3)
    gate_z, gate_y = torch.sigmoid(run.A), torch.sigmoid(run.B)
    update_z, update_y = torch.tanh(run.C), torch.tanh(run.D)
    into_z = gate_z * (1 - gate_z) * (update_z - run.z[:-1])
    into_y = gate_y * (1 - gate_y) * (update_y - run.y[:-1])
    zy = into_z[..., None] * W1 + (gate_z * (1 - update_z.square()))[..., None] * Wz
    yz = (gate_y * (1 - update_y.square()))[..., None] * values["weight_zh"]
    yy = into_y[..., None] * W2 - torch.diag_embed(gate_y)
    zz = -torch.diag_embed(gate_z)
    E = torch.cat([torch.cat([yy, yz], -1), torch.cat([zy, zz], -1)], -2)
    upper = torch.cat([yz @ zy, yz @ zz], -1)
    return E, torch.cat([upper, torch.zeros_like(upper)], -2)


def eta(layer: LEM, *, columns: bool = False) -> float:
    """The η of T 5.2.2: the largest norm ‖·‖∞ of W_1, W_2, W_z and W_y (or ‖·‖_1)."""
    norm, values = column_sum if columns else row_sum, weights(layer)
    return max(float(norm(W)) for W in (*values["weight_hh"].chunk(3), values["weight_zh"]))


@statement(
    "lem-jacobian",
    number="T 5.2.2",
    chapter="LEM",
    claim="∂X_n/∂X_{n-1} = I + dt E + dt² F.",
    state="holds",
    remark="An exact identity.",
    example=lambda: jacobian(*scaled(4, 0.7, 3.0, 20)),
)
def jacobian(layer: LEM, x: Tensor) -> Check:
    """The Jacobian of every step by automatic differentiation against its parts, from rest.

    Shape: x [T, 1, F]; measured and bound [T, 2H, 2H].
    """
    E, F = parts(layer, x)
    formula = torch.eye(E.shape[-1], dtype=x.dtype) + layer.dt * E + layer.dt**2 * F
    return Check(jacobians(layer, x), formula, relation="==", quantity="entries of ∂X_n/∂X_{n-1}")


@statement(
    "lem-jacobian-norms",
    number="T 5.2.2",
    chapter="LEM",
    claim="‖E‖∞ ≤ 1 + (2 + q)η and ‖F‖∞ ≤ η(1 + (2 + q)η), q = min(1, D sqrt(t_n)).",
    state="holds",
    remark="η is the largest norm of W_1, W_2, W_z and W_y. Row sums or column sums, both hold.",
    example=lambda: jacobian_norms(*open_gates(4, 0.7, 0.1, 20)),
)
def jacobian_norms(layer: LEM, x: Tensor, *, columns: bool = False) -> Check:
    """The norms of E (what the Jacobian leaves for it) and F over their bounds, at every step.

    Args:
        columns: Whether ‖·‖_1 (column sums) is taken everywhere instead of ‖·‖∞ (row sums).

    Shape: x [T, 1, F]; measured and bound [T].
    """
    F, most = parts(layer, x)[1], eta(layer, columns=columns)
    one = torch.eye(F.shape[-1], dtype=x.dtype)
    E = (jacobians(layer, x) - one) / layer.dt - layer.dt * F
    norm = column_sum if columns else row_sum
    size = 1 + (2 + envelope(len(x), layer.dt)) * most
    return Check(
        measured=torch.maximum(norm(E) / size, (norm(F) / (most * size)).nan_to_num(0.0)),
        bound=torch.ones(()),
        assumptions={"dt ≤ 1": layer.dt <= 1},
        quantity="larger of ‖E‖∞ and ‖F‖∞, each over its bound",
    )
