"""Attention along edges in plain PyTorch, message by message."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from anharmonic.kernels.adjacency import Adjacency


def edge_product_reference(query: Tensor, key: Tensor, graph: Adjacency, *, heads: int) -> Tensor:
    """The chain of ``kernels.attention.edge_product``."""
    source, target = _ends(graph)
    shape = (graph.num_edges, heads, query.shape[1] // heads)
    return (query[target].view(shape) * key[source].view(shape)).sum(-1)


def edge_softmax_reference(score: Tensor, graph: Adjacency) -> Tensor:
    """The chain of ``kernels.attention.edge_softmax``."""
    _, target = _ends(graph)
    highest = score.new_full((graph.num_nodes, score.shape[1]), -math.inf)
    rows = target[:, None].expand_as(score)
    highest = highest.scatter_reduce(0, rows, score.detach(), "amax")
    weight = (score - highest[target]).exp()
    total = torch.zeros_like(highest).index_add(0, target, weight)
    return weight / total[target]


def edge_sum_reference(weight: Tensor, x: Tensor, graph: Adjacency) -> Tensor:
    """The chain of ``kernels.attention.edge_sum``."""
    source, target = _ends(graph)
    heads = weight.shape[1]
    shape = (graph.num_edges, heads, x.shape[1] // heads)
    messages = weight[:, :, None] * x[source].view(shape)
    return messages.new_zeros(x.shape).index_add(0, target, messages.flatten(1))


def _ends(graph: Adjacency) -> tuple[Tensor, Tensor]:
    source, target = graph.edge_index[:, graph.by_target.edge]
    return source, target
