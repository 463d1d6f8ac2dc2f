"""Layer-wise inference of deep graph networks, for graphs that do not fit on a device."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn.graph.arguments import check_input
from anharmonic.nn.graph.deep import DeepGraphLayer
from anharmonic.nn.graph.encoder_decoder import GraphNetwork
from anharmonic.nn.graph.gradient_gating import GradientGating
from anharmonic.ops.graph import Adjacency, as_int64, edges_of, refuse_weights


@torch.no_grad()
def infer_by_layers(
    model: DeepGraphLayer | GraphNetwork,
    x: Tensor,
    edge_index: Any,
    nodes_per_part: int = 8192,
    hops: int | None = None,
) -> Tensor:
    """Run a model on a whole graph, layer by layer and some nodes at a time.

    Each part is computed together with the surrounding nodes that one layer uses, so the result
    equals that of a full pass up to rounding. The states of all nodes stay on the device of `x`;
    each part is moved to the model's device.

    Args:
        model: A ``GraphCON``, a ``GradientGating`` or one of their networks for nodes. It runs in
            evaluation mode without gradients and is not changed.
        x: Node features.
        edge_index: The edges, a sparse adjacency or an ``Adjacency``. Edge weights and further
            arguments of convolutions are not supported.
        nodes_per_part: Number of nodes to compute at a time, at least 1.
        hops: Reach of one layer in hops, at least 1. The default is 2 for GraphCON and 3 for
            GradientGating. It suits convolutions that reach one hop, along or against the edges,
            and may use the degrees of the nodes there, as GCN does.

    Shape:
        x [N, F]; edge_index [2, E]; result as from the model.

    Raises:
        TypeError: If the model is of another type.
        ValueError: If a number is out of range, features and edges do not fit, edges have weights,
            or a module needs the whole graph at once: a convolution with ``cached=True`` or a norm
            over all nodes, such as PyTorch Geometric's ``GraphNorm``.

    Example:
        >>> import anharmonic as ah
        >>> class Neighbours(torch.nn.Module):
        ...     def forward(self, x, edge_index):
        ...         return torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        >>> layer, x = ah.GraphCON(Neighbours(), num_layers=8, dt=0.5).eval(), torch.rand(3, 16)
        >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> torch.allclose(infer_by_layers(layer, x, edges, nodes_per_part=2), layer(x, edges))
        True
    """
    _checks.positive_int("nodes_per_part", nodes_per_part)
    block = getattr(model, "block", None) if isinstance(model, GraphNetwork) else model
    is_deep = isinstance(block, DeepGraphLayer) and getattr(model, "level", "node") == "node"
    expected = "a GraphCON, a GradientGating or a network of one for nodes"
    _checks.require(is_deep, "model", model, expected, "run others on the whole graph", TypeError)
    if hops is None:
        hops = 3 if isinstance(block, GradientGating) else 2
    _checks.positive_int("hops", hops)
    check_input(x, edge_index)
    _checks.require(
        not (found := [part for part in model.modules() if _needs_whole_graph(part)]), "model",
        found[:1], "without cached=True and norms over all nodes", "run it on the whole graph",
    )  # fmt: skip
    # A copy with the same weights: another thread may be training or running the model.
    weights = chain(model.parameters(), model.buffers())
    model = copy.deepcopy(model, {id(weight): weight for weight in weights}).eval()
    refuse_weights(edge_index, "run the model on the whole graph")
    is_sorted = isinstance(edge_index, Adjacency)
    edges = edge_index.edge_index if is_sorted else edges_of(as_int64(edge_index))
    if isinstance(model, GraphNetwork):
        device = next((p.device for p in model.parameters()), x.device)

        def node_by_node(run: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
            parts = torch.split(x, nodes_per_part)
            return torch.cat([run(part.to(device)).to(x.device) for part in parts])

        states = node_by_node(model._encode, x)
        states = _run_in_parts(model.block, states, edges, nodes_per_part, hops)
        return node_by_node(lambda part: model._decode(part, None, 1), states)
    return _run_in_parts(model, x, edges, nodes_per_part, hops)


def _needs_whole_graph(module: torch.nn.Module) -> bool:
    # In PyTorch Geometric, modules that combine all nodes of a graph take the vector ``batch``.
    takes_batch = "batch" in inspect.signature(module.forward).parameters
    is_cached = getattr(module, "cached", False) is True
    is_batch_norm = isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
    if is_batch_norm and module.running_mean is None:  # it takes statistics of the batch instead
        return True
    return is_cached or (takes_batch and getattr(module, "mode", "graph") != "node")


def _run_in_parts(block: Any, x: Tensor, edges: Tensor, nodes_per_part: int, hops: int) -> Tensor:
    device = next((p.device for p in block.parameters()), x.device)
    parts = [
        (part, *_surroundings(part, edges, x.shape[0], hops))
        for part in torch.split(torch.arange(x.shape[0], device=x.device), nodes_per_part)
    ]
    states = block.initial_states(x)
    for n in range(block.num_layers):
        after = tuple(torch.empty_like(state) for state in states)
        for part, nodes, part_edges in parts:
            before = tuple(state[nodes].to(device) for state in states)
            inputs = block._inputs(part_edges.to(device), len(nodes), (), {})
            new_states = block._step(n, before, inputs)
            for state, new in zip(after, new_states, strict=False):
                state[part] = new[: len(part)].to(state.device)
        states = after
    return states[0]  # type: ignore[no-any-return]


def _surroundings(part: Tensor, edges: Tensor, num_nodes: int, hops: int) -> tuple[Tensor, Tensor]:
    """Return a part followed by all nodes within this many hops, and the edges among them.

    Hops go both ways, because convolutions and gates may also read the targets of edges.
    """
    source, target = edges
    is_part = torch.zeros(num_nodes, dtype=torch.bool, device=edges.device)
    is_part[part] = True
    is_near = is_part.clone()
    for _ in range(hops):
        reached = is_near.clone()
        reached[source[is_near[target]]] = True
        reached[target[is_near[source]]] = True
        is_near = reached
    nodes = torch.cat([part, (is_near & ~is_part).nonzero()[:, 0]])
    numbers = torch.empty(num_nodes, dtype=torch.long, device=edges.device)
    numbers[nodes] = torch.arange(len(nodes), device=edges.device)
    return nodes, numbers[edges[:, is_near[source] & is_near[target]]]
