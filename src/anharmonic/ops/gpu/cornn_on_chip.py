"""coRNN's kernels where W and 𝒲 stay on chip: a program walks a few sequences through a tile."""

from __future__ import annotations

import triton
import triton.language as tl

from anharmonic.ops.gpu.elementary import tanh_of


@triton.jit
def moved(
    y: tl.tensor, z: tl.tensor, t: tl.tensor, h: tl.tensor, gamma: tl.tensor, epsilon: tl.tensor,
    IMPLICIT: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """The new z from t = tanh A."""
    force = tl.fma(-gamma, y, t)
    if IMPLICIT:
        return tl.fma(h, force, z) / tl.fma(h, epsilon, 1.0)
    else:
        return tl.fma(h, tl.fma(-epsilon, z, force), z)


@triton.jit
def carried_back(
    p: tl.tensor, q: tl.tensor, t: tl.tensor, y: tl.tensor, z: tl.tensor, z_new: tl.tensor,
    h: tl.tensor, gamma: tl.tensor, epsilon: tl.tensor, IMPLICIT: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """P and q before the step but for the products, the drive's gradient, and those of scalars."""
    q_new = tl.fma(h, p, q)
    if IMPLICIT:
        q_new = q_new / tl.fma(h, epsilon, 1.0)
        damped = z_new
        q_old = q_new
    else:
        damped = z
        q_old = tl.fma(-h * epsilon, q_new, q_new)
    hq = h * q_new
    a = hq * (1.0 - t * t)
    by_h = q_new * (tl.fma(-gamma, y, t) - epsilon * damped) + p * z_new
    return tl.fma(-gamma, hq, p), q_old, a, by_h, -hq * y, -hq * damped


@triton.jit
def forward_on_chip(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight_y: tl.tensor, weight_z: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    steps: tl.tensor, first: tl.tensor, batch: tl.tensor, hidden: tl.tensor,
    IMPLICIT: tl.constexpr, HAS_ELAPSED: tl.constexpr, HAS_LENGTHS: tl.constexpr,
    PRECISION: tl.constexpr, STAGES: tl.constexpr,
    TILE: tl.constexpr, WIDTH: tl.constexpr,
) -> None:  # fmt: skip
    """Walks a few sequences through a tile; the drive becomes the activations."""
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column, inner = tl.arange(0, WIDTH), tl.arange(0, WIDTH)
    inside = (row[:, None] < batch) & (column[None, :] < hidden)
    at = row[:, None] * hidden + column[None, :]
    stride = tl.cast(batch, tl.int64) * hidden
    in_matrix = (inner[:, None] < hidden) & (column[None, :] < hidden)
    turned = column[None, :] * hidden + inner[:, None]
    W_y = tl.load(weight_y + turned, mask=in_matrix, other=0.0)
    W_z = tl.load(weight_z + turned, mask=in_matrix, other=0.0)
    dt, gamma, epsilon = tl.load(scalars), tl.load(scalars + 1), tl.load(scalars + 2)
    y_n = tl.load(y + at, mask=inside, other=0.0)
    z_n = tl.load(z + at, mask=inside, other=0.0)
    length = row * 0
    if HAS_LENGTHS:
        length = tl.load(lengths + row, mask=row < batch, other=0)
    for n in tl.range(0, steps, num_stages=STAGES):
        here = stride * n + at
        x = tl.load(acts + here, mask=inside, other=0.0)
        a = tl.dot(y_n.to(W_y.dtype), W_y, x, input_precision=PRECISION)
        a = tl.dot(z_n.to(W_z.dtype), W_z, a, input_precision=PRECISION)
        h = dt
        if HAS_ELAPSED:
            gap = elapsed + (tl.cast(batch, tl.int64) * n + row)
            h = (tl.load(gap, mask=row < batch, other=0.0) * dt)[:, None]
        t = tanh_of(a)
        z_new = moved(y_n, z_n, t, h, gamma, epsilon, IMPLICIT)
        y_new = tl.fma(h, z_new, y_n)
        if HAS_LENGTHS:
            runs = (first + n < length)[:, None]
            z_new = tl.where(runs, z_new, z_n)
            y_new = tl.where(runs, y_new, y_n)
        y_n = y_new
        z_n = z_new
        tl.store(acts + here, t, mask=inside)
        tl.store(y + (here + stride), y_n, mask=inside)
        tl.store(z + (here + stride), z_n, mask=inside)


@triton.jit
def backward_on_chip(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight_y: tl.tensor, weight_z: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    grad: tl.tensor, grad_y: tl.tensor, grad_z: tl.tensor, g: tl.tensor, by_gap: tl.tensor,
    sum_dt: tl.tensor, sum_gamma: tl.tensor, sum_epsilon: tl.tensor,
    steps: tl.tensor, first: tl.tensor, batch: tl.tensor, hidden: tl.tensor,
    IMPLICIT: tl.constexpr, HAS_ELAPSED: tl.constexpr, HAS_LENGTHS: tl.constexpr,
    HAS_GRAD: tl.constexpr, BY_GAP: tl.constexpr,
    PRECISION: tl.constexpr, STAGES: tl.constexpr,
    TILE: tl.constexpr, WIDTH: tl.constexpr,
) -> None:  # fmt: skip
    """Carries the gradients of a few sequences back through a tile."""
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column, inner = tl.arange(0, WIDTH), tl.arange(0, WIDTH)
    inside = (row[:, None] < batch) & (column[None, :] < hidden)
    at = row[:, None] * hidden + column[None, :]
    stride = tl.cast(batch, tl.int64) * hidden
    in_matrix = (inner[:, None] < hidden) & (column[None, :] < hidden)
    straight = inner[:, None] * hidden + column[None, :]
    W_y = tl.load(weight_y + straight, mask=in_matrix, other=0.0)
    W_z = tl.load(weight_z + straight, mask=in_matrix, other=0.0)
    dt, gamma, epsilon = tl.load(scalars), tl.load(scalars + 1), tl.load(scalars + 2)
    p = tl.load(grad_y + at, mask=inside, other=0.0)
    q = tl.load(grad_z + at, mask=inside, other=0.0)
    length = row * 0
    if HAS_LENGTHS:
        length = tl.load(lengths + row, mask=row < batch, other=0)
    by_dt = p * 0.0
    by_gamma = p * 0.0
    by_epsilon = p * 0.0
    z_new = tl.load(z + (stride * steps + at), mask=inside, other=0.0)
    for k in tl.range(0, steps, num_stages=STAGES):
        n = steps - 1 - k
        here = stride * n + at
        t = tl.load(acts + here, mask=inside, other=0.0)
        y_old = tl.load(y + here, mask=inside, other=0.0)
        z_old = tl.load(z + here, mask=inside, other=0.0)
        h = dt
        e = 1.0
        if HAS_ELAPSED:
            gap = elapsed + (tl.cast(batch, tl.int64) * n + row)
            e = tl.load(gap, mask=row < batch, other=0.0)[:, None]
            h = e * dt
        if HAS_GRAD:
            p += tl.load(grad + here, mask=inside, other=0.0)
        p_new, q_new, a, by_h, for_gamma, for_epsilon = carried_back(
            p, q, t, y_old, z_old, z_new, h, gamma, epsilon, IMPLICIT
        )
        if HAS_LENGTHS:
            runs = (first + n < length)[:, None]
            p_new = tl.where(runs, p_new, p)
            q_new = tl.where(runs, q_new, q)
            a = tl.where(runs, a, 0.0)
            by_h = tl.where(runs, by_h, 0.0)
            for_gamma = tl.where(runs, for_gamma, 0.0)
            for_epsilon = tl.where(runs, for_epsilon, 0.0)
        z_new = z_old
        tl.store(g + here, a, mask=inside)
        if BY_GAP:
            tl.store(by_gap + here, dt * by_h, mask=inside)
        by_dt = tl.fma(by_h, e, by_dt)
        by_gamma += for_gamma
        by_epsilon += for_epsilon
        p = tl.dot(a.to(W_y.dtype), W_y, p_new, input_precision=PRECISION)
        q = tl.dot(a.to(W_z.dtype), W_z, q_new, input_precision=PRECISION)
    tl.store(grad_y + at, p, mask=inside)
    tl.store(grad_z + at, q, mask=inside)
    tl.store(sum_dt + at, tl.load(sum_dt + at, mask=inside, other=0.0) + by_dt, mask=inside)
    by_gamma += tl.load(sum_gamma + at, mask=inside, other=0.0)
    tl.store(sum_gamma + at, by_gamma, mask=inside)
    by_epsilon += tl.load(sum_epsilon + at, mask=inside, other=0.0)
    tl.store(sum_epsilon + at, by_epsilon, mask=inside)
