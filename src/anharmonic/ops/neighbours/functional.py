"""The weighted sum over in-neighbours, which most graph convolutions are but for a linear map."""

from __future__ import annotations

from torch import Tensor

from anharmonic.ops.backend import choose
from anharmonic.ops.neighbours.native import neighbour_sum_native
from anharmonic.ops.neighbours.reference import neighbour_sum_reference
from anharmonic.ops.sorted_edges import SortedEdges


def neighbour_sum(x: Tensor, graph: SortedEdges, *, backend: str = "auto") -> Tensor:
    r"""Sums features over in-neighbours; `Adjacency.matmul` checks its argument and calls it.

    .. math::
        s_i = \sum_{(j, i) \in E} w_{ji}\, x_j

    Args:
        x: Node features, floating point.
        graph: The edges, with their weights.
        backend: ``"auto"`` or the name of one of ``available_backends("neighbour_sum")``.

    Shape:
        x [N, F]; result [N, F].

    Raises:
        ValueError: If the backend is unknown or cannot run this input.

    Example:
        >>> import anharmonic as ah, torch
        >>> graph = ah.Adjacency(torch.tensor([[0, 1], [2, 2]]), 3)
        >>> neighbour_sum(torch.tensor([[1.0], [2.0], [4.0]]), graph).flatten()
        tensor([0., 0., 3.])
    """
    if choose("neighbour_sum", backend, [x]) == "native":
        return neighbour_sum_native(x, graph)
    return neighbour_sum_reference(x, graph)
