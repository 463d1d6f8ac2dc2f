"""The gate of Gradient Gating (G²), (8.4): differences between a node and its neighbours.

Letters: `N` nodes, `F` features (channels), `E` edges.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic._tensors import sums_of_rows
from anharmonic.ops.backend import choose
from anharmonic.ops.graph import Adjacency, check_features, graph_call, is_plain
from anharmonic.ops.native import dense, invoke, operator, pointer, refuse, refuse_second_derivative

AGGREGATIONS = ("sum", "mean", "max")
NEIGHBOURS = ("in", "out")


def gradient_gate(
    h: Tensor,
    graph: Adjacency,
    *,
    p: float = 2.0,
    aggr: str = "sum",
    neighbours: str = "in",
    single_rate: bool = False,
    backend: str = "auto",
) -> Tensor:
    r"""Return the rates of Gradient Gating, (8.4); with ``single_rate`` (8.26).

    .. math::
        \tau_{ik} = \tanh\Big(\sum_{j \in N_i} |h_{jk} - h_{ik}|^p\Big)
        \qquad\text{or}\qquad
        \tau_i = \tanh\Big(\sum_{j \in N_i} \sum_k |h_{jk} - h_{ik}|^p\Big)

    An edge listed twice counts twice; a self-loop adds 0 (and counts in a mean). A node without
    neighbours has rate 0. Edge weights are ignored. The derivative of :math:`|d|^p` at d = 0 is set
    to 0 for every p, so that equal neighbours never give NaN.

    Args:
        h: Node features.
        graph: The edges.
        p: Exponent, > 0; the authors tune it in [1, 5].
        aggr: "sum", "mean" or "max" over the edges of a node.
        neighbours: "in" for the sources of edges that end in i, "out" for the targets of edges that
            begin in i.
        single_rate: Whether to sum over channels first, for one rate per node.
        backend: ``"auto"`` or the name of one of ``available_backends("gradient_gate")``. Only the
            reference computes "max" and second derivatives.

    Shape:
        h [N, F]; result [N, F], or [N, 1] with ``single_rate``.

    Raises:
        TypeError: If graph is not an `Adjacency`, h not a floating-point tensor or p not a number.
        ValueError: If a shape, name or number does not fit, or the backend cannot run this.

    Note:
        The paper describes the single rate by "node-wise p-norms". We use the p-th power of the
        norm, which is the sum over channels of the multi-rate terms.

    Example:
        >>> import anharmonic as ah, torch
        >>> graph = ah.Adjacency(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 4)
        >>> h = torch.tensor([[0.0, 1.0], [0.5, 1.0], [0.5, 0.0], [9.0, 9.0]])
        >>> gradient_gate(h, graph)
        tensor([[0.2449, 0.0000],
                [0.2449, 0.7616],
                [0.0000, 0.7616],
                [0.0000, 0.0000]])
    """
    _checks.require(
        isinstance(graph, Adjacency), "graph", graph, "an anharmonic.Adjacency",
        "build it once with Adjacency(edge_index, num_nodes)", TypeError,
    )  # fmt: skip
    check_features("h", h, graph)
    if not torch.compiler.is_compiling():  # a compiler may use a symbol instead of the number
        p = _checks.number("p", p, low=0.0, low_open=True)
    _checks.choice("aggr", aggr, AGGREGATIONS)
    _checks.choice("neighbours", neighbours, NEIGHBOURS)
    _checks.boolean("single_rate", single_rate)
    reference_only = "aggr='max', which only the reference has" if aggr == "max" else None
    chosen = choose("gradient_gate", backend, [h], reference_only=reference_only)
    sums = _native if chosen == "native" else _reference
    return torch.tanh(sums(h, graph, p, aggr, neighbours == "out", single_rate))


def _reference(
    h: Tensor, graph: Adjacency, p: float, aggr: str, outgoing: bool, single_rate: bool
) -> Tensor:
    """Return the argument of tanh, computed per edge in plain PyTorch."""
    node, other = graph.edge_index if outgoing else graph.edge_index.flip(0)
    d = h[other] - h[node]
    if p > 2:  # where |d|^(p-1) overflows, tanh is flat, and 0 * inf would be NaN
        limit = 0.99 * (torch.finfo(d.dtype).max / p) ** (1 / (p - 1))
        d = d.clamp(-limit, limit)
    terms = power(d, p)
    if single_rate:
        terms = terms.sum(1, keepdim=True)
    if aggr == "max":
        zero = terms.new_zeros(h.shape[0], terms.shape[1])  # autocast on GPUs widens powers
        return zero.scatter_reduce(0, node[:, None].expand_as(terms), terms, "amax")
    total = sums_of_rows(terms, node, len(h))
    if aggr == "mean":
        degree = (graph.by_source if outgoing else graph.by_target).start.diff()
        total = total / degree.clamp(min=1).to(total.dtype)[:, None]
    return total.to(terms.dtype)


def power(d: Tensor, p: float) -> Tensor:
    """Return |d|^p for p > 0, with all derivatives 0 at d = 0 unless p is even.

    Example:
        >>> import torch
        >>> d = torch.tensor([-4.0, 0.0], requires_grad=True)
        >>> power(d, 0.5).detach(), torch.autograd.grad(power(d, 0.5).sum(), d)[0]
        (tensor([2., 0.]), tensor([-0.2500,  0.0000]))
    """
    if p % 2 == 0:
        return d.pow(p)
    # Avoid infinities at d = 0, which become NaN when multiplied by 0 in the unused branch.
    same = d == 0
    return d.masked_fill(same, 1.0).abs().pow(p).masked_fill(same, 0.0)


def _native(
    h: Tensor, graph: Adjacency, p: float, aggr: str, outgoing: bool, single_rate: bool
) -> Tensor:
    """Return the argument of tanh from one call of csrc/gate.h; aggr "sum" or "mean"."""
    rows, mean = (graph.by_source if outgoing else graph.by_target), aggr == "mean"
    if is_plain(h):
        return _gate(h, rows.start, rows.other, None, None, p, mean, single_rate)
    back = graph.by_target if outgoing else graph.by_source
    arguments = (rows.start, rows.other, back.start, back.other, p, mean, single_rate)
    return cast("Tensor", _gate_sum(h, *arguments))


def _gate(
    h: Tensor,
    start: Tensor,
    other: Tensor,
    back_start: Tensor | None,
    back_other: Tensor | None,
    p: float,
    mean: bool,
    single: bool,
) -> Tensor:
    h = dense(h)
    result = _gate_fake(h, start, other, back_start, back_other, p, mean, single)
    invoke("an_gate", graph_call(h, start, other, result, power=p, mean=mean, single=single))
    return result


def _gate_fake(h: Tensor, *rest: Any) -> Tensor:
    single = rest[-1]
    return h.new_empty((h.shape[0], 1 if single else h.shape[1]))


def _gate_backward(
    grad: Tensor,
    h: Tensor,
    start: Tensor,
    other: Tensor,
    back_start: Tensor,
    back_other: Tensor,
    p: float,
    mean: bool,
    single: bool,
) -> Tensor:
    grad, h = dense(grad), dense(h)
    result = h.new_empty(h.shape)
    call = graph_call(h, start, other, result, power=p, mean=mean, single=single)
    call.back_start, call.back_other = back_start.data_ptr(), pointer(back_other)
    call.grad = pointer(grad)
    invoke("an_gate_backward", call)
    return result


def _gate_backward_fake(grad: Tensor, h: Tensor, *rest: Any) -> Tensor:
    return h.new_empty(h.shape)


def _set_up(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:5])
    ctx.settings = inputs[5:]


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    refuse_second_derivative(ctx)
    return (_gate_sum_backward(grad, *ctx.saved_tensors, *ctx.settings), *[None] * 7)


_gate_sum = operator("gate_sum", _gate, _gate_fake, _differentiate, _set_up)
_gate_sum_backward = operator("gate_sum_backward", _gate_backward, _gate_backward_fake, refuse)
