"""Deep graph networks layer by layer and part by part, for graphs that do not fit on a device."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.nn.graph.arguments import GraphInputs
from anharmonic.nn.graph.deep import DeepGraphLayer
from anharmonic.nn.graph.encoder_decoder import GraphNetwork
from anharmonic.nn.graph.gradient_gating import GradientGating
from anharmonic.ops.edges import edges_of


@torch.no_grad()
def infer_by_layers(
    model: DeepGraphLayer | GraphNetwork,
    x: Tensor,
    edge_index: Any,
    nodes_per_part: int = 8192,
    hops: int | None = None,
) -> Tensor:
    """What a model gives for a whole graph, one layer after the other and so many nodes at a time.

    Each part is computed with the nodes around it that one layer looks at, so that the result is
    that of a full pass, up to rounding. The states of all nodes stay where `x` is, and each part
    goes to the model's device.

    Args:
        model: A ``GraphCON``, a ``GradientGating`` or one of their networks for nodes; used in
            evaluation mode, and without gradients.
        x: Node features.
        edge_index: The edges, or a sparse adjacency; without further arguments of convolutions.
        nodes_per_part: Nodes whose states are computed at a time, at least 1.
        hops: How far one layer looks, at least 1: the default, 2 for GraphCON and 3 for
            GradientGating, fits convolutions that look one hop far and may count the edges of
            the nodes there, as those of GCN do.

    Shape:
        x [N, F]; edge_index [2, E]; result as of the model.

    Raises:
        TypeError: If the model is another one.
        ValueError: If a number is out of range.

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
    model = _in_evaluation(model)
    block = model.block if isinstance(model, GraphNetwork) else model
    good = isinstance(block, DeepGraphLayer) and getattr(model, "level", "node") == "node"
    expected = "a GraphCON, a GradientGating or a network of one for nodes"
    _checks.require(good, "model", model, expected, "run others on the whole graph", TypeError)
    assert isinstance(block, DeepGraphLayer)
    if hops is None:
        hops = 3 if isinstance(block, GradientGating) else 2
    walk = _ByLayers(block, nodes_per_part, _checks.positive_int("hops", hops))
    if not isinstance(model, GraphNetwork):
        return walk.forward(x, edge_index)
    model.block = walk
    found: Tensor = model(x, edge_index)
    return found


def _in_evaluation(module: Any) -> Any:
    """Return a copy in evaluation mode that shares the parameters; the original is not touched."""
    if not isinstance(module, nn.Module):
        return module
    twin = copy.copy(module)
    twin._modules = {name: _in_evaluation(child) for name, child in module._modules.items()}
    twin.training = False
    return twin


class _ByLayers(nn.Module):
    def __init__(self, block: DeepGraphLayer, nodes_per_part: int, hops: int) -> None:
        super().__init__()
        self.block, self.nodes_per_part, self.hops = block, nodes_per_part, hops

    def forward(self, x: Tensor, graph: Any) -> Tensor:
        block = self.block
        device = next((p.device for p in block.parameters()), x.device)
        gate = isinstance(block, GradientGating)
        both = gate and block.neighbours == "out"
        nodes_of = torch.split(torch.arange(x.shape[0], device=x.device), self.nodes_per_part)
        parts = [_around(part, edges_of(graph), x.shape[0], self.hops, both) for part in nodes_of]
        states = block.initial_states(x)
        for n in range(block.num_layers):
            after = tuple(torch.empty_like(state) for state in states)
            for part, nodes, edges in parts:
                near = tuple(state[nodes].to(device) for state in states)
                moved = edges.to(device)
                rows = block._adjacency(moved, len(nodes)) if gate else None
                found = block._step(n, near, GraphInputs(moved, (), {}, rows))
                for state, new in zip(after, found, strict=True):
                    state[part] = new[: len(part)].to(state.device)
            states = after
        return states[0]


def _around(
    part: Tensor, edges: Tensor, num_nodes: int, hops: int, both: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """A part, all nodes from which so many edges lead there, it first, and the edges among them."""
    source, target = edges
    near = torch.zeros(num_nodes, dtype=torch.bool, device=edges.device)
    near[part] = True
    inside = near.clone()
    for _ in range(hops):
        reached = inside.clone()
        reached[source[inside[target]]] = True
        if both:
            reached[target[inside[source]]] = True
        inside = reached
    nodes = torch.cat([part, (inside & ~near).nonzero()[:, 0]])
    numbers = torch.empty(num_nodes, dtype=torch.long, device=edges.device)
    numbers[nodes] = torch.arange(len(nodes), device=edges.device)
    return part, nodes, numbers[edges[:, inside[source] & inside[target]]]
