r"""Differences between neighbouring nodes' features, which oversmoothing removes.

Letters: `N` nodes, `m` features, `L` layers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from anharmonic import _checks
from anharmonic._checks import require
from anharmonic._tensors import at_least_single
from anharmonic.diagnostics.recurrence import examined
from anharmonic.nn.graph.deep import DeepGraphLayer
from anharmonic.nn.graph.encoder_decoder import GraphNetwork
from anharmonic.nn.graph.gradient_gating import GradientGating
from anharmonic.ops.graph import Adjacency, edges_of, refuse_weights


def dirichlet_energy(x: Tensor | list[Tensor], graph: Adjacency | Tensor) -> Tensor:
    r"""Dirichlet energy (6.2): squared differences to all neighbours, the mean over nodes.

    .. math::
        D(X) = \frac{1}{v} \sum_i \sum_{j \in N_i} |X_i - X_j|^2

    Its square root is a node-similarity measure. A network oversmooths if it decays exponentially
    with depth.

    Args:
        x: Node features of one or several layers, or the list from ``layer_features``.
        graph: The edges; undirected edges must appear in both directions.

    Shape:
        x [..., N, m], or a list of L [N, m]; graph an Adjacency, edge_index [2, E] or a sparse
        adjacency [N, N] whose row i holds the edges that end in i; result [...].

    Raises:
        ValueError: If x has no nodes, or a different number of nodes than the graph.

    Example:
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> dirichlet_energy(torch.tensor([[1.0], [3.0]]), edges)
        tensor(4.)
    """
    x, (source, target) = _checked(x, graph)
    return (x[..., source, :] - x[..., target, :]).square().sum((-2, -1)) / x.shape[-2]


def mean_average_distance(x: Tensor | list[Tensor], graph: Adjacency | Tensor) -> Tensor:
    r"""Mean cosine distance to the neighbours (MAD), in [0, 2].

    .. math::
        \text{MAD}(X) = \frac{1}{|V'|} \sum_{i \in V'} \frac{1}{|N_i|} \sum_{j \in N_i}
        \Big(1 - \frac{X_i \cdot X_j}{|X_i|\,|X_j|}\Big)

    V' are the nodes with a neighbour. A node with zero features has distance 0 from all others.

    Args:
        x: Node features of one or several layers, or the list from ``layer_features``.
        graph: The edges; undirected edges must appear in both directions.

    Shape:
        x [..., N, m], or a list of L [N, m]; graph an Adjacency, edge_index [2, E] or a sparse
        adjacency [N, N] whose row i holds the edges that end in i; result [...].

    Raises:
        ValueError: If x has no nodes, or a different number of nodes than the graph.

    Example:
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> mean_average_distance(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), edges)
        tensor(1.)

    References:
        Chen et al., Measuring and Relieving the Over-smoothing Problem for Graph Neural Networks,
        AAAI 2020.
    """
    x, (source, target) = _checked(x, graph)
    # Divide by the largest entry first, because squares of small numbers underflow.
    x = x / x.abs().amax(-1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
    size = x.norm(dim=-1, keepdim=True)
    unit = torch.where(size > 0, x / size, 0.0)
    zero = (size[..., source, 0] == 0) | (size[..., target, 0] == 0)
    distance = 1 - (unit[..., source, :] * unit[..., target, :]).sum(-1)
    distance = distance.masked_fill(zero, 0.0)
    degree = torch.bincount(target, minlength=x.shape[-2])
    share = distance / degree[target].to(x.dtype)
    return share.sum(-1) / (degree > 0).sum().clamp(min=1)


def grid_graph(rows: int, columns: int) -> Adjacency:
    """Return a grid graph whose nodes have up to four neighbours, in both directions.

    Args:
        rows: Rows of the grid, >= 1.
        columns: Columns, >= 1.

    Raises:
        ValueError: If a size is below 1.

    Example:
        >>> grid_graph(10, 10)
        Adjacency(100 nodes, 360 edges)
    """
    _checks.positive_int("rows", rows)
    _checks.positive_int("columns", columns)
    node = torch.arange(rows * columns).reshape(rows, columns)
    right = torch.stack([node[:, :-1].flatten(), node[:, 1:].flatten()])
    down = torch.stack([node[:-1].flatten(), node[1:].flatten()])
    edges = torch.cat([right, right.flip(0), down, down.flip(0)], dim=1)
    return Adjacency(edges, rows * columns)


def _checked(x: Any, graph: Adjacency | Tensor) -> tuple[Tensor, Tensor]:
    """Return features as one tensor, and the edges of their graph."""
    if isinstance(x, list) and x and all(isinstance(one, Tensor) for one in x):
        shapes = sorted({tuple(one.shape) for one in x})
        came, advice = [list(shape) for shape in shapes], "pass the layers of one width"
        require(len(shapes) == 1, "shapes in x", came, "equal", advice)
        x = torch.stack(x)
    fits = isinstance(x, Tensor) and x.dim() >= 2 and x.is_floating_point()
    expected = "a floating-point tensor [..., N, m] with N >= 1"
    require(fits and x.shape[-2] > 0, "x", x, expected, "pass node features, one row per node")
    if not isinstance(graph, Adjacency):
        graph = Adjacency(edges_of(graph) if isinstance(graph, Tensor) else graph, x.shape[-2])
    fits, advice = graph.num_nodes == x.shape[-2], "pass the features of every node"
    require(fits, "graph", graph, f"of the {x.shape[-2]} nodes of x", advice)
    return at_least_single(x), graph.edge_index


def plain_states(convs: list[torch.nn.Module], x: Tensor, graph: Adjacency) -> Tensor:
    r"""Return all layers' features of a plain network, :math:`X^n = \text{relu}(F_n(X^{n-1}))`.

    Args:
        convs: The convolutions F, one per layer.
        x: Node features X^0.
        graph: The edges.

    Shape:
        x [N, m]; result [L + 1, N, m].

    Example:
        >>> from anharmonic.nn.graph.convolutions import NodewiseLinear
        >>> plain_states([NodewiseLinear(2, 2)] * 5, torch.rand(100, 2), grid_graph(10, 10)).shape
        torch.Size([6, 100, 2])
    """
    from anharmonic.nn.graph.convolve import convolve

    states = [x]
    for conv in convs:
        states.append(functional.relu(convolve(conv, states[-1], graph)))
    return torch.stack(states)


def layer_features(
    model: Any, x: Tensor, graph: Adjacency | Tensor, *args: Any, **options: Any
) -> list[Tensor]:
    """Return the node features before the first and after every layer of a graph network.

    For ``GraphCON``, ``GradientGating`` and models that hold one of them these are its states X^0,
    ..., X^L. For other models, including PyTorch Geometric's, they are the inputs of every
    convolution and the output of the last one.

    Args:
        model: The network; dropout is off during the call.
        x: Node features.
        graph: The edges.
        *args: Further arguments of the model.
        **options: Further arguments by name.

    Shape:
        x [N, F]; result L + 1 times [N, m]; widths may differ.

    Raises:
        TypeError: If no graph convolution is found in the model.
        ValueError: If the graph is an Adjacency with weights, and the model not of this package; or
            if the model holds several of these layers.

    Example:
        >>> from anharmonic import GraphCON
        >>> from anharmonic.nn.graph.convolutions import NodewiseLinear
        >>> model, graph = GraphCON(NodewiseLinear(2, 2), 5), grid_graph(3, 3)
        >>> len(layer_features(model, torch.rand(9, 2), graph))
        6
    """
    with examined(model), torch.no_grad():
        if _deep_layers(model):
            return list(_block_states(model, x, graph, *args, **options).x.unbind(0))
        return _around_convolutions(model, x, graph, *args, **options)


def gate_rates(
    model: Any, x: Tensor, graph: Adjacency | Tensor, *args: Any, **options: Any
) -> list[Tensor]:
    """Return the rates τ of every layer of a ``GradientGating``, or of a model that holds one.

    A rate of 0 keeps a node's features, a rate of 1 replaces them. If nearly all rates are 0, the
    network ignores the graph.

    Args:
        model: The layer or network; dropout is off during the call.
        x: Node features.
        graph: The edges.
        *args: Further arguments of the model.
        **options: Further arguments by name.

    Shape:
        x [N, F]; result L times [N, m], or [N, 1] with a single rate per node.

    Raises:
        TypeError: If the model has no gate.
        ValueError: As ``layer_features``.

    Example:
        >>> from anharmonic import GradientGating
        >>> from anharmonic.nn.graph.convolutions import NodewiseLinear
        >>> model, graph = GradientGating(NodewiseLinear(2, 2), 5), grid_graph(3, 3)
        >>> len(gate_rates(model, torch.rand(9, 2), graph))
        5
    """
    require(
        any(isinstance(layer, GradientGating) for layer in _deep_layers(model)), "model", model,
        "one with a GradientGating", "call layer_features for other models", TypeError,
    )  # fmt: skip
    with examined(model), torch.no_grad():
        return list(_block_states(model, x, graph, *args, **options).tau.unbind(0))


def _deep_layers(model: Any) -> list[DeepGraphLayer]:
    parts = model.modules() if isinstance(model, torch.nn.Module) else ()
    return [part for part in parts if isinstance(part, DeepGraphLayer)]


def _edges_for(model: Any, graph: Any) -> Any:
    """Return the graph in the form that a model takes: other people's take no ``Adjacency``."""
    if not isinstance(graph, Adjacency) or isinstance(model, GraphNetwork | DeepGraphLayer):
        return graph
    refuse_weights(graph, "pass edge_index and the weights as the model takes them")
    return graph.edge_index


