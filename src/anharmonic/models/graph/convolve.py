"""Calls a convolution, by sparse products where it is GCN or mean GraphSAGE; draws it anew."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.kernels.adjacency import Adjacency


def convolve(conv: Any, x: Tensor, graph: Any, *args: Any, **options: Any) -> Any:
    """Calls a convolution, with sparse products where it is GCN or mean GraphSAGE.

    Args:
        conv: The convolution.
        x: Node features.
        graph: ``edge_index``, a sparse adjacency or an ``Adjacency``. Of the last, convolutions
            other than GCN, mean GraphSAGE and this package's couplings get ``edge_index`` (and
            ``edge_weight``, if it has weights).
        *args: Further arguments of the convolution.
        **options: Further arguments by name.

    Shape:
        x [N, m]; result what the convolution returns.

    Example:
        >>> import torch
        >>> from anharmonic.models.graph.couplings import AttentionCoupling
        >>> convolve(AttentionCoupling(2), torch.zeros(3, 2), torch.zeros(2, 0).long()).shape
        torch.Size([3, 2])
    """
    if not isinstance(graph, Adjacency) or getattr(conv, "takes_adjacency", False):
        return conv(x, graph, *args, **options)
    if not args and not options:
        if _is_plain_gcn(conv):
            mapped = graph.normalised.matmul(conv.lin(x))
            return mapped if conv.bias is None else mapped.add_(conv.bias)
        if _is_plain_sage(conv) and graph.weight is None:
            mean = conv.lin_l(graph.mean(x))
            return mean + conv.lin_r(x) if conv.root_weight else mean
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


def _is_plain_gcn(conv: Any) -> bool:
    return (
        _is(conv, "GCNConv")
        and conv.aggr in ("add", "sum")
        and conv.normalize
        and conv.add_self_loops
        and not conv.improved
        and not conv.cached
        and conv.flow == "source_to_target"
    )


def _is_plain_sage(conv: Any) -> bool:
    return (
        _is(conv, "SAGEConv")
        and conv.aggr == "mean"
        and not conv.project
        and not conv.normalize
        and conv.flow == "source_to_target"
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


_METHODS = ("forward", "propagate", "message", "aggregate", "update", "message_and_aggregate")
"""What a convolution does, which may be replaced on one of them."""
