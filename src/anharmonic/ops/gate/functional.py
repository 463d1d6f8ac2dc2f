"""The gate of Gradient Gating (G²), (8.4): how far a node's features are from its neighbours'.

Letters: `N` nodes, `F` features (channels), `E` edges; h are the features that the rates are taken
from, τ the rates, s their argument before tanh.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.ops.adjacency import Adjacency
from anharmonic.ops.backend import choose
from anharmonic.ops.gate.native import gate_native
from anharmonic.ops.gate.reference import AGGREGATIONS, gate_reference
from anharmonic.ops.sorted_edges import check_features

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
    r"""The rates of Gradient Gating, (8.4); with ``single_rate`` (8.26).

    .. math::
        \tau_{ik} = \tanh\Big(\sum_{j \in N_i} |h_{jk} - h_{ik}|^p\Big)
        \qquad\text{or}\qquad
        \tau_i = \tanh\Big(\sum_{j \in N_i} \sum_k |h_{jk} - h_{ik}|^p\Big)

    An edge that is listed twice counts twice; a self-loop adds 0 (and counts in a mean). A node
    without neighbours has the rate 0. Weights of edges are left out. The derivative of
    :math:`|d|^p` is taken as 0 at d = 0 for every p, so that equal neighbours never give NaN.

    Args:
        h: Node features.
        graph: The edges.
        p: Exponent, > 0; tuned in [1, 5] by the authors.
        aggr: "sum", "mean" or "max" over the edges of a node.
        neighbours: "in": N_i are the sources of the edges that end in i; "out": the targets of
            those that begin there.
        single_rate: Whether the channels of an edge are summed first, to one rate per node.
        backend: ``"auto"`` or the name of one of ``available_backends("gradient_gate")``; "max"
            has the reference only, and so have second derivatives.

    Shape:
        h [N, F]; result [N, F], or [N, 1] with ``single_rate``.

    Raises:
        TypeError: If graph is no `Adjacency`, h no floating-point tensor or p no number.
        ValueError: If a shape, name or number does not fit, or the backend cannot run this.

    Note:
        The paper says "node-wise p-norms" for the single rate; we take the p-th power of the
        norm, which is the sum over channels of what the multi-rate form sums.

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
    if not torch.compiler.is_compiling():  # a compiler may have no number there, but a symbol
        p = _checks.number("p", p, low=0.0, low_open=True)
    _checks.choice("aggr", aggr, AGGREGATIONS)
    _checks.choice("neighbours", neighbours, NEIGHBOURS)
    _checks.boolean("single_rate", single_rate)
    unfit = "aggr='max', which only the reference has" if aggr == "max" else None
    chosen = choose("gradient_gate", backend, [h], reference_only=unfit)
    gate: Callable[..., Tensor] = gate_native if chosen == "native" else gate_reference
    s = gate(h, graph, p=p, aggr=aggr, outgoing=neighbours == "out", single_rate=single_rate)
    return torch.tanh(s)
