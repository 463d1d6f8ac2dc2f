"""Arguments of the deep graph layers: convolutions, activations, features and edges."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from anharmonic import _checks, _tensors
from anharmonic.ops.graph import Adjacency, check_edges

Activation = Callable[[Tensor], Tensor]
CONV_EXAMPLE = "a convolution, such as torch_geometric.nn.GCNConv(64, 64)"
NORM_EXAMPLE = "a norm, such as torch.nn.LayerNorm(64)"

_ACTIVATIONS: dict[str, Activation] = {
    "relu": torch.relu,
    "elu": functional.elu,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "identity": torch.positive,
}


TO_HETERO = "call torch_geometric.nn.to_hetero on a GraphCON that no other module holds"
SAME_WIDTH = (
    "give it as many output as input channels (attention heads: concat=False, or channels / heads "
    "each)"
)


def modules(name: str, value: Any, num_layers: int, example: str = CONV_EXAMPLE) -> nn.ModuleList:
    """Return one module for all layers or one for each as a list, or raise an error."""
    is_list = not isinstance(value, nn.Module | str) or isinstance(value, nn.ModuleList)
    entries = list(value) if is_list and isinstance(value, Iterable) else [value]
    for entry in entries:
        _checks.require(
            isinstance(entry, nn.Module), name, entry, "a torch.nn.Module or a list of them",
            f"pass {example}", TypeError,
        )  # fmt: skip
        sizes = _sizes(entry)
        if sizes is not None and sizes[0] != sizes[1]:
            expected = f"{name} must return as many features as it takes, {sizes[0]}"
            raise ValueError(_checks.message(expected, f"{sizes[1]} from {entry}", SAME_WIDTH))
    _checks.require(
        not is_list or len(entries) == num_layers, f"the length of the list {name}", len(entries),
        f"one for each of the {num_layers} layers", "pass a single module to share it",
    )  # fmt: skip
    return nn.ModuleList(entries)


def _sizes(conv: Any) -> tuple[int, int] | None:
    """Return the input and output width of a PyTorch Geometric convolution; None if unknown."""
    width, features = getattr(conv, "in_channels", None), getattr(conv, "out_channels", None)
    if not isinstance(width, int) or not isinstance(features, int) or min(width, features) < 1:
        return None  # sizes of bipartite graphs, or known only when it is first called
    return width, features * (conv.heads if getattr(conv, "concat", False) is True else 1)


def activation_function(name: str, value: str | Activation) -> Activation:
    """Return an activation by name, or the callable itself.

    Args:
        name: The argument's name.
        value: A name or a function of one tensor.

    Raises:
        TypeError: If it is neither a name nor a function; a class is not one.
        ValueError: If the name is unknown.

    Example:
        >>> activation_function("activation", "relu")(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    if isinstance(value, str):
        return _ACTIVATIONS[_checks.choice(name, value, _ACTIVATIONS)]
    _checks.require(
        callable(value) and not isinstance(value, type), name, value,
        f"one of {', '.join(map(repr, _ACTIVATIONS))}, or a function",
        "pass an instance, such as torch.nn.ReLU()" if callable(value) else "pass a name",
        TypeError,
    )  # fmt: skip
    return value


def is_symbol(x: Any) -> bool:
    """Return whether ``torch_geometric.nn.to_hetero`` records the operations on x."""
    return isinstance(x, torch.fx.Proxy)


def check_input(x: Any, graph: Any) -> None:
    """Check node features and edges.

    Args:
        x: Floating-point tensor [N, m].
        graph: ``edge_index`` [2, E], a sparse [N, N] tensor or an ``Adjacency``.

    Raises:
        TypeError: If one has the wrong type, as for bipartite and heterogeneous graphs.
        ValueError: If shapes do not fit, an index is out of range, or a feature is NaN.

    Example:
        >>> check_input(torch.zeros(2, 3), torch.tensor([[0], [1]]))
    """
    if isinstance(x, (tuple, list, dict)) or isinstance(graph, dict):
        raise TypeError(
            _checks.message(
                "x must be one tensor [N, m] and the edges those of one kind of node",
                f"x of type {type(x).__name__}, edges of type {type(graph).__name__}",
                "bipartite and heterogeneous graphs do not fit, because every layer adds a node's "
                "new features to its old ones; make the graph homogeneous first, or " + TO_HETERO,
            )
        )
    if graph is None:
        expected = "edge_index must be the edges of the graph"
        advice = f"pass it after x; with several kinds of nodes {TO_HETERO}"
        raise TypeError(_checks.message(expected, "None", advice))
    expected = "a floating-point tensor [N, m]"
    _checks.require(
        isinstance(x, Tensor) and x.is_floating_point(), "x", x, expected,
        "convert node features with x.float()", TypeError,
    )  # fmt: skip
    advice = "put several graphs into one, as torch_geometric.data.Batch does"
    _checks.require(x.dim() == 2, "x", x, expected, advice)
    _tensors.no_nan("x", x)
    device = graph.device if isinstance(graph, Tensor | Adjacency) else x.device
    _checks.require(
        x.device == device or _tensors.watched(), "x", f"one on {x.device}",
        f"on the device of the edges, {device}", "move both with .to(device)",
    )  # fmt: skip
    if isinstance(graph, Adjacency):
        nodes: Any = graph.num_nodes
    elif isinstance(graph, Tensor) and graph.layout != torch.strided:
        nodes = tuple(graph.shape)
    else:
        if _tensors.has_values(x):
            check_edges(graph, x.shape[0])
        return
    # A compiler turns sizes in a message into constants, so build the message only to raise it.
    if nodes not in (x.shape[0], (x.shape[0], x.shape[0])):
        expected = f"one with the {x.shape[0]} nodes of x"
        advice = "pass the features of every node; bipartite graphs do not fit"
        _checks.require(False, "the graph", nodes, expected, advice)


def check_edge_options(graph: Any, options: dict[str, Any]) -> None:
    """Check that ``edge_weight`` and ``edge_attr`` have one entry for every edge."""
    if not isinstance(graph, Tensor) or graph.layout != torch.strided:
        return
    for name in ("edge_weight", "edge_attr"):
        value = options.get(name)
        if isinstance(value, Tensor) and value.shape[:1] != graph.shape[1:]:
            expected = f"a tensor with one entry for each of the E={graph.shape[1]} edges"
            advice = "give them in the order of the columns of edge_index"
            _checks.require(False, name, value, expected, advice)


def explain_dtype(name: str, value: Any, module: nn.Module) -> None:
    """Raise a TypeError if a failed call mixed the dtypes of a tensor and of a module's weights."""
    weight = next((p for p in module.parameters() if p.is_floating_point()), None)
    if weight is None or not isinstance(value, Tensor) or value.dtype == weight.dtype:
        return
    expected = f"{name} must have the dtype of the weights, {weight.dtype}"
    advice = f"convert it with .to({weight.dtype})"
    if value.is_floating_point():
        advice += f", or the module with .to({value.dtype})"
    raise TypeError(_checks.message(expected, _checks.described(value), advice))


def explain_options(
    name: str, conv: nn.Module, args: tuple[Any, ...], options: dict[str, Any], error: Exception
) -> None:
    """Raise a TypeError if a call failed because a convolution got too many or few arguments."""
    takes = inspect.signature(conv.forward).parameters
    is_open = any(parameter.kind == parameter.VAR_KEYWORD for parameter in takes.values())
    unknown = [] if is_open else [option for option in options if option not in takes]
    if unknown:
        expected = f"{name} must take {_checks.listed(unknown)}, as options go to all convolutions"
        advice = "leave them out, or wrap it in a module that takes and ignores them"
        raise TypeError(_checks.message(expected, str(conv), advice))
    if args and isinstance(args[0], Tensor) and list(takes)[2:3] == ["size"]:
        expected = f"{name} must take edge weights"
        advice = "leave them out, or wrap a convolution that takes them, such as GraphConv"
        raise TypeError(_checks.message(expected, str(conv), advice))
    # PyTorch Geometric asserts that they are there, or computes with None.
    fits = isinstance(error, AssertionError) or "NoneType" in str(error)
    if fits and "edge_attr" in takes and not args and options.get("edge_attr") is None:
        expected = f"{name} needs edge_attr"
        advice = "call layer(x, edge_index, edge_attr=...) with a row for every edge"
        raise TypeError(_checks.message(expected, f"none for {conv}", advice))
