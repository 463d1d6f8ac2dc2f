"""What GraphCON and Gradient Gating share: one coupling or many, checks, and the walk over layers.

Letters: `N` nodes, `m` features, `L` layers, `E` edges.
"""

from __future__ import annotations

import ctypes
import functools
import math
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from anharmonic import _checks
from anharmonic.nn.graph.convolve import convolve, redraw
from anharmonic.ops.adjacency import Adjacency
from anharmonic.ops.edges import check_edges, edges_of

Activation = Callable[[Tensor], Tensor]

_ACTIVATIONS: dict[str, Activation] = {
    "relu": torch.relu,
    "elu": functional.elu,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "identity": lambda x: x,
}


class Call(NamedTuple):
    """What goes to the convolutions beside the features; ``rows``: the edges for a gate."""

    graph: Any
    args: tuple[Any, ...]
    options: dict[str, Any]
    rows: Any = None


class DeepGraphLayer(nn.Module):
    """A stack of L steps around one shared convolution, or one per step.

    Args:
        conv: The convolution, or one per step.
        num_layers: Steps L >= 1.
        checkpoint: Whether the backward pass computes the states between every sqrt(L)-th anew.

    Raises:
        TypeError: If an argument is of the wrong kind.
        ValueError: If the number of convolutions is neither 1 nor L.
    """

    def __init__(
        self, conv: nn.Module | Iterable[nn.Module], num_layers: int, checkpoint: bool
    ) -> None:
        super().__init__()
        self.num_layers = _checks.positive_int("num_layers", num_layers)
        self.checkpoint = _checks.boolean("checkpoint", checkpoint)
        self.convs = modules("conv", conv, self.num_layers)
        self._last: tuple[Any, int, int, Adjacency] | None = None

    def reset_parameters(self) -> None:
        """Draws the convolutions' weights anew."""
        for convs in self.children():
            redraw(convs)

    def _step(self, n: int, states: tuple[Tensor, ...], call: Call) -> tuple[Tensor, ...]:
        """One layer: the states before it to those after it; the first is the features."""
        raise NotImplementedError

    def _walk(
        self, states: tuple[Tensor, ...], call: Call, trace: list[tuple[Tensor, ...]] | None
    ) -> tuple[Tensor, ...]:
        """All layers; every layer's states go to ``trace``, if there is one."""
        check_edge_options(call)
        if trace is None and self.checkpoint and torch.is_grad_enabled():
            return self._checkpointed(states, call)
        for n in range(self.num_layers):
            states = self._step(n, states, call)
            if trace is not None:
                trace.append(states)
        return states

    def _checkpointed(self, states: tuple[Tensor, ...], call: Call) -> tuple[Tensor, ...]:
        from torch.utils.checkpoint import checkpoint

        def run(first: int, last: int, *states: Tensor) -> tuple[Tensor, ...]:
            give_back_freed()
            for n in range(first, last):
                states = self._step(n, states, call)
            return states

        size = math.ceil(math.sqrt(self.num_layers))
        for first in range(0, self.num_layers, size):
            last = min(first + size, self.num_layers)
            states = checkpoint(run, first, last, *states, use_reentrant=False)
        return states

    def _convolve(self, convs: nn.ModuleList, n: int, x: Tensor, call: Call) -> Tensor:
        conv = convs[n if len(convs) > 1 else 0]
        name = "conv" if convs is self.convs else "gate_conv"
        wide = getattr(conv, "in_channels", x.shape[1])
        if isinstance(wide, int) and wide > 0 and wide != x.shape[1]:
            raise ValueError(
                _checks.message(
                    f"x must have the {wide} features per node that {name} takes",
                    f"x {list(x.shape)}",
                    "map the features to that width first, e.g. with torch.nn.Linear",
                )
            )
        result = convolve(conv, x, call.graph, *call.args, **call.options)
        if not isinstance(result, Tensor) or result.shape != x.shape:
            raise ValueError(
                _checks.message(
                    f"{name} must keep the shape of its input, {list(x.shape)}",
                    f"{_checks.described(result)} from {conv}",
                    "give it as many output as input channels (attention heads: concat=False, or "
                    "channels / heads each)",
                )
            )
        return result

    def _adjacency(self, graph: Any, num_nodes: int) -> Adjacency:
        """The edges in compressed rows; those of the last call are kept."""
        if isinstance(graph, Adjacency):
            return graph
        # No version counter tells of a change in inference mode, nor inside of a compiled graph.
        keep = not (_checks.watched() or graph.is_inference())
        if keep and self._last is not None:
            seen, version, nodes, kept = self._last
            if seen() is graph and version == graph._version and nodes == num_nodes:
                return kept
        edges = edges_of(graph)
        if type(edges) is not Tensor:  # EdgeIndex, whose indexing checks and keeps more than wanted
            edges = edges.as_subclass(Tensor)
        kept = Adjacency(edges, num_nodes)
        if keep:
            self._last = (weakref.ref(graph), graph._version, num_nodes, kept)
        return kept

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}  # a weak reference can neither be copied nor pickled


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """The C library's ``malloc_trim``; None where it has none (macOS, Windows, musl)."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
    return found


def give_back_freed() -> None:
    """Gives memory that was freed back to the system, where the C library can.

    glibc before 2.38 hardly ever reuses an aligned block, such as a tensor's, that was freed:
    without this a checkpoint would take more memory than it saves.

    Example:
        >>> give_back_freed()
    """
    trim = _trim()
    if trim is not None:
        trim(0)


def modules(name: str, given: Any, num_layers: int) -> nn.ModuleList:
    """One convolution for all layers or one for each, as a list.

    Args:
        name: The argument's name.
        given: A module or several.
        num_layers: Layers L.

    Raises:
        TypeError: If it is no module.
        ValueError: If there are neither 1 nor L.

    Example:
        >>> len(modules("conv", nn.Linear(2, 2), 5))
        1
    """
    several = not isinstance(given, nn.Module) or isinstance(given, nn.ModuleList)
    found = list(given) if several and isinstance(given, Iterable) else [given]
    for module in found:
        if not isinstance(module, nn.Module):
            raise TypeError(
                _checks.message(
                    f"{name} must be a torch.nn.Module or a list of them",
                    f"{module!r} ({type(module).__name__})",
                    "pass a convolution, such as torch_geometric.nn.GCNConv(64, 64)",
                )
            )
    if several and len(found) != num_layers:
        raise ValueError(
            _checks.message(
                f"a list of convolutions must have one for each of the {num_layers} layers",
                f"{len(found)} in {name}",
                "pass a single module to share it",
            )
        )
    return nn.ModuleList(found)


def activation_function(name: str, given: str | Activation) -> Activation:
    """An activation by name, or the callable itself.

    Args:
        name: The argument's name.
        given: A name or a function of one tensor.

    Raises:
        TypeError: If it is neither a name nor a function; a class is none.
        ValueError: If the name is unknown.

    Example:
        >>> activation_function("activation", "relu")(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    if isinstance(given, str):
        return _ACTIVATIONS[_checks.choice(name, given, _ACTIVATIONS)]
    if not callable(given) or isinstance(given, type):
        raise TypeError(
            _checks.message(
                f"{name} must be one of {', '.join(map(repr, _ACTIVATIONS))}, or a function",
                repr(given),
                "pass an instance, such as torch.nn.ReLU()" if callable(given) else "pass a name",
            )
        )
    return given


def check_input(x: Any, graph: Any) -> None:
    """Checks node features and edges.

    Args:
        x: Should be floating point [N, m].
        graph: Should be ``edge_index`` [2, E], a sparse [N, N] tensor or an ``Adjacency``.

    Raises:
        TypeError: If one has the wrong type, as those of bipartite and heterogeneous graphs have.
        ValueError: If shapes do not fit, an index is out of range, or a feature is NaN.

    Example:
        >>> check_input(torch.zeros(2, 3), torch.tensor([[0], [1]]))
    """
    if isinstance(x, (tuple, list, dict)) or isinstance(graph, dict):
        raise TypeError(
            _checks.message(
                "x must be one tensor [N, m] and the edges those of one kind of node",
                f"x of type {type(x).__name__}, edges of type {type(graph).__name__}",
                "bipartite and heterogeneous graphs do not fit, because every layer adds a node's "
                "new features to its old ones; make the graph homogeneous first",
            )
        )
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise TypeError(
            _checks.message(
                "x must be a floating-point tensor [N, m]",
                _checks.described(x),
                "convert node features with x.float()",
            )
        )
    if x.dim() != 2:
        raise ValueError(
            _checks.message(
                "x must be a floating-point tensor [N, m]",
                _checks.described(x),
                "put several graphs into one, as torch_geometric.data.Batch does",
            )
        )
    _checks.no_nan("x", x)
    if isinstance(graph, Adjacency) or (
        isinstance(graph, Tensor) and graph.layout != torch.strided
    ):
        nodes = graph.num_nodes if isinstance(graph, Adjacency) else tuple(graph.shape)
        if nodes not in (x.shape[0], (x.shape[0], x.shape[0])):
            raise ValueError(
                _checks.message(
                    f"the graph must have the {x.shape[0]} nodes of x",
                    f"one of size {nodes}",
                    "pass the features of every node; bipartite graphs do not fit",
                )
            )
    elif _checks.has_values(x):
        check_edges(graph, x.shape[0])


def check_edge_options(call: Call) -> None:
    """Checks that what a convolution gets per edge has one entry for every edge.

    Args:
        call: The edges, and what goes to the convolutions beside them.

    Raises:
        ValueError: If ``edge_weight`` or ``edge_attr`` has another length than ``edge_index``.

    Example:
        >>> check_edge_options(Call(torch.tensor([[0], [1]]), (), {"edge_weight": torch.ones(1)}))
    """
    if not isinstance(call.graph, Tensor) or call.graph.layout != torch.strided:
        return
    edges = call.graph.shape[1]
    for name in ("edge_weight", "edge_attr"):
        given = call.options.get(name)
        if isinstance(given, Tensor) and given.shape[:1] != (edges,):
            raise ValueError(
                _checks.message(
                    f"{name} must have one entry for each of the E={edges} edges",
                    _checks.described(given),
                    "give them in the order of the columns of edge_index",
                )
            )