def _block_states(model: Any, x: Tensor, graph: Any, *args: Any, **options: Any) -> Any:
    """Return the states of every layer of a deep block, with or without encoder and decoder."""
    blocks = _deep_layers(model)
    expected, advice = "one GraphCON or GradientGating", "pass one of these layers itself"
    require(len(blocks) == 1, "layers in model", len(blocks), expected, advice)
    block, graph = blocks[0], _edges_for(model, graph)
    calls: list[Any] = [((x, graph, *args), options)]
    if block is not model:
        hook = block.register_forward_pre_hook(
            lambda module, *inputs: calls.append(inputs), with_kwargs=True
        )
        try:
            model(x, graph, *args, **options)
        finally:
            hook.remove()
    args, options = calls[-1]
    return block(*args, **(options | {"return_states": True}))[1]


def _around_convolutions(
    model: Any, x: Tensor, graph: Adjacency | Tensor, *args: Any, **options: Any
) -> list[Tensor]:
    convs = list(getattr(model, "convs", []))
    convs = convs or [module for module in model.modules() if hasattr(module, "propagate")]
    expected = "one that holds graph convolutions"
    advice = "pass a graph network of anharmonic or PyTorch Geometric"
    require(len(convs) > 0, "model", type(model).__name__, expected, advice, TypeError)
    found: list[Tensor] = []
    last: list[Tensor] = []

    def see(module: Any, inputs: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        found.append(inputs[0] if inputs else named["x"])
        last[:] = [output]

    graph = _edges_for(model, graph)
    hooks = [conv.register_forward_hook(see, with_kwargs=True) for conv in convs]
    try:
        model(x, graph, *args, **options)
    finally:
        for hook in hooks:
            hook.remove()
    return found + last
