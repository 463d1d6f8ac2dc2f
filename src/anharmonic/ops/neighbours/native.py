"""The sum over neighbours in the compiled library, and what calls on graphs have in common."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from anharmonic._checks import watched
from anharmonic.ops.backend import needs_gradient
from anharmonic.ops.library import GraphCall
from anharmonic.ops.native import dense, invoke, operator, pointer
from anharmonic.ops.sorted_edges import SortedEdges


def neighbour_sum_native(x: Tensor, graph: SortedEdges) -> Tensor:
    """The chain of ``ops.neighbours`` as one call of csrc/graph.h."""
    rows = graph.by_target
    weight, back_weight = graph.row_weights(x.dtype)
    if plain(x):
        return _sum(x, rows.start, rows.other, weight, None, None, None)
    back = graph.by_source
    found = _neighbour_sum(x, rows.start, rows.other, weight, back.start, back.other, back_weight)
    return cast("Tensor", found)


def plain(x: Tensor) -> bool:
    """Whether a function of x alone can be called as it is: no derivative, nobody who watches."""
    return type(x) is Tensor and not needs_gradient([x]) and not watched()


def graph_call(x: Tensor, start: Tensor, other: Tensor, result: Tensor, **more: Any) -> GraphCall:
    """A call with what all calls on graphs have.

    Args:
        x: Node features, dense.
        start: Where the edges of every node begin.
        other: The other end of every edge.
        result: What is written.
        **more: Further fields.

    Shape:
        x [N, F]; start int64 [N + 1]; other int64 [E].
    """
    return GraphCall(
        real_bytes=x.element_size(),
        threads=torch.get_num_threads(),
        nodes=x.shape[0],
        features=x.shape[1],
        start=start.data_ptr(),
        other=pointer(other),
        x=pointer(x),
        result=pointer(result),
        **more,
    )


def _sum(
    x: Tensor,
    start: Tensor,
    other: Tensor,
    weight: Tensor | None,
    back_start: Tensor | None,
    back_other: Tensor | None,
    back_weight: Tensor | None,
) -> Tensor:
    x = dense(x)
    result = x.new_empty(x.shape)
    invoke("an_neighbour_sum", graph_call(x, start, other, result, weight=pointer(weight)))
    return result


def _sum_fake(x: Tensor, *rest: Any) -> Tensor:
    return x.new_empty(x.shape)


def _set_up(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[1:])


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    saved = ctx.saved_tensors  # read once, or a checkpoint would compute it twice
    return (_neighbour_sum(grad, *saved[3:], *saved[:3]), *[None] * 6)


_neighbour_sum = operator("neighbour_sum", _sum, _sum_fake, _differentiate, _set_up)
