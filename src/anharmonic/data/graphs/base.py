"""Base classes of tasks on graphs and of tasks on one graph."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from anharmonic.data.base import Readout, Splits, Target, Task, counted
from anharmonic.data.graph_batch import NodeDataset
from anharmonic.data.graphs.edges import reciprocity, to_undirected
from anharmonic.data.parts import Indices
from anharmonic.ops.graph import Adjacency


class GraphTask(Task):
    """A task on one or many graphs, with targets for nodes or graphs.

    Attributes:
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Example:
        >>> from anharmonic.data import task_class
        >>> task_class("cora").kind, issubclass(task_class("cora"), GraphTask)
        ('graph', True)
    """

    kind = "graph"
    data_dir: Path | None = None

    def _extent(self, parts: str) -> list[str]:
        datasets = [part for part in self.splits() if part is not None]
        if isinstance(datasets[0], NodeDataset):
            graph = datasets[0].batch.graph
            edges = counted(graph.num_edges, "directed edge")
            answered = reciprocity(graph.edge_index.numpy())
            how = "each with its reverse" if answered == 1 else f"{answered:.0%} with their reverse"
            return [f"{counted(graph.num_nodes, 'node')} ({parts})", f"{edges} ({how})"]
        nodes = torch.cat([part.node_ends.diff() for part in datasets])
        low, high = int(nodes.min()), int(nodes.max())
        extent = [
            counted(len(nodes), "graph"),
            f"{counted(high, 'node')} each" if low == high else f"{low} to {high} nodes",
            counted(sum(int(part.edge_ends[-1]) for part in datasets), "directed edge"),
        ]
        if self.readout == "node":
            return [*extent, f"{counted(sum(self.sizes.values()), 'node')} ({parts})"]
        return [f"{extent[0]} ({parts})", *extent[1:]]


class NodeData(NamedTuple):
    """The data of a task on one graph, before they become tensors.

    Attributes:
        x: Features, `[N, F]`.
        edges: Edges, `[2, E]`, sources in row 0.
        y: Targets of all nodes: `[N]` integer classes or `[N, O]` values.
        rows: The nodes of every part.
        units: Shift and scale of the targets, each `[O]`; see `GraphBatch`. None for 0 and 1.

    Example:
        >>> NodeData._fields
        ('x', 'edges', 'y', 'rows', 'units')
    """

    x: NDArray[Any]
    edges: NDArray[Any]
    y: NDArray[Any]
    rows: Splits[Indices]
    units: tuple[torch.Tensor, torch.Tensor] | None = None


class NodeTask(GraphTask):
    """A task with targets for the nodes of one graph; every batch is the whole graph.

    Attributes:
        undirected: Whether to add the reverse of every edge.
        normalise_features: Whether to divide every row of features by its sum.

    Example:
        >>> from anharmonic.data import CitationTask
        >>> issubclass(CitationTask, NodeTask)
        True
    """

    target: Target = "class"
    readout: Readout = "node"
    undirected: bool = False
    normalise_features: bool = False

    @abstractmethod
    def _read(self) -> NodeData:
        """Read the data."""

    def _build(self) -> Splits[NodeDataset]:
        x, edges, y, rows, units = self._read()
        count = len(y)
        if self.undirected:
            edges = to_undirected(edges, count)
        edges = np.ascontiguousarray(edges, np.int64)
        x = np.ascontiguousarray(x, np.float32)
        if self.normalise_features:
            total = x.sum(1, keepdims=True, dtype=np.float64)
            x = (x / np.where(total == 0, 1.0, total)).astype(np.float32)
        # All parts share these objects, so that derived data are computed once.
        features = torch.from_numpy(x)
        graph = Adjacency(torch.from_numpy(edges), count)
        targets = torch.from_numpy(y)
        return Splits(
            *(NodeDataset(features, graph, targets, torch.from_numpy(r), units) for r in rows)
        )
