"""UnICORNN on a GPU: every neuron of every sequence runs through time independently.

The weights of a layer are w and h = dt σ̂(c). The kernels store one activation per step, its tanh.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from anharmonic.ops.gpu.elementary import LARGEST_BLOCK, SMALLEST_BLOCK, Model, add_at, tanh_of

AHEAD = tl.constexpr(16)
"""The number of prefetched steps."""
_PROGRAMS_WANTED = 264
"""Desired number of programs: two per multiprocessor of an H100."""


@triton.jit
def forward_by_neuron(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight: tl.tensor, size: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    steps: tl.tensor, first: tl.tensor, batch: tl.tensor, hidden: tl.tensor,
    HAS_ELAPSED: tl.constexpr, HAS_LENGTHS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Compute the states of a tile; the activations replace the drive."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < batch * hidden
    row = at // hidden
    stride = tl.cast(batch, tl.int64) * hidden
    w = tl.load(weight + at % hidden, mask=inside, other=0.0)
    h0 = tl.load(size + at % hidden, mask=inside, other=0.0)
    alpha = tl.load(scalars + 1)
    y_n = tl.load(y + at, mask=inside, other=0.0)
    z_n = tl.load(z + at, mask=inside, other=0.0)
    length = at * 0
    if HAS_LENGTHS:
        length = tl.load(lengths + row, mask=inside, other=0)
    for n in tl.range(0, steps, num_stages=AHEAD):
        at_n = stride * n + at
        x = tl.load(acts + at_n, mask=inside, other=0.0)
        h = h0
        if HAS_ELAPSED:
            h = tl.load(elapsed + (tl.cast(batch, tl.int64) * n + row), mask=inside, other=0.0) * h0
        t = tanh_of(tl.fma(w, y_n, x))
        z_new = tl.fma(-h, tl.fma(alpha, y_n, t), z_n)
        y_new = tl.fma(h, z_new, y_n)
        if HAS_LENGTHS:
            valid = first + n < length
            z_new = tl.where(valid, z_new, z_n)
            y_new = tl.where(valid, y_new, y_n)
        y_n = y_new
        z_n = z_new
        tl.store(acts + at_n, t, mask=inside)
        tl.store(y + (at_n + stride), y_n, mask=inside)
        tl.store(z + (at_n + stride), z_n, mask=inside)


@triton.jit
def backward_by_neuron(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight: tl.tensor, size: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    grad: tl.tensor, grad_y: tl.tensor, grad_z: tl.tensor, grad_drive: tl.tensor,
    grad_gaps: tl.tensor,
    sum_w: tl.tensor, sum_h: tl.tensor, sum_alpha: tl.tensor,
    steps: tl.tensor, first: tl.tensor, batch: tl.tensor, hidden: tl.tensor,
    HAS_ELAPSED: tl.constexpr, HAS_LENGTHS: tl.constexpr, HAS_GRAD: tl.constexpr,
    HAS_GAPS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Carry the gradients p of y and q of z back through a tile."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < batch * hidden
    row = at // hidden
    stride = tl.cast(batch, tl.int64) * hidden
    w = tl.load(weight + at % hidden, mask=inside, other=0.0)
    h0 = tl.load(size + at % hidden, mask=inside, other=0.0)
    alpha = tl.load(scalars + 1)
    p = tl.load(grad_y + at, mask=inside, other=0.0)
    q = tl.load(grad_z + at, mask=inside, other=0.0)
    length = at * 0
    if HAS_LENGTHS:
        length = tl.load(lengths + row, mask=inside, other=0)
    by_w = w * 0.0
    by_h0 = w * 0.0
    by_alpha = w * 0.0
    for k in tl.range(0, steps, num_stages=AHEAD):
        n = steps - 1 - k
        at_n = stride * n + at
        t = tl.load(acts + at_n, mask=inside, other=0.0)
        y_old = tl.load(y + at_n, mask=inside, other=0.0)
        z_new = tl.load(z + (at_n + stride), mask=inside, other=0.0)
        e = 1.0
        h = h0
        if HAS_ELAPSED:
            e = tl.load(elapsed + (tl.cast(batch, tl.int64) * n + row), mask=inside, other=0.0)
            h = e * h0
        if HAS_GRAD:
            p += tl.load(grad + at_n, mask=inside, other=0.0)
        q_new = tl.fma(h, p, q)
        hq = h * q_new
        by_h = p * z_new - q_new * tl.fma(alpha, y_old, t)
        a = -hq * (1.0 - t * t)
        p_old = tl.fma(-alpha, hq, tl.fma(a, w, p))
        if HAS_LENGTHS:
            valid = first + n < length
            q_new = tl.where(valid, q_new, q)
            p_old = tl.where(valid, p_old, p)
            a = tl.where(valid, a, 0.0)
            by_h = tl.where(valid, by_h, 0.0)
            hq = tl.where(valid, hq, 0.0)
        tl.store(grad_drive + at_n, a, mask=inside)
        if HAS_GAPS:
            tl.store(grad_gaps + at_n, h0 * by_h, mask=inside)
        by_w = tl.fma(a, y_old, by_w)
        by_h0 = tl.fma(by_h, e, by_h0)
        by_alpha = tl.fma(-hq, y_old, by_alpha)
        p = p_old
        q = q_new
    tl.store(grad_y + at, p, mask=inside)
    tl.store(grad_z + at, q, mask=inside)
    add_at(sum_w, at, by_w, inside)
    add_at(sum_h, at, by_h0, inside)
    add_at(sum_alpha, at, by_alpha, inside)


class _UnICORNN(Model):
    kernels = forward_by_neuron, backward_by_neuron
    sums = 3

    def options(self, batch: int, hidden: int, precision: str) -> dict[str, Any]:
        block = LARGEST_BLOCK  # large ones would leave a device idle where there are few neurons
        while block > SMALLEST_BLOCK and batch * hidden < block * _PROGRAMS_WANTED:
            block //= 2
        programs = triton.cdiv(batch * hidden, block)
        return {"programs": programs, "warps": block // 32, "BLOCK": block}

    def add_sums(self, grads: Sequence[Tensor], grad_scalars: Tensor, sums: Tensor) -> None:
        w, h, alpha = sums.sum(1)
        grads[0].copy_(w)
        grads[1].copy_(h)
        grad_scalars[1] += alpha.sum()


MODELS = {"unicornn": _UnICORNN()}
