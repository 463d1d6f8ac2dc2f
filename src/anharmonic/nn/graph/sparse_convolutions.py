"""PyTorch Geometric's GCN, GraphSAGE and GCNII as sums over the rows of an Adjacency, same weights.

Letters: `N` nodes, `F` features.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from anharmonic.ops.graph import Adjacency


def sparse_form(conv: Any, graph: Adjacency) -> Callable[..., Tensor] | None:
    """What computes a convolution of node features alone on sorted rows; None if nothing does.

    It is called with the convolution, node features [N, F] and the graph; that of GCNII also with
    the features before the first layer.

    Args:
        conv: The convolution.
        graph: The edges; only GCN and GCNII take weights.

    Example:
        >>> graph = Adjacency(torch.tensor([[0], [1]]), 2)
        >>> sparse_form(torch.nn.Linear(2, 2), graph) is None
        True
    """
    for name, aggregation, form, fits in _FORMS:
        if _is_unchanged(conv, name, aggregation) and fits(conv):
            return form if graph.weight is None or name.startswith("GCN") else None
    return None


def _gcn(conv: Any, x: Tensor, graph: Adjacency) -> Tensor:
    mapped = graph.normalised.matmul(conv.lin(x))
    return mapped if conv.bias is None else mapped.add_(conv.bias)


def _gcn2(conv: Any, x: Tensor, graph: Adjacency, start: Tensor) -> Tensor:
    mixed = (1 - conv.alpha) * graph.normalised.matmul(x) + conv.alpha * start[: len(x)]
    return torch.addmm(mixed, mixed, conv.weight1, beta=1.0 - conv.beta, alpha=conv.beta)


def _sage(conv: Any, x: Tensor, graph: Adjacency) -> Tensor:
    mean: Tensor = conv.lin_l(graph.mean(x))
    return mean + conv.lin_r(x) if conv.root_weight else mean


def _is_plain_gcn(conv: Any) -> bool:
    return bool(conv.normalize and conv.add_self_loops and not (conv.improved or conv.cached))


def _is_plain_gcn2(conv: Any) -> bool:
    return bool(conv.normalize and conv.add_self_loops and not conv.cached and conv.weight2 is None)


def _is_plain_sage(conv: Any) -> bool:
    return not (conv.project or conv.normalize)


_FORMS = (
    ("GCNConv", "SumAggregation", _gcn, _is_plain_gcn),
    ("GCN2Conv", "SumAggregation", _gcn2, _is_plain_gcn2),
    ("SAGEConv", "MeanAggregation", _sage, _is_plain_sage),
)
"""Class, how it sums up messages, what computes it here and with which settings."""


def _is_unchanged(conv: Any, name: str, aggregation: str) -> bool:
    """Whether it is PyTorch Geometric's own class of that name, with nothing hooked in or replaced.

    That package is not imported.
    """
    library = sys.modules.get("torch_geometric.nn")
    if library is None or type(conv) is not getattr(library, name):
        return False
    if type(conv.aggr_module) is not getattr(library, aggregation):
        return False
    hooked = any(
        found
        for module in (conv, conv.aggr_module)
        for key, found in vars(module).items()
        if key.endswith("_hooks")
    )
    replaced = any(method in vars(conv) for method in _METHODS)
    return conv.flow == "source_to_target" and not (hooked or replaced or conv.explain)


_METHODS = (
    "forward",
    "propagate",
    "message",
    "aggregate",
    "update",
    "message_and_aggregate",
    "edge_updater",
    "edge_update",
)
"""What a convolution does, which may be replaced on one of them."""
