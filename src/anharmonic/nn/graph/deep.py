"""What GraphCON and Gradient Gating share: one convolution or many, and the walk over layers.

Letters: `N` nodes, `m` features, `L` layers, `E` edges.
"""

from __future__ import annotations

import ctypes
import functools
import math
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.nn.graph.arguments import GraphInputs, check_edge_options, modules, symbolic
from anharmonic.nn.graph.convolve import convolve, redraw
from anharmonic.ops.graph import Adjacency, edges_of


class DeepGraphLayer(nn.Module):
    """A stack of L steps around one shared convolution, or one per step.

    What the docstring of a class leaves out of its arguments, shapes and errors is taken from here.

    Args:
        conv: The convolution F, called as ``conv(x, edge_index, ...)`` and as wide as its input;
            one module is shared by all layers, a list gives one per layer.
        num_layers: Layers L >= 1.
        checkpoint: Whether the backward pass computes the states anew from every sqrt(L)-th, so
            that memory grows with sqrt(L).

    Shape:
        x [N, m]; edge_index [2, E], a sparse adjacency [N, N] whose row i holds the edges that end
        in i, or an ``anharmonic.Adjacency``; result [N, m].

    Raises:
        TypeError: If an argument is of the wrong kind.
        ValueError: If an argument is out of range, or conv changes the width.
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

    def initial_states(self, x: Tensor) -> tuple[Tensor, ...]:
        """What the first layer starts from, the features first.

        Args:
            x: Node features.
        """
        return (x,)

    def _step(self, n: int, states: tuple[Tensor, ...], inputs: GraphInputs) -> tuple[Tensor, ...]:
        """One layer: the states before it to those after it; the first is the features."""
        raise NotImplementedError

    def _walk(
        self,
        states: tuple[Tensor, ...],
        inputs: GraphInputs,
        trace: list[tuple[Tensor, ...]] | None,
    ) -> tuple[Tensor, ...]:
        """All layers; every layer's states go to ``trace``, if there is one."""
        check_edge_options(inputs)
        checkpoint = self.checkpoint and torch.is_grad_enabled() and not symbolic(states[0])
        if trace is None and checkpoint:
            return self._checkpointed(states, inputs)
        for n in range(self.num_layers):
            states = self._step(n, states, inputs)
            if trace is not None:
                trace.append(states)
        return states

    def _checkpointed(self, states: tuple[Tensor, ...], inputs: GraphInputs) -> tuple[Tensor, ...]:
        from torch.utils.checkpoint import checkpoint

        def run(first: int, last: int, *states: Tensor) -> tuple[Tensor, ...]:
            give_back_freed()
            for n in range(first, last):
                states = self._step(n, states, inputs)
            return states

        size = math.ceil(math.sqrt(self.num_layers))
        for first in range(0, self.num_layers, size):
            last = min(first + size, self.num_layers)
            states = checkpoint(run, first, last, *states, use_reentrant=False)
        return states

    def _convolve(self, convs: nn.ModuleList, n: int, x: Tensor, inputs: GraphInputs) -> Tensor:
        conv = convs[n if len(convs) > 1 else 0]
        if symbolic(x):
            return conv(x, inputs.graph)  # type: ignore[no-any-return]
        name = "conv" if convs is self.convs else "gate_conv"
        wide = getattr(conv, "in_channels", x.shape[1])
        _checks.require(
            not isinstance(wide, int) or wide == x.shape[1] or wide in (0, -1), "x", x,
            f"a tensor with the {wide} features per node that {name} takes",
            "map the features to that width first, e.g. with torch.nn.Linear",
        )  # fmt: skip
        result = convolve(conv, x, inputs.graph, *inputs.args, **inputs.options)
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
        if torch._C._get_tracing_state() is not None:
            raise TypeError(
                _checks.message(
                    "edge_index must be an anharmonic.Adjacency under torch.jit.trace",
                    f"{_checks.described(graph)}, whose sorted edges the trace would keep for good",
                    "use torch.export.export, or make the Adjacency outside of the trace",
                )
            )
        # No version counter tells of a change in inference mode, nor inside of a compiled graph.
        keep = not (_checks.watched() or graph.is_inference())
        if keep and self._last is not None:
            seen, version, nodes, kept = self._last
            same = seen() is graph and version == graph._version and nodes == num_nodes
            # A write through NumPy or .data leaves the version as it was.
            if same and (graph.layout != torch.strided or torch.equal(kept.edge_index, graph)):
                return kept
        edges = edges_of(graph)
        if type(edges) is not Tensor and not torch.compiler.is_compiling():
            edges = edges.as_subclass(Tensor)  # EdgeIndex, whose indexing checks and keeps too much
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
