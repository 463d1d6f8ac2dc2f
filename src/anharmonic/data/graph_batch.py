"""Graphs and targets in memory, and batches of them.

Letters: `N` nodes, `E` edges, `F` features, `O` outputs, `R` targets, `G` graphs.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from anharmonic._checks import positive_int, require
from anharmonic.data.dataset import Batches, Dataset, as_target, in_units
from anharmonic.ops.graph import Adjacency


class GraphBatch(NamedTuple):
    """A batch of one or several graphs.

    Attributes:
        x: Features of the nodes, float32 `[N, F]`.
        graph: The edges. For a task on one graph all batches share one object, so that derived data
            are computed once.
        y: Targets of `rows`, or of the graphs: int64 `[R]` (classes), float32 `[R, O]` (values, or
            labels 0 and 1).
        rows: int64 `[R]`, the nodes whose predictions count; None for predictions per graph.
        membership: int64 `[N]`, the graph of every node; None for one graph.
        num_graphs: Number of graphs.
        shift: Float32 `[O]`, the value at model output 0 in units of `y`; None for 0.
        scale: Float32 `[O]`, units of `y` per model output; None for 1. Shift and scale are both
            None or both set.

    Example:
        >>> GraphBatch._fields[:3]
        ('x', 'graph', 'y')
    """

    x: Tensor
    graph: Adjacency
    y: Tensor
    rows: Tensor | None
    membership: Tensor | None
    num_graphs: int = 1
    shift: Tensor | None = None
    scale: Tensor | None = None

    @property
    def inputs(self) -> tuple[Tensor, Adjacency, Tensor | None, int]:
        """Return the arguments of a model."""
        return self.x, self.graph, self.membership, self.num_graphs

    def to(self, device: torch.device) -> GraphBatch:
        """The batch on a device."""
        if self.x.device == device:
            return self
        parts = self._asdict().items()
        return self._replace(
            **{name: part.to(device) for name, part in parts if hasattr(part, "to")}
        )

    def select(self, prediction: Tensor) -> Tensor:
        """Return the entries of a model's output at `rows`, in the units of the targets."""
        prediction = prediction if self.rows is None else prediction[self.rows]
        return in_units(prediction, self.shift, self.scale)


