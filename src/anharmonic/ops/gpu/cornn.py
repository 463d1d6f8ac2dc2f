"""coRNN on a GPU: W and 𝒲 stay on chip, and a program runs 16 sequences through a tile.

The kernels store one activation per step, t = tanh A.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl
from torch import Tensor

from anharmonic.ops.gpu.elementary import Model, add_at, matrix_at, tanh_of


@triton.jit
def forward_on_chip(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight_y: tl.tensor, weight_z: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    steps: tl.tensor, first: tl.tensor, batch: tl.tensor, hidden: tl.tensor,
    IMPLICIT: tl.constexpr, HAS_ELAPSED: tl.constexpr, HAS_LENGTHS: tl.constexpr,
    PRECISION: tl.constexpr, STAGES: tl.constexpr, TILE: tl.constexpr, WIDTH: tl.constexpr,
) -> None:  # fmt: skip
    """Compute the states of a tile; the activations replace the drive."""
    row, column = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.arange(0, WIDTH)
    inside = (row[:, None] < batch) & (column[None, :] < hidden)
    at = row[:, None] * hidden + column[None, :]
    stride = tl.cast(batch, tl.int64) * hidden
    W_y = matrix_at(weight_y, hidden, True, WIDTH)
    W_z = matrix_at(weight_z, hidden, True, WIDTH)
    dt, gamma, epsilon = tl.load(scalars), tl.load(scalars + 1), tl.load(scalars + 2)
    y_n = tl.load(y + at, mask=inside, other=0.0)
    z_n = tl.load(z + at, mask=inside, other=0.0)
    length = row * 0
    if HAS_LENGTHS:
        length = tl.load(lengths + row, mask=row < batch, other=0)
    for n in tl.range(0, steps, num_stages=STAGES):
        at_n = stride * n + at
        x = tl.load(acts + at_n, mask=inside, other=0.0)
        a = tl.dot(y_n.to(W_y.dtype), W_y, x, input_precision=PRECISION)
        a = tl.dot(z_n.to(W_z.dtype), W_z, a, input_precision=PRECISION)
        h = dt
        if HAS_ELAPSED:
            gap = elapsed + (tl.cast(batch, tl.int64) * n + row)
            h = (tl.load(gap, mask=row < batch, other=0.0) * dt)[:, None]
        t = tanh_of(a)
        force = tl.fma(-gamma, y_n, t)
        if IMPLICIT:
            z_new = tl.fma(h, force, z_n) / tl.fma(h, epsilon, 1.0)
        else:
            z_new = tl.fma(h, tl.fma(-epsilon, z_n, force), z_n)
        y_new = tl.fma(h, z_new, y_n)
        if HAS_LENGTHS:
            valid = (first + n < length)[:, None]
            z_new = tl.where(valid, z_new, z_n)
            y_new = tl.where(valid, y_new, y_n)
        y_n = y_new
        z_n = z_new
        tl.store(acts + at_n, t, mask=inside)
        tl.store(y + (at_n + stride), y_n, mask=inside)
        tl.store(z + (at_n + stride), z_n, mask=inside)


@triton.jit
def backward_on_chip(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight_y: tl.tensor, weight_z: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    grad: tl.tensor, grad_y: tl.tensor, grad_z: tl.tensor, grad_drive: tl.tensor,
    grad_gaps: tl.tensor, sum_dt: tl.tensor, sum_gamma: tl.tensor, sum_epsilon: tl.tensor,
    steps: tl.tensor, first: tl.tensor, batch: tl.tensor, hidden: tl.tensor,
    IMPLICIT: tl.constexpr, HAS_ELAPSED: tl.constexpr, HAS_LENGTHS: tl.constexpr,
    HAS_GRAD: tl.constexpr, HAS_GAPS: tl.constexpr,
    PRECISION: tl.constexpr, STAGES: tl.constexpr, TILE: tl.constexpr, WIDTH: tl.constexpr,
) -> None:  # fmt: skip
    """Carry the gradients p of y and q of z back through a tile."""
    row, column = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.arange(0, WIDTH)
    inside = (row[:, None] < batch) & (column[None, :] < hidden)
    at = row[:, None] * hidden + column[None, :]
    stride = tl.cast(batch, tl.int64) * hidden
    W_y = matrix_at(weight_y, hidden, False, WIDTH)
    W_z = matrix_at(weight_z, hidden, False, WIDTH)
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
        at_n = stride * n + at
        t = tl.load(acts + at_n, mask=inside, other=0.0)
        y_old = tl.load(y + at_n, mask=inside, other=0.0)
        z_old = tl.load(z + at_n, mask=inside, other=0.0)
        h = dt
        e = 1.0
        if HAS_ELAPSED:
            gap = elapsed + (tl.cast(batch, tl.int64) * n + row)
            e = tl.load(gap, mask=row < batch, other=0.0)[:, None]
            h = e * dt
        if HAS_GRAD:
            p += tl.load(grad + at_n, mask=inside, other=0.0)
        q_new = tl.fma(h, p, q)
        if IMPLICIT:
            q_new = q_new / tl.fma(h, epsilon, 1.0)
            damped = z_new
            q_old = q_new
        else:
            damped = z_old
            q_old = tl.fma(-h * epsilon, q_new, q_new)
        hq = h * q_new
        a = hq * (1.0 - t * t)
        by_h = q_new * (tl.fma(-gamma, y_old, t) - epsilon * damped) + p * z_new
        p_old = tl.fma(-gamma, hq, p)
        if HAS_LENGTHS:
            valid = (first + n < length)[:, None]
            p_old = tl.where(valid, p_old, p)
            q_old = tl.where(valid, q_old, q)
            a = tl.where(valid, a, 0.0)
            by_h = tl.where(valid, by_h, 0.0)
            hq = tl.where(valid, hq, 0.0)
        tl.store(grad_drive + at_n, a, mask=inside)
        if HAS_GAPS:
            tl.store(grad_gaps + at_n, dt * by_h, mask=inside)
        by_dt = tl.fma(by_h, e, by_dt)
        by_gamma -= hq * y_old
        by_epsilon -= hq * damped
        z_new = z_old
        p = tl.dot(a.to(W_y.dtype), W_y, p_old, input_precision=PRECISION)
        q = tl.dot(a.to(W_z.dtype), W_z, q_old, input_precision=PRECISION)
    tl.store(grad_y + at, p, mask=inside)
    tl.store(grad_z + at, q, mask=inside)
    add_at(sum_dt, at, by_dt, inside)
    add_at(sum_gamma, at, by_gamma, inside)
    add_at(sum_epsilon, at, by_epsilon, inside)


class _CoRNN(Model):
    kernels = forward_on_chip, backward_on_chip
    sums = 3

    def operands(self, g: Tensor, y: Tensor, z: Tensor) -> Sequence[tuple[Tensor, Tensor]]:
        return (g, y[:-1]), (g, z[:-1])

    def add_sums(self, grads: Sequence[Tensor], grad_scalars: Tensor, sums: Tensor) -> None:
        grad_scalars[:3] += sums.sum((1, 2))


MODELS = {"cornn_explicit": _CoRNN(IMPLICIT=False), "cornn_implicit": _CoRNN(IMPLICIT=True)}
