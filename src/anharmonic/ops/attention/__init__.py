"""Attention along the edges of a graph: the steps that its convolutions share.

Letters: `N` nodes, `E` edges, `H` heads, `F` features, those of all heads next to each other. What
belongs to edges stands in the order of ``graph.by_target``.
"""

from __future__ import annotations

import math
from typing import Any, cast

from torch import Tensor

from anharmonic import _checks
from anharmonic.ops.adjacency import Adjacency
from anharmonic.ops.attention.native import (
    edge_product_native,
    edge_softmax_native,
    edge_sum_native,
)
from anharmonic.ops.attention.reference import (
    edge_product_reference,
    edge_softmax_reference,
    edge_sum_reference,
)
from anharmonic.ops.bridge.native import register_native
from anharmonic.ops.dispatch import pick, register
from anharmonic.ops.sorted_edges import check_features

register("edge_product", "reference", edge_product_reference)
register_native("edge_product", edge_product_native)
register("edge_softmax", "reference", edge_softmax_reference)
register_native("edge_softmax", edge_softmax_native)
register("edge_sum", "reference", edge_sum_reference)
register_native("edge_sum", edge_sum_native)


def edge_product(
    query: Tensor, key: Tensor, graph: Adjacency, *, heads: int = 1, backend: str = "auto"
) -> Tensor:
    r"""The scalar product of the features at both ends of every edge, head by head.

    .. math::
        s_{eh} = q_i^{(h)} \cdot k_j^{(h)}, \qquad e = (j, i)

    Args:
        query: Features of the targets.
        key: Features of the sources.
        graph: The edges; weights are left out.
        heads: Heads H, which divide F.
        backend: ``"auto"`` or the name of one of ``available_backends("edge_product")``.

    Shape:
        query, key [N, F]; result [E, H].

    Raises:
        TypeError: If an input is no floating-point tensor.
        ValueError: If a shape or device does not fit, or the backend cannot run this input.

    Example:
        >>> import anharmonic as ah, torch
        >>> graph = ah.Adjacency(torch.tensor([[0, 1], [2, 2]]), 3)
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> edge_product(x, x, graph, heads=2)
        tensor([[ 5., 12.],
                [15., 24.]])
    """
    check_features("query", query, graph)
    check_features("key", key, graph)
    heads = _checks.positive_int("heads", heads)
    if key.shape != query.shape or query.shape[1] % heads:
        raise ValueError(
            _checks.message(
                f"query and key must have the same width, a multiple of heads={heads}",
                f"query {list(query.shape)}, key {list(key.shape)}",
                "give each head the same number of channels",
            )
        )
    chain = pick("edge_product", backend, [query, key])
    return cast("Tensor", chain(query, key, graph, heads=heads))


def edge_softmax(score: Tensor, graph: Adjacency, *, backend: str = "auto") -> Tensor:
    r"""The softmax over the edges that end in a node, head by head.

    .. math::
        a_{eh} = \exp(s_{eh}) \Big/ \sum_{e' \to i} \exp(s_{e'h}), \qquad e = (j, i)

    Args:
        score: A number per edge and head.
        graph: The edges; weights are left out.
        backend: ``"auto"`` or the name of one of ``available_backends("edge_softmax")``.

    Shape:
        score [E, H]; result [E, H].

    Raises:
        TypeError: If an input is no floating-point tensor.
        ValueError: If a shape or device does not fit, or the backend cannot run this input.

    Example:
        >>> import anharmonic as ah, torch
        >>> graph = ah.Adjacency(torch.tensor([[0, 1, 2], [2, 2, 0]]), 3)
        >>> edge_softmax(torch.tensor([[5.0], [1.0], [1.0]]), graph).flatten()
        tensor([1.0000, 0.5000, 0.5000])
    """
    _check_numbers("score", score, graph)
    return cast("Tensor", pick("edge_softmax", backend, [score])(score, graph))


def edge_sum(weight: Tensor, x: Tensor, graph: Adjacency, *, backend: str = "auto") -> Tensor:
    r"""The sum of features over in-neighbours, weighted edge by edge and head by head.

    .. math::
        y_i^{(h)} = \sum_{e = (j, i)} w_{eh}\, x_j^{(h)}

    Unlike the weights of the graph itself, which are left out, w gets a gradient.

    Args:
        weight: A number per edge and head.
        x: Node features; H divides F.
        graph: The edges.
        backend: ``"auto"`` or the name of one of ``available_backends("edge_sum")``.

    Shape:
        weight [E, H]; x [N, F]; result [N, F].

    Raises:
        TypeError: If an input is no floating-point tensor.
        ValueError: If a shape or device does not fit, or the backend cannot run this input.

    Example:
        >>> import anharmonic as ah, torch
        >>> graph = ah.Adjacency(torch.tensor([[0, 1], [2, 2]]), 3)
        >>> edge_sum(torch.tensor([[1.0], [10.0]]), torch.arange(3.0)[:, None] + 1, graph).flatten()
        tensor([ 0.,  0., 21.])
    """
    check_features("x", x, graph)
    _check_numbers("weight", weight, graph)
    if x.shape[1] % weight.shape[1]:
        raise ValueError(
            _checks.message(
                f"the width of x must be a multiple of the {weight.shape[1]} heads of weight",
                f"x {list(x.shape)}",
                "give each head the same number of channels",
            )
        )
    return cast("Tensor", pick("edge_sum", backend, [weight, x])(weight, x, graph))


def attention_weights(query: Tensor, key: Tensor, graph: Adjacency, *, heads: int = 1) -> Tensor:
    r"""The weights of scaled dot-product attention over in-neighbours.

    .. math::
        a_{eh} = \operatorname{softmax}_{e \to i}
        \big( q_i^{(h)} \cdot k_j^{(h)} \big/ \sqrt{F / H} \big), \qquad e = (j, i)

    Args:
        query: Features of the targets.
        key: Features of the sources.
        graph: The edges; weights are left out.
        heads: Heads H, which divide F.

    Shape:
        query, key [N, F]; result [E, H].

    Raises:
        TypeError: If an input is no floating-point tensor.
        ValueError: If a shape or device does not fit.

    Example:
        >>> import anharmonic as ah, torch
        >>> graph = ah.Adjacency(torch.tensor([[0, 1], [2, 2]]), 3)
        >>> attention_weights(torch.zeros(3, 4), torch.zeros(3, 4), graph, heads=2)
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
    """
    score = edge_product(query, key, graph, heads=heads)
    return edge_softmax(score / math.sqrt(query.shape[1] // heads), graph)


def _check_numbers(name: str, given: Any, graph: Adjacency) -> None:
    """Checks numbers per edge and head: compiled code trusts their shape."""
    if not isinstance(given, Tensor) or not given.is_floating_point():
        raise TypeError(
            _checks.message(
                f"{name} must be a floating-point tensor [E={graph.num_edges}, H]",
                _checks.described(given),
                "give a number per edge and head",
            )
        )
    fits = given.dim() == 2 and given.shape[0] == graph.num_edges and given.shape[1] > 0
    if not fits or given.device != graph.device:
        raise ValueError(
            _checks.message(
                f"{name} must be a tensor [E={graph.num_edges}, H >= 1] on {graph.device}",
                f"{_checks.described(given)} on {given.device}",
                "give a number per edge and head, in the order of graph.by_target",
            )
        )