class NodeDataset(Dataset[GraphBatch]):
    """Some nodes of one graph, as one full batch.

    Args:
        x: Features of all nodes, `[N, F]`.
        graph: Edges between all nodes.
        y: Targets of all nodes: `[N]` integer classes or `[N, O]` values.
        rows: int64 `[R]`, the nodes of this part.
        units: Shift and scale of the targets, each `[O]`; see `GraphBatch`.

    Example:
        >>> graph = Adjacency(torch.tensor([[0, 1], [1, 2]]), 3)
        >>> part = NodeDataset(torch.eye(3), graph, torch.tensor([0, 1, 1]), torch.tensor([2, 0]))
        >>> len(part), len(part.batches(8)), part.batches(8)[0].y.tolist()
        (2, 1, [1, 0])
    """

    def __init__(
        self,
        x: Tensor,
        graph: Adjacency,
        y: Tensor,
        rows: Tensor,
        units: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        for name, value in (("x", x), ("y", y)):
            expected = f"of {graph.num_nodes} rows, one for each node"
            advice = "give features and targets of all nodes; rows says which count"
            require(value.shape[0] == graph.num_nodes, name, value, expected, advice)
        shift, scale = units or (None, None)
        self.batch = GraphBatch(
            x.to(torch.float32), graph, as_target(y[rows]), rows, None, shift=shift, scale=scale
        )

    def __len__(self) -> int:
        return self.batch.y.shape[0]

    def take(self, indices: Tensor) -> GraphBatch:
        """Return the whole graph for any `indices`."""
        return self.batch

    def batches(self, batch_size: int, order: Tensor | None = None) -> Batches[GraphBatch]:
        """Return the whole graph as the only batch; the order does not matter."""
        positive_int("batch_size", batch_size)
        return Batches(1, lambda _: self.batch)


class GraphDataset(Dataset[GraphBatch]):
    """Many graphs in memory; a batch is their union, without edges between them.

    Args:
        x: Concatenated features of all graphs' nodes, `[sum of N, F]`; any dtype, batches are
            converted to float32.
        edges: int64 `[2, sum of E]`, concatenated edges; nodes are numbered from 0 in every graph.
        y: Targets: `[G]` integer classes or `[G, O]` values of the graphs; with `per_node`,
            `[sum of N]` or `[sum of N, O]` of the nodes.
        node_ends: int64 `[G + 1]`: graph `i` has the nodes `node_ends[i]:node_ends[i + 1]`.
        edge_ends: int64 `[G + 1]`, the same for edges.
        per_node: Whether targets belong to nodes.

    Example:
        >>> x, y = torch.arange(5.0)[:, None], torch.tensor([0, 1])
        >>> edges, ends = torch.tensor([[0, 0, 1], [1, 1, 2]]), torch.tensor([0, 1, 3])
        >>> graphs = GraphDataset(x, edges, y, torch.tensor([0, 2, 5]), ends)
        >>> batch = graphs.take(torch.tensor([1, 0]))
        >>> batch.graph.edge_index.tolist(), batch.membership.tolist(), batch.y.tolist()
        ([[0, 1, 3], [1, 2, 4]], [0, 0, 0, 1, 1], [1, 0])
    """

    def __init__(
        self,
        x: Tensor,
        edges: Tensor,
        y: Tensor,
        node_ends: Tensor,
        edge_ends: Tensor,
        *,
        per_node: bool = False,
    ) -> None:
        count = node_ends.shape[0] - 1
        wanted = {
            "x": (x.shape[0], int(node_ends[-1])),
            "y": (y.shape[0], int(node_ends[-1]) if per_node else count),
            "edges": (edges.shape[1], int(edge_ends[-1])),
            "edge_ends": (edge_ends.shape[0], count + 1),
        }
        advice = "let node_ends and edge_ends count all nodes and edges before a graph"
        for name, (size, entries) in wanted.items():
            expected = f"{entries} for these {count} graphs"
            require(size == entries, f"the entries of {name}", size, expected, advice)
        self.x, self.edges, self.y = x, edges, y
        self.node_ends, self.edge_ends = node_ends, edge_ends
        self.per_node = per_node

    def __len__(self) -> int:
        return self.node_ends.shape[0] - 1

    def select(self, indices: Tensor) -> GraphDataset:
        """Return the graphs `indices` (int64 `[B]`), in this order."""
        nodes, node_ends = _pieces(self.node_ends, indices)
        edges, edge_ends = _pieces(self.edge_ends, indices)
        y = self.y[nodes if self.per_node else indices]
        return GraphDataset(
            self.x[nodes], self.edges[:, edges], y, node_ends, edge_ends, per_node=self.per_node
        )

    def take(self, indices: Tensor) -> GraphBatch:
        """Make one batch of the graphs `indices` (int64 `[B]`), in this order."""
        part = self.select(indices)
        nodes = part.x.shape[0]
        first = part.node_ends[:-1].repeat_interleave(part.edge_ends.diff())
        return GraphBatch(
            x=part.x.to(torch.float32),
            graph=Adjacency(part.edges + first, nodes),
            y=as_target(part.y),
            rows=torch.arange(nodes) if self.per_node else None,
            membership=torch.arange(len(part)).repeat_interleave(part.node_ends.diff()),
            num_graphs=len(part),
        )


def _pieces(ends: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Return the concatenated entries of the chosen graphs, and where those of each end."""
    counts = ends[indices + 1] - ends[indices]
    after = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    shift = ends[indices] - after[:-1]
    return torch.arange(int(after[-1])) + shift.repeat_interleave(counts), after
