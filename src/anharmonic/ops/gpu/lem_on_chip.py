"""LEM's kernels where its four matrices stay on chip: a program walks a few sequences."""

from __future__ import annotations

import triton
import triton.language as tl

from anharmonic.ops.gpu.elementary import sigmoid_of, tanh_of


@triton.jit
def gate_of(o: tl.tensor, h: tl.tensor, floor: tl.tensor, CLIPPED: tl.constexpr) -> tl.tensor:
    """A gate from its sigmoid."""
    gate = h * o
    if CLIPPED:
        gate = tl.where(gate < floor, floor, tl.where(gate > 1.0, 1.0, gate))
    return gate


@triton.jit
def by_sigmoid(
    by_gate: tl.tensor, o: tl.tensor, h: tl.tensor, floor: tl.tensor, CLIPPED: tl.constexpr
) -> tl.tensor:
    """The gradient of a gate, 0 where it is clipped."""
    if CLIPPED:
        return tl.where((h * o < floor) | (h * o > 1.0), 0.0, by_gate)
    else:
        return by_gate


@triton.jit
def forward_on_chip(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight_y: tl.tensor, weight_z: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    steps: tl.tensor, first: tl.tensor, batch: tl.tensor, hidden: tl.tensor,
    CLIPPED: tl.constexpr, GATED: tl.constexpr, HAS_ELAPSED: tl.constexpr,
    HAS_LENGTHS: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
    TILE: tl.constexpr, WIDTH: tl.constexpr,
) -> None:  # fmt: skip
    """Walks a few sequences through a tile; the drive becomes the activations."""
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column, inner = tl.arange(0, WIDTH), tl.arange(0, WIDTH)
    inside = (row[:, None] < batch) & (column[None, :] < hidden)
    in_matrix = (inner[:, None] < hidden) & (column[None, :] < hidden)
    turned = column[None, :] * hidden + inner[:, None]
    SECTIONS: tl.constexpr = 4 if GATED else 2
    at = row[:, None] * hidden + column[None, :]
    at_acts = row[:, None] * (SECTIONS * hidden) + column[None, :]
    stride = tl.cast(batch, tl.int64) * hidden
    block = hidden * hidden
    if GATED:
        W_1 = tl.load(weight_y + turned, mask=in_matrix, other=0.0)
        W_2 = tl.load(weight_y + (block + turned), mask=in_matrix, other=0.0)
    W_z = tl.load(weight_y + ((SECTIONS - 2) * block + turned), mask=in_matrix, other=0.0)
    W_y = tl.load(weight_z + turned, mask=in_matrix, other=0.0)
    dt, floor = tl.load(scalars), tl.load(scalars + 1)
    y_n = tl.load(y + at, mask=inside, other=0.0)
    z_n = tl.load(z + at, mask=inside, other=0.0)
    length = row * 0
    if HAS_LENGTHS:
        length = tl.load(lengths + row, mask=row < batch, other=0)
    for n in tl.range(0, steps, num_stages=STAGES):
        here = stride * n + at
        drive = acts + (stride * SECTIONS * n + at_acts)
        h = dt
        if HAS_ELAPSED:
            gap = elapsed + (tl.cast(batch, tl.int64) * n + row)
            h = (tl.load(gap, mask=row < batch, other=0.0) * dt)[:, None]
        state = y_n.to(W_y.dtype)
        x_z = tl.load(drive + (SECTIONS - 2) * hidden, mask=inside, other=0.0)
        x_y = tl.load(drive + (SECTIONS - 1) * hidden, mask=inside, other=0.0)
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
            runs = (first + n < length)[:, None]
            z_new = tl.where(runs, z_new, z_n)
            y_new = tl.where(runs, y_new, y_n)
        y_n = y_new
        z_n = z_new
        tl.store(drive + (SECTIONS - 2) * hidden, t_z, mask=inside)
        tl.store(drive + (SECTIONS - 1) * hidden, t_y, mask=inside)
        tl.store(y + (here + stride), y_n, mask=inside)
        tl.store(z + (here + stride), z_n, mask=inside)


