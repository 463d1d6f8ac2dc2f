"""Calls a convolution, as sums over rows where its form is known; draws it anew."""

from __future__ import annotations

import inspect
from typing import Any, cast

from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.nn.graph.sparse_convolutions import sparse_form
from anharmonic.ops.graph import Adjacency, check_features


def convolve(conv: Any, x: Tensor, graph: Any, *args: Any, **options: Any) -> Any:
    """Calls a convolution, as sums over the rows of an Adjacency where it is GCN or mean GraphSAGE.

    Args:
        conv: The convolution.
        x: Node features.
        graph: ``edge_index``, a sparse adjacency or an ``Adjacency``. Of the last, convolutions
            other than these two and this package's couplings get ``edge_index`` (and
            ``edge_weight``, if it has weights).
        *args: Further arguments of the convolution.
        **options: Further arguments by name.

    Shape:
        x [N, m]; result what the convolution returns.

    Raises:
        ValueError: If x and an ``Adjacency`` have other numbers of nodes, or its weights have no
            use.

    Example:
        >>> import torch
        >>> from anharmonic.nn.graph.attention import AttentionCoupling
        >>> convolve(AttentionCoupling(2), torch.zeros(3, 2), torch.zeros(2, 0).long()).shape
        torch.Size([3, 2])
    """
    if not isinstance(graph, Adjacency) or getattr(conv, "takes_adjacency", False):
        return conv(x, graph, *args, **options)
    alone = isinstance(x, Tensor) and not (args or options)
    form = sparse_form(conv, graph) if alone else None
    if form is not None:
        check_features("x", x, graph)
        return form(conv, x, graph)
    if graph.weight is not None:
        if args or "edge_weight" in options or not _takes_weights(conv):
            raise ValueError(
                _checks.message(
                    "an Adjacency with weights needs a convolution that takes edge_weight, once",
                    f"{type(conv).__name__} with {len(args)} further arguments, {sorted(options)}",
                    "build the Adjacency without weight, or pass edge_index and further arguments",
                )
            )
        options["edge_weight"] = graph.weight.to(x.dtype)
    return conv(x, graph.edge_index, *args, **options)


def convolve_with_start(conv: Any, x: Tensor, start: Tensor, graph: Any) -> Tensor:
    """Calls a convolution of GCNII, which sees the first layer's features too.

    Args:
        conv: PyTorch Geometric's ``GCN2Conv``.
        x: Node features.
        start: Those before the first layer.
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
    """Draws a module's weights anew, or those of its parts where it does not know how.

    Example:
        >>> import torch
        >>> redraw(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
    """
    known: Any = module
    if hasattr(module, "reset_parameters"):
        known.reset_parameters()
    else:
        for part in module.children():
            redraw(part)


def _takes_weights(conv: nn.Module) -> bool:
    return "edge_weight" in inspect.signature(conv.forward).parameters
