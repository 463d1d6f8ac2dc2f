"""A graph as compressed sparse rows, built once and used in every layer of every step.

Letters: `N` nodes, `E` edges, `F` features. An edge (j, i) sends from its source j to its target i.
"""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic.ops.neighbours import neighbour_sum
from anharmonic.ops.sorted_edges import SortedEdges, check_features, derived


class Adjacency(SortedEdges):
    r"""The edges of a graph, given once in place of ``edge_index``.

    Its products and neighbour sums run row by row and hold no message per edge. What is derived
    (rows by target, rows by source for the backward pass, degrees, the normalisation of GCN) is
    computed when first needed and cached.

    .. math::
        (A x)_i = \sum_{(j, i) \in E} w_{ji}\, x_j

    Args:
        edge_index: Sources (row 0) and targets (row 1) of the edges, in [0, N); an undirected edge
            stands there twice, an edge listed twice counts twice.
        num_nodes: Nodes N >= 0, isolated ones included.
        weight: One weight per edge; None is 1. It gets no gradient.

    Shape:
        edge_index int64 [2, E]; weight [E].

    Raises:
        TypeError: If edge_index is not int64 or num_nodes not an integer.
        ValueError: If a shape is wrong, an index lies outside [0, N), or weight needs a gradient.

    Example:
        >>> import anharmonic as ah, torch
        >>> graph = ah.Adjacency(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
        >>> graph.matmul(torch.tensor([[1.0], [2.0], [4.0]])).flatten()
        tensor([2., 5., 2.])
    """

    @derived
    def with_self_loops(self) -> Adjacency:
        """The graph without weights and with exactly one self-loop at every node, listed last."""
        nodes = torch.arange(self.num_nodes, device=self.device)
        others = self.edge_index[:, self.edge_index[0] != self.edge_index[1]]
        return Adjacency(torch.cat([others, nodes.expand(2, -1)], dim=1), self.num_nodes)

    @derived
    def normalised(self) -> Adjacency:
        r"""The operator of GCN, :math:`\hat D^{-1/2} (A + I) \hat D^{-1/2}` (7.5).

        A node that has a self-loop keeps that one's weight and gets no second; degrees are counted
        at the targets, as PyTorch Geometric does. Where weights of both signs make a degree
        negative, its row and column are 0; there PyTorch Geometric gives NaN.
        """
        source, target = self.edge_index
        weight = torch.ones(self.num_edges) if self.weight is None else self.weight.double()
        weight = weight.to(self.device, torch.float64)
        own = source == target
        loop = torch.ones(self.num_nodes, dtype=torch.float64, device=self.device)
        loop[source[own]] = weight[own]
        looped = self.with_self_loops
        source, target = looped.edge_index
        weight = torch.cat([weight[~own], loop])
        degree = loop.new_zeros(self.num_nodes).index_add_(0, target, weight)
        root = degree.rsqrt().masked_fill_(degree <= 0, 0.0)
        return looped._weighted(root[source] * weight * root[target])

    def matmul(self, x: Tensor) -> Tensor:
        """The weighted sum over in-neighbours.

        Args:
            x: Node features.

        Shape:
            x [N, F]; result [N, F].

        Raises:
            TypeError: If x is no floating-point tensor.
            ValueError: If x has another number of rows or is on another device.
        """
        check_features("x", x, self)
        return neighbour_sum(x, self)

    def mean(self, x: Tensor) -> Tensor:
        """The mean over in-neighbours (weights left out), 0 for a node without any.

        Args:
            x: Node features.

        Shape:
            x [N, F]; result [N, F].

        Raises:
            TypeError: If x is no floating-point tensor.
            ValueError: If x has another number of rows or is on another device.
        """
        return self._averaging.matmul(x)

    @derived
    def _averaging(self) -> Adjacency:
        share = 1.0 / self.in_degree.double()
        return self._weighted(share[self.edge_index[1]])
