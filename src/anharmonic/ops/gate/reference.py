"""The gate's sums edge by edge, to check by eye."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from anharmonic.ops.adjacency import Adjacency

AGGREGATIONS = ("sum", "mean", "max")


def gate_reference(
    h: Tensor, graph: Adjacency, *, p: float, aggr: str, outgoing: bool, single_rate: bool
) -> Tensor:
    """The chain of ``ops.gradient_gate`` in plain PyTorch, before its tanh."""
    node, other = graph.edge_index if outgoing else graph.edge_index.flip(0)
    terms = power(h[other] - h[node], p)
    if single_rate:
        terms = terms.sum(1, keepdim=True)
    zero = h.new_zeros(h.shape[0], terms.shape[1])
    if aggr == "max":
        return zero.scatter_reduce(0, node[:, None].expand_as(terms), terms, "amax")
    total = zero.index_add(0, node, terms)
    if aggr == "mean":
        degree = (graph.by_source if outgoing else graph.by_target).start.diff()
        total = total / degree.clamp(min=1).to(h.dtype)[:, None]
    return total


def power(d: Tensor, p: float) -> Tensor:
    """|d|^p, with all derivatives 0 at d = 0 where p is not even.

    Args:
        d: Differences.
        p: Exponent, > 0.

    Example:
        >>> import torch
        >>> d = torch.tensor([-4.0, 0.0], requires_grad=True)
        >>> power(d, 0.5).detach(), torch.autograd.grad(power(d, 0.5).sum(), d)[0]
        (tensor([2., 0.]), tensor([-0.2500,  0.0000]))
    """
    if p % 2 == 0:
        return d.pow(p)
    # No infinity may arise where d = 0: times the zero of the branch not taken it would be NaN.
    same = d == 0
    return d.masked_fill(same, 1.0).abs().pow(p).masked_fill(same, 0.0)
