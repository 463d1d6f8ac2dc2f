"""Calls of convolutions; GCN, GraphSAGE and GCNII sum over the rows of an ``Adjacency``.

Letters: `N` nodes, `F` features.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.ops.graph import Adjacency, check_features


def convolve(conv: Any, x: Tensor, graph: Any, *args: Any, **options: Any) -> Any:
    """Call a convolution; GCN and mean GraphSAGE sum over the rows of an ``Adjacency``.

    Args:
        conv: The convolution.
        x: Node features.
        graph: ``edge_index``, a sparse adjacency or an ``Adjacency``. Convolutions other than these
            two and this package's couplings get an ``Adjacency``'s ``edge_index`` (and
            ``edge_weight``, if it has weights).
        *args: Further arguments of the convolution.
        **options: Further arguments by name.

    Shape:
        x [N, m]; result as returned by the convolution.

    Raises:
        ValueError: If x and an ``Adjacency`` differ in the number of nodes, or the convolution
            cannot use its weights.

    Example:
        >>> import torch
        >>> from anharmonic.nn.graph.attention import AttentionCoupling
        >>> convolve(AttentionCoupling(2), torch.zeros(3, 2), torch.zeros(2, 0).long()).shape
        torch.Size([3, 2])
    """
    if not isinstance(graph, Adjacency) or getattr(conv, "takes_adjacency", False):
        return conv(x, graph, *args, **options)
    has_features_alone = isinstance(x, Tensor) and not (args or options)
    form = sparse_form(conv, graph) if has_features_alone else None
    if form is not None:
        check_features("x", x, graph)
        return form(conv, x, graph)
    if graph.weight is not None:
        takes_weights = "edge_weight" in inspect.signature(conv.forward).parameters
        if args or "edge_weight" in options or not takes_weights:
            expected = "an Adjacency with weights needs a convolution that takes edge_weight, once"
            received = f"{type(conv).__name__}, {len(args)} further arguments and {sorted(options)}"
            advice = "build the Adjacency without weight, or pass edge_index and further arguments"
            raise ValueError(_checks.message(expected, received, advice))
        options["edge_weight"] = graph.weight.to(x.dtype)
    return conv(x, graph.edge_index, *args, **options)


def convolve_with_start(conv: Any, x: Tensor, start: Tensor, graph: Any) -> Tensor:
    """Call a convolution of GCNII, which also reads the features before the first layer.

    Args:
        conv: PyTorch Geometric's ``GCN2Conv``.
        x: Node features.
        start: Features before the first layer.
        graph: ``edge_index`` or an ``Adjacency``.

    Shape:
        x, start, result [N, m].

    Example:
        >>> import torch
        >>> from torch_geometric.nn import GCN2Conv
        >>> graph = Adjacency(torch.zeros(2, 0).long(), 3)
        >>> convolve_with_start(GCN2Conv(2, 0.1), torch.zeros(3, 2), torch.zeros(3, 2), graph).shape
        torch.Size([3, 2])
    """
    weight = None
    if isinstance(graph, Adjacency):
        form = sparse_form(conv, graph)
        if form is not None:
            return form(conv, x, graph, start)
        weight = None if graph.weight is None else graph.weight.to(x.dtype)
        graph = graph.edge_index
    return cast("Tensor", conv(x, start, graph, weight))


def redraw(module: nn.Module) -> None:
    """Redraw a module's weights, or those of its parts if it has no ``reset_parameters``."""
    if hasattr(module, "reset_parameters"):
        cast("Any", module).reset_parameters()
    else:
        for part in module.children():
            redraw(part)


# ---- PyTorch Geometric's convolutions as sums over sorted rows, with the same weights ------------
def sparse_form(conv: Any, graph: Adjacency) -> Callable[..., Tensor] | None:
    """Return the function that computes a convolution on sorted rows, or None if there is none.

    Its arguments are the convolution, node features [N, F] and the graph; GCNII also takes the
    features before the first layer. Only GCN and GCNII take a weighted graph.
    """
    for name, aggregation, form, has_usual_settings in _FORMS:
        if _is_unchanged(conv, name, aggregation) and has_usual_settings(conv):
            return form if graph.weight is None or name.startswith("GCN") else None
    return None


def _gcn(conv: Any, x: Tensor, graph: Adjacency) -> Tensor:
    result = graph.normalised.matmul(conv.lin(x))
    return result if conv.bias is None else result.add_(conv.bias)


def _gcn2(conv: Any, x: Tensor, graph: Adjacency, start: Tensor) -> Tensor:
    mixed = (1 - conv.alpha) * graph.normalised.matmul(x) + conv.alpha * start[: len(x)]
    return torch.addmm(mixed, mixed, conv.weight1, beta=1.0 - conv.beta, alpha=conv.beta)


def _sage(conv: Any, x: Tensor, graph: Adjacency) -> Tensor:
    result: Tensor = conv.lin_l(graph.mean(x))
    return result + conv.lin_r(x) if conv.root_weight else result


def _is_usual_gcn(conv: Any) -> bool:
    return bool(conv.normalize and conv.add_self_loops and not (conv.improved or conv.cached))


def _is_usual_gcn2(conv: Any) -> bool:
    return bool(conv.normalize and conv.add_self_loops and not conv.cached and conv.weight2 is None)


def _is_usual_sage(conv: Any) -> bool:
    return not (conv.project or conv.normalize)


_FORMS = (
    ("GCNConv", "SumAggregation", _gcn, _is_usual_gcn),
    ("GCN2Conv", "SumAggregation", _gcn2, _is_usual_gcn2),
    ("SAGEConv", "MeanAggregation", _sage, _is_usual_sage),
)
"""Class, aggregation, function that computes it, and check of its settings."""

_METHODS = (
    "forward", "propagate", "message", "aggregate", "update", "message_and_aggregate",
    "edge_updater", "edge_update",
)  # fmt: skip
"""Methods of a convolution that a user may have replaced on the instance."""


def _is_unchanged(conv: Any, name: str, aggregation: str) -> bool:
    """Return whether conv is PyG's own class with no hooks, explainer or replaced methods."""
    pyg = sys.modules.get("torch_geometric.nn")  # if it is not imported, conv is not from it
    if pyg is None or type(conv) is not getattr(pyg, name):
        return False
    if type(conv.aggr_module) is not getattr(pyg, aggregation):
        return False
    has_hooks = any(
        hooks
        for module in (conv, conv.aggr_module)
        for key, hooks in vars(module).items()
        if key.endswith("_hooks")
    )
    is_replaced = any(method in vars(conv) for method in _METHODS)
    return conv.flow == "source_to_target" and not (has_hooks or is_replaced or conv.explain)
