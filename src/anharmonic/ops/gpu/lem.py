"""LEM on a GPU: its recurrent matrices stay on chip, and a program runs 16 sequences.

The kernels store four activations per step: the sigmoids of both gates and the tanh of z and of y.
The single-scale model has no gates and stores only the last two.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl
from torch import Tensor

from anharmonic.ops.gpu.elementary import Model, matrix_at, sigmoid_of, tanh_of


@triton.jit
def gate_of(o: tl.tensor, h: tl.tensor, floor: tl.tensor, CLIPPED: tl.constexpr) -> tl.tensor:
    """Return the gate computed from a sigmoid."""
    gate = h * o
    if CLIPPED:
        gate = tl.where(gate < floor, floor, tl.where(gate > 1.0, 1.0, gate))
    return gate


@triton.jit
def by_sigmoid(
    by_gate: tl.tensor, o: tl.tensor, h: tl.tensor, floor: tl.tensor, CLIPPED: tl.constexpr
) -> tl.tensor:
    """Return the gradient of a gate, 0 where it is clipped."""
    if CLIPPED:
        return tl.where((h * o < floor) | (h * o > 1.0), 0.0, by_gate)
    else:
        return by_gate


@triton.jit
def forward_on_chip(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight: tl.tensor, weight_y: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    steps: tl.tensor, first: tl.tensor, batch: tl.tensor, hidden: tl.tensor,
    CLIPPED: tl.constexpr, GATED: tl.constexpr, HAS_ELAPSED: tl.constexpr,
    HAS_LENGTHS: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
    TILE: tl.constexpr, WIDTH: tl.constexpr,
) -> None:  # fmt: skip
    """Compute the states of a tile; the activations replace the drive."""
    row, column = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.arange(0, WIDTH)
    inside = (row[:, None] < batch) & (column[None, :] < hidden)
    DRIVES: tl.constexpr = 4 if GATED else 2
    at = row[:, None] * hidden + column[None, :]
    drive_at = row[:, None] * (DRIVES * hidden) + column[None, :]
    stride = tl.cast(batch, tl.int64) * hidden
    block = hidden * hidden
    if GATED:
        W_1 = matrix_at(weight, hidden, True, WIDTH)
        W_2 = matrix_at(weight + block, hidden, True, WIDTH)
    W_z = matrix_at(weight + (DRIVES - 2) * block, hidden, True, WIDTH)
    W_y = matrix_at(weight_y, hidden, True, WIDTH)
    dt, floor = tl.load(scalars), tl.load(scalars + 3)
    y_n = tl.load(y + at, mask=inside, other=0.0)
    z_n = tl.load(z + at, mask=inside, other=0.0)
    length = row * 0
    if HAS_LENGTHS:
        length = tl.load(lengths + row, mask=row < batch, other=0)
    for n in tl.range(0, steps, num_stages=STAGES):
        at_n = stride * n + at
        drive = acts + (stride * DRIVES * n + drive_at)
        h = dt
        if HAS_ELAPSED:
            gap = elapsed + (tl.cast(batch, tl.int64) * n + row)
            h = (tl.load(gap, mask=row < batch, other=0.0) * dt)[:, None]
        state = y_n.to(W_y.dtype)
        x_z = tl.load(drive + (DRIVES - 2) * hidden, mask=inside, other=0.0)
        x_y = tl.load(drive + (DRIVES - 1) * hidden, mask=inside, other=0.0)
        t_z = tanh_of(tl.dot(state, W_z, x_z, input_precision=PRECISION))
        a = h
        e = h
        if GATED:
            x_1 = tl.load(drive, mask=inside, other=0.0)
            x_2 = tl.load(drive + hidden, mask=inside, other=0.0)
            o_1 = sigmoid_of(tl.dot(state, W_1, x_1, input_precision=PRECISION))
            o_2 = sigmoid_of(tl.dot(state, W_2, x_2, input_precision=PRECISION))
            a = gate_of(o_1, h, floor, CLIPPED)
            e = gate_of(o_2, h, floor, CLIPPED)
            tl.store(drive, o_1, mask=inside)
            tl.store(drive + hidden, o_2, mask=inside)
        z_new = tl.fma(a, t_z - z_n, z_n)
        t_y = tanh_of(tl.dot(z_new.to(W_y.dtype), W_y, x_y, input_precision=PRECISION))
        y_new = tl.fma(e, t_y - y_n, y_n)
        if HAS_LENGTHS:
            valid = (first + n < length)[:, None]
            z_new = tl.where(valid, z_new, z_n)
            y_new = tl.where(valid, y_new, y_n)
        y_n = y_new
        z_n = z_new
        tl.store(drive + (DRIVES - 2) * hidden, t_z, mask=inside)
        tl.store(drive + (DRIVES - 1) * hidden, t_y, mask=inside)
        tl.store(y + (at_n + stride), y_n, mask=inside)
        tl.store(z + (at_n + stride), z_n, mask=inside)


@triton.jit
def backward_on_chip(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight: tl.tensor, weight_y: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    grad: tl.tensor, grad_y: tl.tensor, grad_z: tl.tensor, grad_drive: tl.tensor,
    grad_gaps: tl.tensor,
    steps: tl.tensor, first: tl.tensor, batch: tl.tensor, hidden: tl.tensor,
    CLIPPED: tl.constexpr, GATED: tl.constexpr, HAS_ELAPSED: tl.constexpr,
    HAS_LENGTHS: tl.constexpr, HAS_GRAD: tl.constexpr, HAS_GAPS: tl.constexpr,
    PRECISION: tl.constexpr, STAGES: tl.constexpr, TILE: tl.constexpr, WIDTH: tl.constexpr,
) -> None:  # fmt: skip
    """Carry the gradients p of y and q of z back through a tile."""
    row, column = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.arange(0, WIDTH)
    inside = (row[:, None] < batch) & (column[None, :] < hidden)
    DRIVES: tl.constexpr = 4 if GATED else 2
    at = row[:, None] * hidden + column[None, :]
    drive_at = row[:, None] * (DRIVES * hidden) + column[None, :]
    stride = tl.cast(batch, tl.int64) * hidden
    block = hidden * hidden
    if GATED:
        W_1 = matrix_at(weight, hidden, False, WIDTH)
        W_2 = matrix_at(weight + block, hidden, False, WIDTH)
    W_z = matrix_at(weight + (DRIVES - 2) * block, hidden, False, WIDTH)
    W_y = matrix_at(weight_y, hidden, False, WIDTH)
    dt, floor = tl.load(scalars), tl.load(scalars + 3)
    p = tl.load(grad_y + at, mask=inside, other=0.0)
    q = tl.load(grad_z + at, mask=inside, other=0.0)
    length = row * 0
    if HAS_LENGTHS:
        length = tl.load(lengths + row, mask=row < batch, other=0)
    for k in tl.range(0, steps, num_stages=STAGES):
        n = steps - 1 - k
        at_n = stride * n + at
        drive_at_n = stride * DRIVES * n + drive_at
        y_old = tl.load(y + at_n, mask=inside, other=0.0)
        z_old = tl.load(z + at_n, mask=inside, other=0.0)
        t_z = tl.load(acts + (drive_at_n + (DRIVES - 2) * hidden), mask=inside, other=0.0)
        t_y = tl.load(acts + (drive_at_n + (DRIVES - 1) * hidden), mask=inside, other=0.0)
        valid = inside
        if HAS_LENGTHS:
            valid = inside & (first + n < length)[:, None]
        h = dt
        if HAS_ELAPSED:
            gap = elapsed + (tl.cast(batch, tl.int64) * n + row)
            h = (tl.load(gap, mask=row < batch, other=0.0) * dt)[:, None]
        if HAS_GRAD:
            p += tl.load(grad + at_n, mask=inside, other=0.0)
        e = h
        by_h = p * (t_y - y_old)
        if GATED:
            o_2 = tl.load(acts + (drive_at_n + hidden), mask=inside, other=0.0)
            e = gate_of(o_2, h, floor, CLIPPED)
            by_h = by_sigmoid(by_h, o_2, h, floor, CLIPPED) * o_2
            g_2 = tl.where(valid, h * by_h * (1.0 - o_2), 0.0)
            tl.store(grad_drive + (drive_at_n + hidden), g_2, mask=inside)
        g_y = tl.where(valid, p * e * (1.0 - t_y * t_y), 0.0)
        tl.store(grad_drive + (drive_at_n + (DRIVES - 1) * hidden), g_y, mask=inside)
        p = tl.where(valid, tl.fma(-p, e, p), p)
        q = tl.dot(g_y.to(W_y.dtype), W_y, q, input_precision=PRECISION)
        a = h
        by_h_of_z = q * (t_z - z_old)
        if GATED:
            o_1 = tl.load(acts + drive_at_n, mask=inside, other=0.0)
            a = gate_of(o_1, h, floor, CLIPPED)
            by_h_of_z = by_sigmoid(by_h_of_z, o_1, h, floor, CLIPPED) * o_1
            g_1 = tl.where(valid, h * by_h_of_z * (1.0 - o_1), 0.0)
            tl.store(grad_drive + drive_at_n, g_1, mask=inside)
            p = tl.dot(g_1.to(W_y.dtype), W_1, p, input_precision=PRECISION)
            p = tl.dot(g_2.to(W_y.dtype), W_2, p, input_precision=PRECISION)
        g_z = tl.where(valid, q * a * (1.0 - t_z * t_z), 0.0)
        tl.store(grad_drive + (drive_at_n + (DRIVES - 2) * hidden), g_z, mask=inside)
        q = tl.where(valid, tl.fma(-q, a, q), q)
        p = tl.dot(g_z.to(W_y.dtype), W_z, p, input_precision=PRECISION)
        if HAS_GAPS:
            tl.store(grad_gaps + at_n, tl.where(valid, dt * (by_h + by_h_of_z), 0.0), mask=inside)
    tl.store(grad_y + at, p, mask=inside)
    tl.store(grad_z + at, q, mask=inside)


class _LEM(Model):
    kernels = forward_on_chip, backward_on_chip

    def __init__(self, **constants: bool) -> None:
        super().__init__(**constants)
        self.drives = 4 if constants["GATED"] else 2

    def operands(self, g: Tensor, y: Tensor, z: Tensor) -> Sequence[tuple[Tensor, Tensor]]:
        of_z = len(g) - y.shape[-1]
        return (g[:of_z], y[:-1]), (g[of_z:], z[1:])


MODELS = {
    "lem": _LEM(GATED=True, CLIPPED=False),
    "lem_clipped": _LEM(GATED=True, CLIPPED=True),
    "lem_single_scale": _LEM(GATED=False, CLIPPED=False),
}
