"""UnICORNN's kernels on the fixed-point grid of ``unicornn/grid.py``, in integers.

States are int64 multiples of 2⁻⁴⁰. A state that leaves the grid becomes a mark that reads as NaN
and stays: on a GPU an error would have to wait for the device.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from anharmonic.ops.gpu.elementary import tanh_of

_ABSENT = -(1 << 62)
_SCALE = 2.0**40
AHEAD = tl.constexpr(16)
OFF_GRID = tl.constexpr(_ABSENT)
SCALE = tl.constexpr(_SCALE)
SPACING = tl.constexpr(1.0 / _SCALE)
LIMIT = tl.constexpr(1 << 50)
SHIFTER = tl.constexpr(12582912.0)
INTEGER_BEYOND = tl.constexpr(4194304.0)


def to_grid(state: Tensor) -> Tensor:
    """R of float32 states, in multiples of the spacing."""
    inside = state.abs() < 2.0**10
    found = torch.where(inside, (state * _SCALE).round_(), 0.0)
    return torch.where(inside, found.to(torch.int64), _ABSENT)


@triton.jit
def _seen(state: tl.tensor) -> tl.tensor:
    """A grid state as float32."""
    value = tl.cast(state, tl.float32) * SPACING
    return tl.where(state == OFF_GRID, float("nan"), value)


@triton.jit
def _on_grid(v: tl.tensor) -> tl.tensor:
    """A float32 increment in multiples of the spacing, ties to even; OFF_GRID if too large."""
    scaled = v * SCALE
    large = tl.abs(scaled) >= INTEGER_BEYOND  # beyond, float32 numbers are integers
    integer = tl.where(large, scaled, (scaled + SHIFTER) - SHIFTER)
    fits = tl.abs(v) < 2048.0  # not NaN
    return tl.where(fits, tl.cast(tl.where(fits, integer, 0.0), tl.int64), OFF_GRID)


@triton.jit
def _moved(state: tl.tensor, step: tl.tensor, SIGN: tl.constexpr) -> tl.tensor:
    """State plus or minus an increment; OFF_GRID beyond the limit and after that."""
    new = state + SIGN * step
    left = (state == OFF_GRID) | (step == OFF_GRID) | (new >= LIMIT) | (new <= -LIMIT)
    return tl.where(left, OFF_GRID, new)


@triton.jit
def grid_walk(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight: tl.tensor, size: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    grid_y: tl.tensor, grid_z: tl.tensor, steps: tl.tensor, first: tl.tensor, hidden: tl.tensor,
    total: tl.tensor,
    HAS_ELAPSED: tl.constexpr, HAS_LENGTHS: tl.constexpr, BACK: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Walks on the grid from its state, or (BACK) undoes that walk bit for bit."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    row, batch = at // hidden, tl.cast(total // hidden, tl.int64)
    stride = tl.cast(total, tl.int64)
    w = tl.load(weight + at % hidden, mask=inside, other=0.0)
    h0 = tl.load(size + at % hidden, mask=inside, other=0.0)
    alpha = tl.load(scalars)
    Y = tl.load(grid_y + at, mask=inside, other=0)
    Z = tl.load(grid_z + at, mask=inside, other=0)
    length = at * 0
    if HAS_LENGTHS:
        length = tl.load(lengths + row, mask=inside, other=0)
    start = stride * 0
    if BACK:
        start = stride * steps
    tl.store(y + (start + at), _seen(Y), mask=inside)
    tl.store(z + (start + at), _seen(Z), mask=inside)
    for k in tl.range(0, steps, num_stages=AHEAD):
        n = k
        if BACK:
            n = steps - 1 - k
        here = stride * n + at
        x = tl.load(acts + here, mask=inside, other=0.0)
        h = h0
        if HAS_ELAPSED:
            h = tl.load(elapsed + (batch * n + row), mask=inside, other=0.0) * h0
        Y_old = Y
        Z_old = Z
        if BACK:
            Y = _moved(Y, _on_grid(h * _seen(Z)), -1)
        y_n = _seen(Y)
        t = tanh_of(tl.fma(w, y_n, x))
        force = _on_grid(h * tl.fma(alpha, y_n, t))
        if BACK:
            Z = _moved(Z, force, 1)
        else:
            Z = _moved(Z, force, -1)
            Y = _moved(Y, _on_grid(h * _seen(Z)), 1)
        if HAS_LENGTHS:
            runs = first + n < length
            Y = tl.where(runs, Y, Y_old)
            Z = tl.where(runs, Z, Z_old)
        there = here + stride
        if BACK:
            there = here
        tl.store(acts + here, t, mask=inside)
        tl.store(y + there, _seen(Y), mask=inside)
        tl.store(z + there, _seen(Z), mask=inside)
    tl.store(grid_y + at, Y, mask=inside)
    tl.store(grid_z + at, Z, mask=inside)
