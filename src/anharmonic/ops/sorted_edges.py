"""The edges of a graph and what is derived from them once: rows by either end, degrees, weights.

Letters: `N` nodes, `E` edges, `F` features. An edge (j, i) sends from its source j to its target i.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Self, TypeVar

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.ops.edges import check_edges, check_weight, node_count

_Derived = TypeVar("_Derived")
_Graph = TypeVar("_Graph", bound="SortedEdges")


class derived(Generic[_Graph, _Derived]):  # noqa: N801 (it decorates, as cached_property does)
    """A property computed once, as tensors that training may use later, even in inference mode.

    (``functools.cached_property`` has a lock in Python 3.11, which no compiler takes.)

    Args:
        derive: The method that computes it.
    """

    def __init__(self, derive: Callable[[_Graph], _Derived]) -> None:
        self.derive, self.name, self.__doc__ = derive, derive.__name__, derive.__doc__

    def __get__(self, graph: _Graph, owner: type) -> _Derived:
        if graph is None:
            return self
        if torch.compiler.is_compiling():
            value = self.derive(graph)
        else:
            with torch.inference_mode(False):
                value = self.derive(graph)
        graph.__dict__[self.name] = value
        return value


class Rows(NamedTuple):
    """The edges of a graph sorted by one of their ends.

    Attributes:
        start: int64 [N + 1]; the edges of node i are `start[i]` to `start[i + 1] - 1`.
        other: int64 [E], the other end of every edge.
        edge: int64 [E], the edge's place in `edge_index`.
    """

    start: Tensor
    other: Tensor
    edge: Tensor


class SortedEdges:
    """The edges of a graph, sorted by target and by source when first needed.

    Args:
        edge_index: Sources (row 0) and targets (row 1) of the edges, in [0, N).
        num_nodes: Nodes N >= 0.
        weight: One weight per edge; None is 1.

    Shape:
        edge_index int64 [2, E]; weight [E].
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, weight: Tensor | None = None) -> None:
        self._num_nodes = node_count(num_nodes)
        # A copy: what is derived from it must not change with the caller's tensor.
        self._edge_index = check_edges(edge_index, self._num_nodes).clone()
        if weight is not None:
            check_weight(weight, edge_index)
        self._weight = None if weight is None else weight.clone()
        self._sparse: dict[torch.dtype, Tensor] = {}
        self._row_weights: dict[torch.dtype, tuple[Tensor, Tensor]] = {}

    def __repr__(self) -> str:
        weighted = ", weighted" if self.weight is not None else ""
        return f"{type(self).__name__}({self.num_nodes} nodes, {self.num_edges} edges{weighted})"

    @property
    def num_nodes(self) -> int:
        """Number of nodes N. Graphs do not change: make another one."""
        return self._num_nodes

    @property
    def edge_index(self) -> Tensor:
        """Sources and targets of the edges, int64 [2, E]; not to be written into."""
        return self._edge_index

    @property
    def weight(self) -> Tensor | None:
        """One weight per edge [E], or None; not to be written into."""
        return self._weight

    @property
    def num_edges(self) -> int:
        """Number of directed edges E."""
        return self.edge_index.shape[1]

    @property
    def device(self) -> torch.device:
        """Where the edges are."""
        return self.edge_index.device

    def to(self, device: torch.device | str) -> Self:
        """The same graph on a device; itself if it is there already."""
        if self.edge_index.to(device) is self.edge_index:
            return self
        weight = None if self.weight is None else self.weight.to(device)
        return type(self)(self.edge_index.to(device), self.num_nodes, weight)

    @derived
    def by_target(self) -> Rows:
        """The edges sorted by their target."""
        return self._sorted(1)

    @derived
    def by_source(self) -> Rows:
        """The edges sorted by their source."""
        return self._sorted(0)

    @derived
    def in_degree(self) -> Tensor:
        """Number of edges that end at every node, int64 [N]."""
        return self.by_target.start.diff()

    @derived
    def transposed(self) -> Self:
        """The graph with every edge turned round."""
        turned = type(self)(self.edge_index.flip(0), self.num_nodes, self.weight)
        turned.__dict__["transposed"] = self
        turned.__dict__["by_target"], turned.__dict__["by_source"] = self.by_source, self.by_target
        return turned

    def _weighted(self, weight: Tensor) -> Self:
        """The same edges with weights; they are not sorted again."""
        graph = type(self)(self.edge_index, self.num_nodes, weight)
        for name in ("by_target", "by_source"):
            graph.__dict__[name] = getattr(self, name)
        return graph

    def _sorted(self, end: int) -> Rows:
        if not torch.compiler.is_compiling():
            # The C library trusts these rows, and the tensor can be changed from outside.
            check_edges(self.edge_index, self.num_nodes)
        ends = self.edge_index[end]
        edge = torch.argsort(ends, stable=True)
        start = torch.zeros(self.num_nodes + 1, dtype=torch.int64, device=self.device)
        # (The length of bincount's result is not known before it runs, so no compiler takes it.)
        start[1:].index_add_(0, ends, torch.ones_like(ends))
        return Rows(start.cumsum(0), self.edge_index[1 - end][edge], edge)

    def row_weights(self, dtype: torch.dtype) -> tuple[Tensor | None, Tensor | None]:
        """The weights in the order of ``by_target`` and of ``by_source``; None if all are 1.

        Args:
            dtype: Their type.
        """
        if self.weight is None:
            return None, None
        cached = self._row_weights.get(dtype)
        if cached is None:
            with torch.inference_mode(False):
                weight = self.weight.to(dtype)
                cached = weight[self.by_target.edge], weight[self.by_source.edge]
            self._row_weights[dtype] = cached
        return cached

    def sparse(self, dtype: torch.dtype) -> Tensor:
        """The operator of ``matmul`` as a sparse CSR tensor [N, N], row i the edges that end in i.

        Args:
            dtype: Type of its values.
        """
        cached = self._sparse.get(dtype)
        if cached is None:
            start, other, edge = self.by_target
            weight = torch.ones(self.num_edges, device=self.device)
            weight = weight if self.weight is None else self.weight[edge]
            with warnings.catch_warnings(), torch.inference_mode(False):
                # CSR tensors say once that they are in beta; products and values are what we use.
                warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
                cached = torch.sparse_csr_tensor(
                    start,
                    other,
                    weight.to(dtype),
                    (self.num_nodes, self.num_nodes),
                    check_invariants=False,
                )
            self._sparse[dtype] = cached
        return cached


def check_features(name: str, x: Any, graph: SortedEdges) -> None:
    """Checks the features of a graph's nodes.

    Args:
        name: Of the argument, as the user wrote it.
        x: Should be floating point, [N, F], and where the graph is.
        graph: The graph.

    Raises:
        TypeError: If it is no floating-point tensor.
        ValueError: If its shape is wrong or it is on another device.

    Example:
        >>> check_features("x", torch.ones(2, 3), SortedEdges(torch.tensor([[0], [1]]), 2))
    """
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise TypeError(
            _checks.message(
                f"{name} must be a floating-point tensor [N={graph.num_nodes}, F]",
                _checks.described(x),
                f"convert it, e.g. with {name}.float()",
            )
        )
    # (Built only where they are needed: a compiler takes numbers in a message for constants.)
    if x.dim() != 2 or x.shape[0] != graph.num_nodes:
        expected, advice = f"a tensor [N={graph.num_nodes}, F]", "give one row per node of this graph"
        _checks.require(False, name, x, expected, advice)
    if x.device != graph.device:
        raise ValueError(
            _checks.message(
                f"{name} must be on the graph's device {graph.device}",
                f"{name} on {x.device}",
                f"call graph.to({str(x.device)!r}) once",
            )
        )
