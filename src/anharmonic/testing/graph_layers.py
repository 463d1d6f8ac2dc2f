"""Contract of graph layers: node order is irrelevant and graphs in a batch are independent."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from anharmonic.ops.graph import Adjacency
from anharmonic.testing.suite import (
    Check,
    Suite,
    expect,
    expect_close,
    expect_gradients,
    expect_refusal,
    pickled,
    run_checks,
)

# Directed and undirected edges, a self-loop, a duplicate; node 6 is isolated.
EDGES = torch.tensor([[0, 1, 1, 2, 3, 3, 4, 4, 5, 0], [1, 0, 2, 1, 3, 4, 5, 5, 2, 5]])
NODES = 7


def graph_layer_checks(make: Callable[[], nn.Module], width: int) -> Iterator[tuple[str, Check]]:
    """Return the name and callable of each check that every graph layer must pass.

    Args:
        make: Creates the layer. The layer is called with node features [N, m] and an
            ``edge_index``, a sparse tensor or an ``Adjacency``.
        width: The number m of features per node.

    Example:
        >>> from anharmonic import GraphCON
        >>> from anharmonic.nn import AttentionCoupling
        >>> names = dict(graph_layer_checks(lambda: GraphCON(AttentionCoupling(4), 3), width=4))
        >>> sorted(names)[:2]
        ['adjacency_is_edge_index', 'bad_input_is_refused']
    """
    return _check.of(_Subject(make, width))


def check_graph_layer(make: Callable[[], nn.Module], width: int) -> None:
    """Run every check of ``graph_layer_checks``.

    Args:
        make: Creates the layer.
        width: The number m of features per node.

    Raises:
        AssertionError: If a check failed; the message lists expected and received values.

    Example:
        A custom coupling, the mean over neighbours, wrapped by ``GraphCON``, which checks its
        input:

        >>> import torch
        >>> from anharmonic import GraphCON
        >>> class Mean(torch.nn.Module):
        ...     def __init__(self, width):
        ...         super().__init__()
        ...         self.linear = torch.nn.Linear(width, width)
        ...
        ...     def forward(self, x, edge_index):
        ...         source, target = edge_index
        ...         total = torch.zeros_like(x).index_add(0, target, x[source])
        ...         count = target.bincount(minlength=len(x)).clamp(min=1)
        ...         return self.linear(total / count[:, None])
        >>> check_graph_layer(lambda: GraphCON(Mean(4), num_layers=3), width=4)
    """
    run_checks(graph_layer_checks(make, width))


class _Subject:
    """The layer under test, always created with the same weights."""

    def __init__(self, make: Callable[[], nn.Module], width: int) -> None:
        self.make, self.width = make, width

    def layer(self) -> Any:
        torch.manual_seed(0)
        return self.make().double()

    def features(self, nodes: int = NODES, seed: int = 0) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(nodes, self.width, dtype=torch.float64, generator=generator)


_check = Suite()


def _close(what: str, got: Any, expected: Any) -> None:
    # Allows for another order of the sums over neighbours, in float64 with a few layers.
    expect_close(what, got, expected, rtol=1e-10, atol=1e-11)


def _gradients(layer: nn.Module, x: Tensor, graph: Any) -> tuple[Tensor, list[Tensor]]:
    """Return the output and the gradients of the input and of all parameters."""
    x = x.clone().requires_grad_()
    output = layer(x, graph)
    leaves = [x, *layer.parameters()]
    found = torch.autograd.grad(output.square().sum(), leaves, allow_unused=True)
    return output, [gradient for gradient in found if gradient is not None]


@_check()
def renumbered_nodes_give_renumbered_output(subject: _Subject) -> None:
    """The numbers of the nodes do not matter."""
    layer, x = subject.layer(), subject.features()
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(1))
    renumbered = layer(x[order], order.argsort()[EDGES])
    _close("the output of renumbered nodes", renumbered, layer(x, EDGES)[order])


@_check()
def two_graphs_in_one_are_two_graphs(subject: _Subject) -> None:
    """Graphs without an edge between them do not see each other."""
    layer, a, b = subject.layer(), subject.features(), subject.features(5, seed=1)
    other = torch.tensor([[0, 1, 2, 4], [1, 2, 0, 3]])
    both = layer(torch.cat([a, b]), torch.cat([EDGES, other + NODES], dim=1))
    _close("two graphs in one", both, torch.cat([layer(a, EDGES), layer(b, other)]))


@_check()
def adjacency_is_edge_index(subject: _Subject) -> None:
    """An ``Adjacency`` gives the output and the gradients of its ``edge_index``."""
    layer, x = subject.layer(), subject.features()
    output, gradients = _gradients(layer, x, EDGES)
    other, others = _gradients(layer, x, Adjacency(EDGES, NODES))
    _close("the output on an Adjacency", other, output)
    expect(len(gradients) == len(others), f"{len(gradients)} gradients", len(others))
    for gradient, expected in zip(others, gradients, strict=True):
        scale = expected.abs().max().clamp(min=1.0)
        _close("a gradient on an Adjacency", gradient / scale, expected / scale)


@_check()
def called_by_name_and_with_int32(subject: _Subject) -> None:
    """Arguments are called x and edge_index, as in PyTorch Geometric; edges may be int32."""
    layer, x = subject.layer(), subject.features()
    expected = layer(x, EDGES)
    _close("the output of a call by name", layer(x=x, edge_index=EDGES), expected)
    _close("the output of edges in int32", layer(x, EDGES.int()), expected)


@_check()
def no_edges_and_one_node(subject: _Subject) -> None:
    """A graph without edges, and one of a single node, give finite output of the same shape."""
    layer, nothing = subject.layer(), torch.zeros(2, 0, dtype=torch.int64)
    for nodes in (3, 1):
        output = layer(subject.features(nodes), nothing)
        finite = output.shape[0] == nodes and bool(output.isfinite().all())
        expect(finite, f"finite output for {nodes} nodes", output)


@_check()
def no_nodes(subject: _Subject) -> None:
    """A graph without nodes gives an output without rows."""
    nothing = torch.zeros(2, 0, dtype=torch.int64)
    rows = subject.layer()(subject.features(0), nothing).shape[0]
    expect(rows == 0, "no rows", rows)


@_check()
def gradients_are_finite_where_features_tie(subject: _Subject) -> None:
    """Gradients are finite where all nodes are alike, as where differences have a power."""
    alike = torch.ones(NODES, subject.width, dtype=torch.float64)
    _, gradients = _gradients(subject.layer(), alike, EDGES)
    finite = all(bool(gradient.isfinite().all()) for gradient in gradients)
    expect(finite, "finite gradients", gradients)


@_check()
def gradients_are_right(subject: _Subject) -> None:
    """The gradient with respect to the features is that of finite differences."""
    layer, x = subject.layer(), subject.features().requires_grad_()
    expect_gradients(lambda x: layer(x, EDGES), x, atol=1e-6)


@_check()
def float32_stays_float32(subject: _Subject) -> None:
    """In float32 the output is float32 and near that of float64."""
    layer, x = subject.layer(), subject.features()
    exact = layer(x, EDGES)
    output = layer.float()(x.float(), EDGES)
    expect(output.dtype == torch.float32, "float32", output.dtype)
    expect_close("float32 and float64", output.double(), exact, rtol=1e-4, atol=1e-4)


@_check()
def copies_and_pickles(subject: _Subject) -> None:
    """A copy, and a layer that was pickled, give the same numbers."""
    layer, x = subject.layer(), subject.features()
    output = layer(x, EDGES)
    for other in (copy.deepcopy(layer), pickled(layer)):
        _close("the output of a copy", other(x, EDGES), output)


@_check()
def reset_parameters_draws_anew(subject: _Subject) -> None:
    """``reset_parameters`` draws every weight matrix anew."""
    layer = subject.layer()
    before = {n: w.clone() for n, w in layer.named_parameters() if w.dim() == 2}
    layer.reset_parameters()
    same = [n for n, w in layer.named_parameters() if n in before and torch.equal(w, before[n])]
    expect(not same, "other values after reset_parameters", f"the same for {same}")


@_check()
def bad_input_is_refused(subject: _Subject) -> None:
    """Features and edges that do not fit are refused; the message names what is wrong."""
    layer, x, nothing = subject.layer(), subject.features(3), torch.zeros(2, 0, dtype=torch.int64)
    for features, graph, error, named in (
        (x, torch.tensor([[0, 3], [1, 2]]), ValueError, "3"),
        (x, torch.tensor([[0, -1], [1, 2]]), ValueError, "-1"),
        (x, torch.rand(2, 2), TypeError, "edge_index"),
        (x, torch.zeros(5, 2).long(), ValueError, "[2, E]"),
        (x, "edges", TypeError, "edge_index"),
        (x[0], nothing, ValueError, "x"),
        (torch.zeros(3, subject.width).long(), nothing, TypeError, "x.float()"),
        (x * float("nan"), nothing, ValueError, "NaN"),
        ((x, x), nothing, TypeError, "bipartite"),
        ({"paper": x}, {}, TypeError, "heterogeneous"),
        (x, Adjacency(nothing, 4), ValueError, "3 nodes"),
        (x, torch.eye(4).to_sparse(), ValueError, "3 nodes"),
    ):
        expect_refusal(
            partial(layer, features, graph),
            f"{named} in {features}, {graph}", named, error=error,
        )  # fmt: skip
