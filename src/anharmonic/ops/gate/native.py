"""The gate's sums in the compiled library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from torch import Tensor

from anharmonic.ops.native import dense, invoke, operator, pointer, refuse, refuse_second_derivative
from anharmonic.ops.neighbours.native import graph_call, plain

if TYPE_CHECKING:
    from anharmonic.ops.adjacency import Adjacency


def gate_native(
    h: Tensor, graph: Adjacency, *, p: float, aggr: str, outgoing: bool, single_rate: bool
) -> Tensor:
    """The chain of ``ops.gradient_gate`` as one call of csrc/gate.h; aggr "sum" or "mean"."""
    rows, mean = (graph.by_source if outgoing else graph.by_target), aggr == "mean"
    if plain(h):
        return _gate(h, rows.start, rows.other, None, None, p, mean, single_rate)
    back = graph.by_target if outgoing else graph.by_source
    found = _gate_sum(h, rows.start, rows.other, back.start, back.other, p, mean, single_rate)
    return cast("Tensor", found)


def _gate(
    h: Tensor,
    start: Tensor,
    other: Tensor,
    back_start: Tensor | None,
    back_other: Tensor | None,
    p: float,
    mean: bool,
    single: bool,
) -> Tensor:
    h = dense(h)
    result = _gate_fake(h, start, other, back_start, back_other, p, mean, single)
    invoke("an_gate", graph_call(h, start, other, result, power=p, mean=mean, single=single))
    return result


def _gate_fake(h: Tensor, *rest: Any) -> Tensor:
    single = rest[-1]
    return h.new_empty((h.shape[0], 1 if single else h.shape[1]))


def _gate_backward(
    grad: Tensor,
    h: Tensor,
    start: Tensor,
    other: Tensor,
    back_start: Tensor,
    back_other: Tensor,
    p: float,
    mean: bool,
    single: bool,
) -> Tensor:
    grad, h = dense(grad), dense(h)
    result = h.new_empty(h.shape)
    call = graph_call(h, start, other, result, power=p, mean=mean, single=single)
    call.back_start, call.back_other = back_start.data_ptr(), pointer(back_other)
    call.grad = pointer(grad)
    invoke("an_gate_backward", call)
    return result


def _gate_backward_fake(grad: Tensor, h: Tensor, *rest: Any) -> Tensor:
    return h.new_empty(h.shape)


def _set_up(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:5])
    ctx.settings = inputs[5:]


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    refuse_second_derivative(ctx)
    return (_gate_sum_backward(grad, *ctx.saved_tensors, *ctx.settings), *[None] * 7)


_gate_sum = operator("gate_sum", _gate, _gate_fake, _differentiate, _set_up)
_gate_sum_backward = operator("gate_sum_backward", _gate_backward, _gate_backward_fake, refuse)
