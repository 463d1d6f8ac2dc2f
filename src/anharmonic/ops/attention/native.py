"""Attention along edges in the compiled library.

Product and sum are linear in each of their arguments, and their derivatives are products and sums
again, along the same edges or along those turned round. ``place`` is where the weights of an edge
stand; None: in the order of the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from anharmonic.ops.bridge.fill import dense, invoke, pointer
from anharmonic.ops.bridge.operators import operator, refuse
from anharmonic.ops.neighbours.native import graph_call, plain

if TYPE_CHECKING:
    from anharmonic.ops.adjacency import Adjacency


def edge_product_native(query: Tensor, key: Tensor, graph: Adjacency, *, heads: int) -> Tensor:
    """The chain of ``ops.attention.edge_product`` as one call of csrc/attention.h."""
    rows = graph.by_target
    if plain(query) and plain(key):
        return _product(query, key, rows.start, rows.other, None, None, None, heads)
    found = _edge_product(query, key, rows.start, rows.other, *_turned(graph), heads)
    return cast("Tensor", found)


def edge_softmax_native(score: Tensor, graph: Adjacency) -> Tensor:
    """The chain of ``ops.attention.edge_softmax`` as one call of csrc/attention.h."""
    return cast("Tensor", _edge_softmax(score, graph.by_target.start))


def edge_sum_native(weight: Tensor, x: Tensor, graph: Adjacency) -> Tensor:
    """The chain of ``ops.attention.edge_sum`` as one call of csrc/graph.h."""
    rows = graph.by_target
    if plain(weight) and plain(x):
        return _sum(weight, x, rows.start, rows.other, None, None, None, None)
    found = _edge_sum(weight, x, rows.start, rows.other, None, *_turned(graph))
    return cast("Tensor", found)


def _turned(graph: Adjacency) -> tuple[Tensor, Tensor, Tensor]:
    """The edges turned round, and where their weights stand."""
    return graph.by_source.start, graph.by_source.other, graph.place_by_source


def _product(
    query: Tensor,
    key: Tensor,
    start: Tensor,
    other: Tensor,
    back_start: Tensor | None,
    back_other: Tensor | None,
    back_place: Tensor | None,
    heads: int,
) -> Tensor:
    query, key = dense(query), dense(key)
    result = _product_fake(query, key, start, other, back_start, back_other, back_place, heads)
    call = graph_call(key, start, other, result, heads=heads, own=pointer(query))
    invoke("an_edge_product", call)
    return result


def _product_fake(query: Tensor, key: Tensor, start: Tensor, other: Tensor, *rest: Any) -> Tensor:
    return query.new_empty((other.shape[0], rest[-1]))


def _set_up_product(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:7])


def _differentiate_product(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    query, key, start, other, back_start, back_other, back_place = ctx.saved_tensors
    rows, back = (start, other, None), (back_start, back_other, back_place)
    needs = ctx.needs_input_grad
    return (
        _edge_sum(grad, key, *rows, *back) if needs[0] else None,
        _edge_sum(grad, query, *back, *rows) if needs[1] else None,
        *[None] * 6,
    )


def _sum(
    weight: Tensor,
    x: Tensor,
    start: Tensor,
    other: Tensor,
    place: Tensor | None,
    back_start: Tensor | None,
    back_other: Tensor | None,
    back_place: Tensor | None,
) -> Tensor:
    weight, x = dense(weight), dense(x)
    result = x.new_empty(x.shape)
    call = graph_call(x, start, other, result, heads=weight.shape[1], weight=pointer(weight))
    call.place = pointer(place)
    invoke("an_neighbour_sum", call)
    return result


def _sum_fake(weight: Tensor, x: Tensor, *rest: Any) -> Tensor:
    return x.new_empty(x.shape)


def _set_up_sum(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _differentiate_sum(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    weight, x, *ends = ctx.saved_tensors
    rows, back = ends[:3], ends[3:]
    grad_weight = grad_x = None
    if ctx.needs_input_grad[0]:
        # The order of weights is that of the rows without a place.
        heads, turned = weight.shape[1], rows[2] is not None
        if turned:
            grad_weight = _edge_product(x, grad, *back[:2], *rows, heads)
        else:
            grad_weight = _edge_product(grad, x, *rows[:2], *back, heads)
    if ctx.needs_input_grad[1]:
        grad_x = _edge_sum(weight, grad, *back, *rows)
    return (grad_weight, grad_x, *[None] * 6)


def _softmax(score: Tensor, start: Tensor) -> Tensor:
    score = dense(score)
    result = score.new_empty(score.shape)
    invoke("an_edge_softmax", _softmax_call(score, start, result))
    return result


def _softmax_call(weight: Tensor, start: Tensor, result: Tensor) -> Any:
    call = graph_call(weight, start, start, result, heads=weight.shape[1], weight=pointer(weight))
    call.nodes = start.shape[0] - 1
    return call


def _softmax_fake(score: Tensor, start: Tensor) -> Tensor:
    return score.new_empty(score.shape)


def _set_up_softmax(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output, inputs[1])


def _differentiate_softmax(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    weight, start = ctx.saved_tensors
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        # The same in operations that have derivatives themselves.
        nodes = torch.arange(start.shape[0] - 1, device=start.device)
        target = nodes.repeat_interleave(start.diff())
        mean = grad.new_zeros(nodes.shape[0], grad.shape[1]).index_add(0, target, weight * grad)
        return weight * (grad - mean[target]), None
    return _edge_softmax_backward(grad, weight, start), None


def _softmax_backward(grad: Tensor, weight: Tensor, start: Tensor) -> Tensor:
    grad, weight = dense(grad), dense(weight)
    result = grad.new_empty(grad.shape)
    call = _softmax_call(weight, start, result)
    call.grad = pointer(grad)
    invoke("an_edge_softmax_backward", call)
    return result


def _softmax_backward_fake(grad: Tensor, *rest: Any) -> Tensor:
    return grad.new_empty(grad.shape)


_edge_product = operator(
    "edge_product", _product, _product_fake, _differentiate_product, _set_up_product
)
_edge_sum = operator("edge_sum", _sum, _sum_fake, _differentiate_sum, _set_up_sum)
_edge_softmax = operator(
    "edge_softmax", _softmax, _softmax_fake, _differentiate_softmax, _set_up_softmax
)
_edge_softmax_backward = operator(
    "edge_softmax_backward", _softmax_backward, _softmax_backward_fake, refuse
)
