"""PyTorch Geometric's GCN, GraphSAGE, GAT, Transformer and GCNII on compressed rows, same weights.

Letters: `N` nodes, `F` features, `H` attention heads of `C` channels each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from anharmonic.ops.adjacency import Adjacency
from anharmonic.ops.attention import attention_weights, edge_product, edge_softmax, edge_sum


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


def _gat(conv: Any, x: Tensor, graph: Adjacency) -> Tensor:
    z = conv.lin(x)
    # the scalar product with a vector per head, as one with a matrix [H C, H]
    diagonal: Any = torch.block_diag
    att = [diagonal(*a[0, :, :, None]) for a in (conv.att_src, conv.att_dst)]
    with torch.autocast(x.device.type, enabled=False):  # scores keep their precision, as there
        source, target = (z.to(a.dtype) @ a for a in att)
    one = torch.ones_like(source)
    # (target, 1) . (1, source), which is their sum
    query, key = torch.stack([target, one], -1), torch.stack([one, source], -1)
    if conv.add_self_loops:
        graph = graph.with_self_loops
    score = edge_product(query.flatten(1), key.flatten(1), graph, heads=conv.heads)
    score = torch.nn.functional.leaky_relu(score, conv.negative_slope)
    result = _join(conv, edge_sum(edge_softmax(score, graph), z, graph))
    if conv.res is not None:
        result = result + conv.res(x)
    return result if conv.bias is None else result + conv.bias


def _transformer(conv: Any, x: Tensor, graph: Adjacency) -> Tensor:
    weight = attention_weights(conv.lin_query(x), conv.lin_key(x), graph, heads=conv.heads)
    result = _join(conv, edge_sum(weight, conv.lin_value(x), graph))
    return result + conv.lin_skip(x) if conv.root_weight else result


def _join(conv: Any, result: Tensor) -> Tensor:
    """The heads next to each other, or their mean."""
    return result if conv.concat else result.view(-1, conv.heads, conv.out_channels).mean(1)


def _is_plain_gcn(conv: Any) -> bool:
    return bool(conv.normalize and conv.add_self_loops and not (conv.improved or conv.cached))


def _is_plain_gcn2(conv: Any) -> bool:
    return bool(conv.normalize and conv.add_self_loops and not conv.cached and conv.weight2 is None)


def _is_plain_sage(conv: Any) -> bool:
    return not (conv.project or conv.normalize)


def _is_plain_gat(conv: Any) -> bool:
    return _has_plain_attention(conv) and conv.lin is not None


def _is_plain_transformer(conv: Any) -> bool:
    return _has_plain_attention(conv) and isinstance(conv.in_channels, int) and not conv.beta


def _has_plain_attention(conv: Any) -> bool:
    return conv.edge_dim is None and not (conv.training and conv.dropout > 0)


_FORMS = (
    ("GCNConv", "SumAggregation", _gcn, _is_plain_gcn),
    ("GCN2Conv", "SumAggregation", _gcn2, _is_plain_gcn2),
    ("SAGEConv", "MeanAggregation", _sage, _is_plain_sage),
    ("GATConv", "SumAggregation", _gat, _is_plain_gat),
    ("TransformerConv", "SumAggregation", _transformer, _is_plain_transformer),
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
