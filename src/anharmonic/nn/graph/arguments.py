"""Arguments of the deep graph layers: convolutions, activations, features and edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from anharmonic import _checks
from anharmonic.ops.graph import Adjacency, check_edges

Activation = Callable[[Tensor], Tensor]

_ACTIVATIONS: dict[str, Activation] = {
    "relu": torch.relu,
    "elu": functional.elu,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "identity": lambda x: x,
}


class GraphInputs(NamedTuple):
    """What goes to the convolutions beside the features; ``rows``: the edges for a gate."""

    graph: Any
    args: tuple[Any, ...]
    options: dict[str, Any]
    rows: Any = None


def modules(name: str, given: Any, num_layers: int) -> nn.ModuleList:
    """One convolution for all layers or one for each, as a list.

    Args:
        name: The argument's name.
        given: A module or several.
        num_layers: Layers L.

    Raises:
        TypeError: If it is no module.
        ValueError: If there are neither 1 nor L.

    Example:
        >>> len(modules("conv", nn.Linear(2, 2), 5))
        1
    """
    several = not isinstance(given, nn.Module) or isinstance(given, nn.ModuleList)
    found = list(given) if several and isinstance(given, Iterable) else [given]
    for module in found:
        _checks.require(
            isinstance(module, nn.Module), name, module, "a torch.nn.Module or a list of them",
            "pass a convolution, such as torch_geometric.nn.GCNConv(64, 64)", TypeError,
        )  # fmt: skip
    _checks.require(
        not several or len(found) == num_layers, f"the length of the list {name}", len(found),
        f"one for each of the {num_layers} layers", "pass a single module to share it",
    )  # fmt: skip
    return nn.ModuleList(found)


def activation_function(name: str, given: str | Activation) -> Activation:
    """An activation by name, or the callable itself.

    Args:
        name: The argument's name.
        given: A name or a function of one tensor.

    Raises:
        TypeError: If it is neither a name nor a function; a class is none.
        ValueError: If the name is unknown.

    Example:
        >>> activation_function("activation", "relu")(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    if isinstance(given, str):
        return _ACTIVATIONS[_checks.choice(name, given, _ACTIVATIONS)]
    _checks.require(
        callable(given) and not isinstance(given, type), name, given,
        f"one of {', '.join(map(repr, _ACTIVATIONS))}, or a function",
        "pass an instance, such as torch.nn.ReLU()" if callable(given) else "pass a name",
        TypeError,
    )  # fmt: skip
    return given


def symbolic(x: Any) -> bool:
    """Whether PyG's ``to_hetero`` records the operations on x, so that there is nothing to check.

    Example:
        >>> symbolic(torch.zeros(2, 3))
        False
    """
    return isinstance(x, torch.fx.Proxy)


def check_input(x: Any, graph: Any) -> None:
    """Checks node features and edges.

    Args:
        x: Should be floating point [N, m].
        graph: Should be ``edge_index`` [2, E], a sparse [N, N] tensor or an ``Adjacency``.

    Raises:
        TypeError: If one has the wrong type, as those of bipartite and heterogeneous graphs have.
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
                "new features to its old ones; make the graph homogeneous first, or call "
                "torch_geometric.nn.to_hetero on a GraphCON that no other module holds",
            )
        )
    expected = "a floating-point tensor [N, m]"
    _checks.require(
        isinstance(x, Tensor) and x.is_floating_point(), "x", x, expected,
        "convert node features with x.float()", TypeError,
    )  # fmt: skip
    _checks.require(
        x.dim() == 2, "x", x, expected,
        "put several graphs into one, as torch_geometric.data.Batch does",
    )  # fmt: skip
    _checks.no_nan("x", x)
    device = getattr(graph, "device", x.device)
    _checks.require(
        x.device == device or _checks.watched(), "x", f"one on {x.device}",
        f"on the device of the edges, {device}", "move both with .to(device)",
    )  # fmt: skip
    if isinstance(graph, Adjacency) or (
        isinstance(graph, Tensor) and graph.layout != torch.strided
    ):
        nodes = graph.num_nodes if isinstance(graph, Adjacency) else tuple(graph.shape)
        if nodes not in (x.shape[0], (x.shape[0], x.shape[0])):
            _checks.require(
                False, "the graph", nodes, f"one with the {x.shape[0]} nodes of x",
                "pass the features of every node; bipartite graphs do not fit",
            )  # fmt: skip
    elif _checks.has_values(x):
        check_edges(graph, x.shape[0])


def check_edge_options(inputs: GraphInputs) -> None:
    """Checks that what a convolution gets per edge has one entry for every edge.

    Args:
        inputs: The edges, and what goes to the convolutions beside them.

    Raises:
        ValueError: If ``edge_weight`` or ``edge_attr`` has another length than ``edge_index``.

    Example:
        >>> weight = {"edge_weight": torch.ones(1)}
        >>> check_edge_options(GraphInputs(torch.tensor([[0], [1]]), (), weight))
    """
    if not isinstance(inputs.graph, Tensor) or inputs.graph.layout != torch.strided:
        return
    edges = inputs.graph.shape[1]
    for name in ("edge_weight", "edge_attr"):
        given = inputs.options.get(name)
        if isinstance(given, Tensor) and given.shape[:1] != (edges,):
            _checks.require(
                False, name, given, f"a tensor with one entry for each of the E={edges} edges",
                "give them in the order of the columns of edge_index",
            )  # fmt: skip
