"""Lists of edges: what they must be, before a graph is made of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from anharmonic import _checks


def check_edges(edge_index: Any, num_nodes: int) -> Tensor:
    """Check the edges of a graph and return them as int64.

    Args:
        edge_index: Should be int64 or int32 [2, E] with entries in [0, num_nodes).
        num_nodes: Nodes of the graph.

    Raises:
        TypeError: If it is not a tensor of such integers.
        ValueError: If its shape is wrong or an index is out of range.

    Example:
        >>> check_edges(torch.tensor([[0], [1]]), 2).shape
        torch.Size([2, 1])
    """
    advice = ""
    if not isinstance(edge_index, Tensor):
        advice = "make it with torch.tensor([sources, targets])"
    elif edge_index.layout != torch.strided:
        advice = (
            "take the edges out of the sparse matrix: if row i holds the edges that end in i, they "
            "are matrix.to_sparse_coo().coalesce().indices().flip(0)"
        )
    elif edge_index.dtype not in (torch.int64, torch.int32):
        advice = "convert it with edge_index.long(); row 0 holds sources, row 1 targets"
    if advice:
        raise TypeError(
            _checks.message(
                "edge_index must be a torch.int64 tensor [2, E]",
                _checks.described(edge_index),
                advice,
            )
        )
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        turned = edge_index.dim() == 2 and edge_index.shape[1] == 2
        raise ValueError(
            _checks.message(
                "edge_index must be a torch.int64 tensor [2, E]",
                _checks.described(edge_index),
                "put sources in row 0 and targets in row 1" + ("; transpose it" if turned else ""),
            )
        )
    checked: Tensor = as_int64(edge_index)
    # A GPU would have to be waited for; indexing checks there.
    if checked.device.type != "cpu":
        return checked
    if torch.compiler.is_compiling():
        # There are no values yet. The program that is compiled checks them when it runs.
        inside = (checked >= 0) & (checked < num_nodes)
        torch._assert_async(inside.all(), "edge_index must hold nodes of the graph")
    elif checked.numel():
        low, high = int(checked.min()), int(checked.max())
        if low < 0 or high >= num_nodes:
            raise ValueError(
                _checks.message(
                    f"edge_index must hold nodes in [0, {num_nodes})",
                    f"values from {low} to {high}",
                    "number the nodes as the rows of x, or pass every node's features",
                )
            )
    return checked


def as_int64(graph: Any) -> Any:
    """Return edges in int32 as int64, and every other graph as it is.

    Example:
        >>> as_int64(torch.zeros(2, 3, dtype=torch.int32)).dtype
        torch.int64
    """
    return graph.long() if getattr(graph, "dtype", None) == torch.int32 else graph


def edges_of(graph: Tensor) -> Tensor:
    """The edges of a sparse adjacency whose row i holds the edges that end in i.

    Args:
        graph: A sparse tensor, as PyTorch Geometric takes it (transposed, ``adj_t``), or the edges
            themselves, which are returned as they are.

    Shape:
        graph [N, N] or [2, E]; result [2, E].

    Example:
        >>> edges_of(torch.tensor([[0.0, 1.0], [0.0, 0.0]]).to_sparse())
        tensor([[1],
                [0]])
    """
    if graph.layout == torch.strided:
        return graph
    target, source = graph.to_sparse(layout=torch.sparse_coo).coalesce().indices()
    return torch.stack([source, target])


def node_count(value: Any) -> int:
    """Checks a number of nodes and returns it.

    Raises:
        TypeError: If it is no integer.
        ValueError: If it is negative.

    Example:
        >>> node_count(0)
        0
    """
    if isinstance(value, bool) or not isinstance(value, (int, torch.SymInt)):
        raise TypeError(
            _checks.message(
                "num_nodes must be an int >= 0",
                f"num_nodes={value!r} ({type(value).__name__})",
                "pass a whole number",
            )
        )
    _checks.require(value >= 0, "num_nodes", value, "an int >= 0", "pass x.shape[0]")
    return value  # type: ignore[return-value]


def check_weight(weight: Any, edge_index: Tensor) -> None:
    """Checks for one constant number per edge.

    Raises:
        ValueError: If the shape does not fit, or the weights are integers, NaN or need
            gradients.

    Example:
        >>> check_weight(torch.ones(1), torch.tensor([[0], [1]]))
    """
    edges = edge_index.shape[1]
    if not isinstance(weight, Tensor) or weight.shape != (edges,):
        raise ValueError(
            _checks.message(
                f"weight must be a tensor [E={edges}]",
                _checks.described(weight),
                "give one number per column of edge_index",
            )
        )
    if weight.requires_grad or not weight.is_floating_point():
        raise ValueError(
            _checks.message(
                "weight must be floating point and need no gradient",
                f"{_checks.described(weight)}, requires_grad={weight.requires_grad}",
                "pass edge_index and edge weights to the layer instead, which trains them",
            )
        )
    _checks.no_nan("weight", weight)
