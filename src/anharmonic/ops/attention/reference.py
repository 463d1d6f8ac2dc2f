"""Attention along edges in plain PyTorch, message by message."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from anharmonic.ops.adjacency import Adjacency


def edge_product_reference(query: Tensor, key: Tensor, graph: Adjacency, *, heads: int) -> Tensor:
    """The chain of ``ops.attention.edge_product``."""
    return product(query, key, *_ends(graph), heads)


def edge_softmax_reference(score: Tensor, graph: Adjacency) -> Tensor:
    """The chain of ``ops.attention.edge_softmax``."""
    return softmax(score, _ends(graph)[1], graph.num_nodes)


def edge_sum_reference(weight: Tensor, x: Tensor, graph: Adjacency) -> Tensor:
    """The chain of ``ops.attention.edge_sum``."""
    return total(weight, x, *_ends(graph))


def product(query: Tensor, key: Tensor, source: Tensor, target: Tensor, heads: int) -> Tensor:
    """The scalar product at both ends of edges in any order.

    Args:
        query: Features of the targets.
        key: Features of the sources.
        source: Where every edge begins.
        target: Where it ends.
        heads: Heads H.

    Shape:
        query, key [N, F]; source, target [E]; result [E, H].

    Example:
        >>> x = torch.tensor([[2.0], [5.0]])
        >>> product(x, x, torch.tensor([0]), torch.tensor([1]), 1)
        tensor([[10.]])
    """
    shape = (source.shape[0], heads, query.shape[1] // heads)
    return (query[target].view(shape) * key[source].view(shape)).sum(-1)


def softmax(score: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """The softmax over the edges with the same end.

    Args:
        score: A number per edge and head.
        target: Where every edge ends.
        num_nodes: Nodes N.

    Shape:
        score, result [E, H]; target [E].

    Example:
        >>> softmax(torch.tensor([[1.0], [1.0], [3.0]]), torch.tensor([1, 1, 0]), 2).flatten()
        tensor([0.5000, 0.5000, 1.0000])
    """
    highest = score.new_full((num_nodes, score.shape[1]), -math.inf)
    rows = target[:, None].expand_as(score)
    highest = highest.scatter_reduce(0, rows, score.detach(), "amax")
    weight = (score - highest[target]).exp()
    sums = torch.zeros_like(highest).index_add(0, target, weight)
    return weight / sums[target]


def total(weight: Tensor, x: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """The weighted sum over edges in any order.

    Args:
        weight: A number per edge and head.
        x: Node features.
        source: Where every edge begins.
        target: Where it ends.

    Shape:
        weight [E, H]; x, result [N, F]; source, target [E].

    Example:
        >>> x = torch.tensor([[2.0], [5.0]])
        >>> total(torch.tensor([[10.0]]), x, torch.tensor([0]), torch.tensor([1])).flatten()
        tensor([ 0., 20.])
    """
    edges, heads = weight.shape
    messages = weight[:, :, None] * x[source].view(edges, heads, x.shape[1] // heads)
    return messages.new_zeros(x.shape).index_add(0, target, messages.flatten(1))


def _ends(graph: Adjacency) -> tuple[Tensor, Tensor]:
    source, target = graph.edge_index[:, graph.by_target.edge]
    return source, target
