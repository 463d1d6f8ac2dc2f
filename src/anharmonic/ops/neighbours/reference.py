"""The sum over neighbours in plain PyTorch: a sparse product, or message by message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from anharmonic.ops.backend import transformed
from anharmonic.ops.sorted_edges import SortedEdges


def neighbour_sum_reference(x: Tensor, graph: SortedEdges) -> Tensor:
    """The chain of ``ops.neighbours``."""
    # PyTorch has sparse products of these two only, and cannot trace or transform them.
    known = x.dtype in (torch.float32, torch.float64)
    if known and transformed() is None and not torch.compiler.is_compiling():
        return _product(x, graph)
    source, target = graph.edge_index
    messages = x[source]
    if graph.weight is not None:
        messages = messages * graph.weight.to(x.dtype)[:, None]
    return x.new_zeros(x.shape).index_add(0, target, messages)


class _Product(torch.autograd.Function):
    """A sparse product whose backward pass is one with the transposed rows, cached as well."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, graph: SortedEdges) -> Tensor:
        ctx.graph = graph
        return graph.sparse(x.dtype) @ x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _product(grad, ctx.graph.transposed), None


_product: Callable[[Tensor, SortedEdges], Tensor] = _Product.apply
