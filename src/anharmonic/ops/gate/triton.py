"""The gate's sums on a GPU: a program sums over the edges of one node, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
import triton
import triton.language as tl
from torch import Tensor

from anharmonic.ops.gpu.elementary import LARGEST_BLOCK, SMALLEST_BLOCK, launch
from anharmonic.ops.native import operator, refuse

if TYPE_CHECKING:
    from anharmonic.ops.adjacency import Adjacency

_INTEGER_POWERS = (1.0, 2.0, 3.0, 4.0, 5.0)
"""Exponents that need no logarithm."""


@triton.jit
def _power(d: tl.tensor, p: tl.tensor, LAW: tl.constexpr) -> tl.tensor:
    """|d|^p."""
    a = tl.abs(d)
    if LAW == 1:
        return a
    elif LAW == 2:
        return d * d
    elif LAW == 3:
        return a * (d * d)
    elif LAW == 4:
        return (d * d) * (d * d)
    elif LAW == 5:
        return a * ((d * d) * (d * d))
    else:
        return tl.where(a == 0.0, 0.0, tl.exp2(p * tl.log2(tl.where(a == 0.0, 1.0, a))))


@triton.jit
def _slope(d: tl.tensor, p: tl.tensor, LAW: tl.constexpr) -> tl.tensor:
    """|d|^(p - 1) sign(d), 0 at d = 0."""
    a = tl.abs(d)
    if LAW == 1:
        return tl.where(d > 0.0, 1.0, tl.where(d < 0.0, -1.0, d))
    elif LAW == 2:
        return d
    elif LAW == 3:
        return a * d
    elif LAW == 4:
        return (d * d) * d
    elif LAW == 5:
        return (d * d) * (a * d)
    else:
        size = tl.exp2((p - 1.0) * tl.log2(tl.where(a == 0.0, 1.0, a)))
        return tl.where(a == 0.0, 0.0, tl.where(d < 0.0, -size, size))


@triton.jit
def _forward(
    h: tl.tensor, start: tl.tensor, other: tl.tensor, result: tl.tensor, power: tl.tensor,
    features: tl.tensor, parts: tl.tensor,
    LAW: tl.constexpr, MEAN: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    node = tl.cast(tl.program_id(0) // parts, tl.int64)
    column = tl.program_id(0) % parts * BLOCK + tl.arange(0, BLOCK)
    inside = column < features
    own = tl.load(h + (node * features + column), mask=inside, other=0.0)
    p = tl.load(power)
    begin, end = tl.load(start + node), tl.load(start + node + 1)
    total = own * 0.0
    for e in range(begin, end):
        k = tl.load(other + e)
        d = tl.load(h + (k * features + column), mask=inside, other=0.0) - own
        total += _power(d, p, LAW)
    if MEAN:
        total = total / tl.cast(tl.maximum(end - begin, 1), tl.float32)
    tl.store(result + (node * features + column), total, mask=inside)


@triton.jit
def _backward(
    grad: tl.tensor, h: tl.tensor, start: tl.tensor, other: tl.tensor, back_start: tl.tensor,
    back_other: tl.tensor, result: tl.tensor, power: tl.tensor, features: tl.tensor,
    parts: tl.tensor,
    LAW: tl.constexpr, MEAN: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    node = tl.cast(tl.program_id(0) // parts, tl.int64)
    column = tl.program_id(0) % parts * BLOCK + tl.arange(0, BLOCK)
    inside = column < features
    own = tl.load(h + (node * features + column), mask=inside, other=0.0)
    p = tl.load(power)
    begin, end = tl.load(start + node), tl.load(start + node + 1)
    total = own * 0.0
    for e in range(begin, end):
        k = tl.load(other + e)
        d = tl.load(h + (k * features + column), mask=inside, other=0.0) - own
        total += _slope(d, p, LAW)
    g = tl.load(grad + (node * features + column), mask=inside, other=0.0)
    if MEAN:
        g = g / tl.cast(tl.maximum(end - begin, 1), tl.float32)
    total *= g
    for e in range(tl.load(back_start + node), tl.load(back_start + node + 1)):
        k = tl.load(back_other + e)
        there = k * features + column
        d = tl.load(h + there, mask=inside, other=0.0) - own
        g = tl.load(grad + there, mask=inside, other=0.0)
        if MEAN:
            count = tl.load(start + k + 1) - tl.load(start + k)
            g = g / tl.cast(count, tl.float32)
        total += g * _slope(d, p, LAW)
    tl.store(result + (node * features + column), -p * total, mask=inside)


def gate_triton(
    h: Tensor, graph: Adjacency, *, p: float, aggr: str, outgoing: bool, single_rate: bool
) -> Tensor:
    """The chain of ``ops.gradient_gate`` on a GPU; aggr "sum" or "mean"."""
    rows, back = graph.by_target, graph.by_source
    if outgoing:
        rows, back = back, rows
    found = _gate_rows(h, rows.start, rows.other, back.start, back.other, p, aggr == "mean")
    found = found.sum(1, keepdim=True) if single_rate else found
    return cast("Tensor", found)


def _cut(h: Tensor, p: float, mean: bool) -> tuple[int, Tensor, int, int, dict[str, Any]]:
    """Programs, p, features, programs of a node, and the constants of a launch."""
    nodes, features = h.shape
    block = min(max(triton.next_power_of_2(features), SMALLEST_BLOCK), LARGEST_BLOCK)
    parts = triton.cdiv(features, block)
    law = int(p) if p in _INTEGER_POWERS else 0
    flags = {"LAW": law, "MEAN": mean, "BLOCK": block, "warps": block // 32}
    return nodes * parts, h.new_full((1,), p), features, parts, flags


def _gate(
    h: Tensor, start: Tensor, other: Tensor, back_start: Tensor, back_other: Tensor, p: float,
    mean: bool,
) -> Tensor:  # fmt: skip
    h = h.contiguous()
    result = h.new_empty(h.shape)
    programs, power, features, parts, flags = _cut(h, p, mean)
    if programs:
        launch(_forward, programs, h, start, other, result, power, features, parts, **flags)
    return result


def _gate_fake(h: Tensor, *rest: Any) -> Tensor:
    return h.new_empty(h.shape)


def _gate_backward(
    grad: Tensor, h: Tensor, start: Tensor, other: Tensor, back_start: Tensor, back_other: Tensor,
    p: float, mean: bool,
) -> Tensor:  # fmt: skip
    grad, h = grad.contiguous(), h.contiguous()
    result = h.new_empty(h.shape)
    programs, power, features, parts, flags = _cut(h, p, mean)
    if programs:
        launch(
            _backward, programs, grad, h, start, other, back_start, back_other, result, power,
            features, parts, **flags,
        )  # fmt: skip
    return result


def _gate_backward_fake(grad: Tensor, h: Tensor, *rest: Any) -> Tensor:
    return h.new_empty(h.shape)


def _set_up(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:5])
    ctx.settings = inputs[5:]


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        refuse(ctx)
    return (_gate_rows_backward(grad, *ctx.saved_tensors, *ctx.settings), *[None] * 6)


_DEVICES = ("cuda", "cpu")
_gate_rows = operator("gate_rows", _gate, _gate_fake, _differentiate, _set_up, _DEVICES)
_gate_rows_backward = operator(
    "gate_rows_backward", _gate_backward, _gate_backward_fake, refuse, devices=_DEVICES
)
