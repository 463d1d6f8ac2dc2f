"""PyTorch Geometric's GCN, GraphSAGE, GAT, Transformer and GCNII on compressed rows, same weights.

Letters: `N` nodes, `E` edges, `H` attention heads of `C` channels each.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from anharmonic.kernels.adjacency import Adjacency
from anharmonic.kernels.attention import edge_product, edge_softmax, edge_sum


def sparse_form(conv: Any, graph: Adjacency) -> Callable[[Any, Tensor, Adjacency], Tensor] | None:
    """What computes a convolution of node features alone on sorted rows; None if nothing does.

    Args:
        conv: The convolution.
        graph: The edges; only GCN takes weights.

    Example:
        >>> graph = Adjacency(torch.tensor([[0], [1]]), 2)
        >>> sparse_form(torch.nn.Linear(2, 2), graph) is None
        True
    """
    for name, form, fits in _FORMS:
        if _is(conv, name) and fits(conv) and (graph.weight is None or name == "GCNConv"):
            return form
    return None


def attend(query: Tensor, key: Tensor, value: Tensor, graph: Adjacency, heads: int) -> Tensor:
    r"""Scaled dot-product attention over in-neighbours.

    .. math::
        y_i^{(h)} = \sum_j \operatorname{softmax}_{j}
        \frac{q_i^{(h)} \cdot k_j^{(h)}}{\sqrt{C}}\; v_j^{(h)}

    Args:
        query: Queries.
        key: Keys.
        value: Values.
        graph: The edges.
        heads: Heads H.

    Shape:
        query, key [N, H C]; value [N, H C']; result [N, H C'].

    Example:
        >>> graph = Adjacency(torch.tensor([[0, 1], [2, 2]]), 3)
        >>> x = torch.tensor([[1.0], [3.0], [0.0]])
        >>> attend(x, x, x, graph, 1)
        tensor([[0.],
                [0.],
                [2.]])
    """
    return edge_sum(attention_weights(query, key, graph, heads), value, graph)


def attention_weights(query: Tensor, key: Tensor, graph: Adjacency, heads: int) -> Tensor:
    """The softmax in ``attend``.

    Args:
        query: Queries.
        key: Keys.
        graph: The edges.
        heads: Heads H.

    Shape:
        query, key [N, H C]; result [E, H], in the order of ``graph.by_target``.

    Example:
        >>> graph = Adjacency(torch.tensor([[0, 1], [2, 2]]), 3)
        >>> attention_weights(torch.zeros(3, 4), torch.zeros(3, 4), graph, 2)
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
    """
    score = edge_product(query, key, graph, heads=heads)
    return edge_softmax(score / math.sqrt(query.shape[1] // heads), graph)


def gcn2(conv: Any, x: Tensor, start: Tensor, graph: Adjacency) -> Tensor:
    r"""A layer of GCNII, :math:`((1-\alpha) \hat A X + \alpha X^0)((1-\beta) I + \beta W)`.

    Args:
        conv: PyTorch Geometric's ``GCN2Conv``.
        x: Node features X.
        start: Those before the first layer, X^0.
        graph: The edges.

    Shape:
        x, start, result [N, m].

    Example:
        >>> from torch_geometric.nn import GCN2Conv
        >>> graph = Adjacency(torch.zeros(2, 0).long(), 3)
        >>> gcn2(GCN2Conv(2, 0.1), torch.zeros(3, 2), torch.zeros(3, 2), graph).shape
        torch.Size([3, 2])
    """
    mixed = (1 - conv.alpha) * graph.normalised.matmul(x) + conv.alpha * start
    return torch.addmm(mixed, mixed, conv.weight1, beta=1.0 - conv.beta, alpha=conv.beta)


def is_plain_gcn2(conv: Any) -> bool:
    """Whether ``gcn2`` gives what the convolution would.

    Example:
        >>> is_plain_gcn2(torch.nn.Linear(2, 2))
        False
    """
    if not _is(conv, "GCN2Conv"):
        return False
    normal = conv.normalize and conv.add_self_loops and not conv.cached
    return bool(_sums(conv) and normal and conv.weight2 is None)


def _gcn(conv: Any, x: Tensor, graph: Adjacency) -> Tensor:
    mapped = graph.normalised.matmul(conv.lin(x))
    return mapped if conv.bias is None else mapped.add_(conv.bias)


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
    result = _joined(conv, edge_sum(edge_softmax(score, graph), z, graph))
    if conv.res is not None:
        result = result + conv.res(x)
    return result if conv.bias is None else result + conv.bias


def _transformer(conv: Any, x: Tensor, graph: Adjacency) -> Tensor:
    query, key, value = conv.lin_query(x), conv.lin_key(x), conv.lin_value(x)
    result = _joined(conv, attend(query, key, value, graph, conv.heads))
    return result + conv.lin_skip(x) if conv.root_weight else result


def _joined(conv: Any, result: Tensor) -> Tensor:
    """The heads next to each other, or their mean."""
    return result if conv.concat else result.view(-1, conv.heads, conv.out_channels).mean(1)


def _is_plain_gcn(conv: Any) -> bool:
    return bool(_sums(conv) and conv.normalize and conv.add_self_loops) and not (
        conv.improved or conv.cached
    )


def _is_plain_sage(conv: Any) -> bool:
    plain = conv.aggr == "mean" and conv.flow == "source_to_target"
    return plain and not (conv.project or conv.normalize)


def _is_plain_gat(conv: Any) -> bool:
    return _attends(conv) and conv.lin is not None


def _is_plain_transformer(conv: Any) -> bool:
    return _attends(conv) and isinstance(conv.in_channels, int) and not conv.beta


def _attends(conv: Any) -> bool:
    dropout = conv.training and conv.dropout > 0
    return _sums(conv) and conv.edge_dim is None and not dropout


def _sums(conv: Any) -> bool:
    return conv.aggr in ("add", "sum") and conv.flow == "source_to_target"


_FORMS = (
    ("GCNConv", _gcn, _is_plain_gcn),
    ("SAGEConv", _sage, _is_plain_sage),
    ("GATConv", _gat, _is_plain_gat),
    ("TransformerConv", _transformer, _is_plain_transformer),
)


def _is(conv: Any, name: str) -> bool:
    """Whether it is PyTorch Geometric's own class of that name, with nothing hooked in or replaced.

    That package is not imported.
    """
    library = sys.modules.get("torch_geometric.nn")
    if library is None or type(conv) is not getattr(library, name):
        return False
    own = vars(conv)
    hooked = any(found for key, found in own.items() if key.endswith("_hooks"))
    return not (hooked or conv.explain or any(method in own for method in _METHODS))


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