@triton.jit
def backward_on_chip(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight_y: tl.tensor, weight_z: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    grad: tl.tensor, grad_y: tl.tensor, grad_z: tl.tensor, g: tl.tensor, by_gap: tl.tensor,
    steps: tl.tensor, first: tl.tensor, batch: tl.tensor, hidden: tl.tensor,
    CLIPPED: tl.constexpr, GATED: tl.constexpr, HAS_ELAPSED: tl.constexpr,
    HAS_LENGTHS: tl.constexpr, HAS_GRAD: tl.constexpr, BY_GAP: tl.constexpr,
    PRECISION: tl.constexpr, STAGES: tl.constexpr,
    TILE: tl.constexpr, WIDTH: tl.constexpr,
) -> None:  # fmt: skip
    """Carries the gradients of a few sequences back through a tile."""
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column, inner = tl.arange(0, WIDTH), tl.arange(0, WIDTH)
    inside = (row[:, None] < batch) & (column[None, :] < hidden)
    in_matrix = (inner[:, None] < hidden) & (column[None, :] < hidden)
    straight = inner[:, None] * hidden + column[None, :]
    SECTIONS: tl.constexpr = 4 if GATED else 2
    at = row[:, None] * hidden + column[None, :]
    at_acts = row[:, None] * (SECTIONS * hidden) + column[None, :]
    stride = tl.cast(batch, tl.int64) * hidden
    block = hidden * hidden
    if GATED:
        W_1 = tl.load(weight_y + straight, mask=in_matrix, other=0.0)
        W_2 = tl.load(weight_y + (block + straight), mask=in_matrix, other=0.0)
    W_z = tl.load(weight_y + ((SECTIONS - 2) * block + straight), mask=in_matrix, other=0.0)
    W_y = tl.load(weight_z + straight, mask=in_matrix, other=0.0)
    dt, floor = tl.load(scalars), tl.load(scalars + 1)
    p = tl.load(grad_y + at, mask=inside, other=0.0)
    q = tl.load(grad_z + at, mask=inside, other=0.0)
    length = row * 0
    if HAS_LENGTHS:
        length = tl.load(lengths + row, mask=row < batch, other=0)
    for k in tl.range(0, steps, num_stages=STAGES):
        n = steps - 1 - k
        here = stride * n + at
        acts_at = stride * SECTIONS * n + at_acts
        y_old = tl.load(y + here, mask=inside, other=0.0)
        z_old = tl.load(z + here, mask=inside, other=0.0)
        t_z = tl.load(acts + (acts_at + (SECTIONS - 2) * hidden), mask=inside, other=0.0)
        t_y = tl.load(acts + (acts_at + (SECTIONS - 1) * hidden), mask=inside, other=0.0)
        runs = inside
        if HAS_LENGTHS:
            runs = inside & (first + n < length)[:, None]
        h = dt
        if HAS_ELAPSED:
            gap = elapsed + (tl.cast(batch, tl.int64) * n + row)
            h = (tl.load(gap, mask=row < batch, other=0.0) * dt)[:, None]
        if HAS_GRAD:
            p += tl.load(grad + here, mask=inside, other=0.0)
        e = h
        by_h = p * (t_y - y_old)
        if GATED:
            o_2 = tl.load(acts + (acts_at + hidden), mask=inside, other=0.0)
            e = gate_of(o_2, h, floor, CLIPPED)
            by_h = by_sigmoid(by_h, o_2, h, floor, CLIPPED) * o_2
            g_2 = tl.where(runs, h * by_h * (1.0 - o_2), 0.0)
            tl.store(g + (acts_at + hidden), g_2, mask=inside)
        g_y = tl.where(runs, p * e * (1.0 - t_y * t_y), 0.0)
        tl.store(g + (acts_at + (SECTIONS - 1) * hidden), g_y, mask=inside)
        p = tl.where(runs, tl.fma(-p, e, p), p)
        q = tl.dot(g_y.to(W_y.dtype), W_y, q, input_precision=PRECISION)
        a = h
        also_h = q * (t_z - z_old)
        if GATED:
            o_1 = tl.load(acts + acts_at, mask=inside, other=0.0)
            a = gate_of(o_1, h, floor, CLIPPED)
            also_h = by_sigmoid(also_h, o_1, h, floor, CLIPPED) * o_1
            g_1 = tl.where(runs, h * also_h * (1.0 - o_1), 0.0)
            tl.store(g + acts_at, g_1, mask=inside)
            p = tl.dot(g_1.to(W_y.dtype), W_1, p, input_precision=PRECISION)
            p = tl.dot(g_2.to(W_y.dtype), W_2, p, input_precision=PRECISION)
        g_z = tl.where(runs, q * a * (1.0 - t_z * t_z), 0.0)
        tl.store(g + (acts_at + (SECTIONS - 2) * hidden), g_z, mask=inside)
        q = tl.where(runs, tl.fma(-q, a, q), q)
        p = tl.dot(g_z.to(W_y.dtype), W_z, p, input_precision=PRECISION)
        if BY_GAP:
            tl.store(by_gap + here, tl.where(runs, dt * (by_h + also_h), 0.0), mask=inside)
    tl.store(grad_y + at, p, mask=inside)
    tl.store(grad_z + at, q, mask=inside)
