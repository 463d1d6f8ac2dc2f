"""Base of GraphCON and Gradient Gating: convolutions per layer, and the loop over layers.

Letters: `N` nodes, `m` features, `L` layers, `E` edges.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from anharmonic import _checks, _tensors
from anharmonic.nn.graph.arguments import (
    NORM_EXAMPLE,
    SAME_WIDTH,
    check_edge_options,
    check_input,
    explain_dtype,
    explain_options,
    is_symbol,
    modules,
)
from anharmonic.nn.graph.convolve import convolve, redraw
from anharmonic.ops.graph import Adjacency, as_int64, edges_of


class GraphInputs(NamedTuple):
    """Inputs of a layer besides the node states.

    Attributes:
        graph: The edges in the form that the convolutions take.
        args: Further arguments of the convolutions.
        options: The same, by name.
        adjacency: The sorted edges, for layers that read them.
    """

    graph: Any
    args: tuple[Any, ...] = ()
    options: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    adjacency: Adjacency | None = None


class DeepGraphLayer(nn.Module):
    """A stack of L steps around one shared convolution, or one per step.

    A subclass defines ``_step`` and the named tuple ``states_type``. It also defines
    ``initial_states`` if it has states besides the features.
    """

    states_type: ClassVar[Any]
    intervals: ClassVar[dict[str, dict[str, Any]]] = {}
    """Intervals of the numbers that may be changed later, as ``_checks.number`` takes them."""
    sorts_edges: ClassVar[bool] = False
    """Whether the steps use ``GraphInputs.adjacency``."""

    def __init__(
        self,
        conv: nn.Module | Iterable[nn.Module],
        num_layers: int,
        checkpoint: bool,
        norm: nn.Module | Iterable[nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.num_layers = _checks.positive_int("num_layers", num_layers)
        self.checkpoint = _checks.boolean("checkpoint", checkpoint)
        self.convs = modules("conv", conv, self.num_layers)
        self.gate_convs: nn.ModuleList | None = None
        self.norms = None
        if norm is not None:
            self.norms = modules("norm", norm, self.num_layers, NORM_EXAMPLE)
        self._last: tuple[Any, int, int, Adjacency] | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.intervals:
            value = _checks.number(name, value, **self.intervals[name])
        super().__setattr__(name, value)

    def reset_parameters(self) -> None:
        """Redraw the convolutions' weights."""
        for convs in self.children():
            redraw(convs)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Adjacency,
        *args: Any,
        return_states: bool = False,
        **conv_options: Any,
    ) -> Tensor | tuple[Tensor, Any]:
        """Run all layers.

        Args:
            x: Node features X^0.
            edge_index: The edges [2, E], a sparse adjacency [N, N] or an ``Adjacency``.
            *args: Further arguments of the convolutions, such as edge weights.
            return_states: Whether to return every layer's states as well.
            **conv_options: The same as ``args``, by name.

        Returns:
            The features X^L. With ``return_states`` also an ``Oscillation`` (of ``GraphCON``) or a
            ``Gated`` (of ``GradientGating``).
        """
        if is_symbol(x):
            self._check_conversion()
            others: list[Any] = [return_states, args, conv_options]
            for other in filter(is_symbol, others):  # the converted layer would ignore these
                other.node.graph.erase_node(other.node)
            return self._run(self.initial_states(x), GraphInputs(edge_index))
        check_input(x, edge_index)
        inputs = self._inputs(edge_index, x.shape[0], args, conv_options)
        check_edge_options(inputs.graph, conv_options)
        run = self._run_with_states if return_states else self._run
        states = self.initial_states(x)
        if torch.compiler.is_compiling():
            return run(states, inputs)
        try:
            return run(states, inputs)
        except (RuntimeError, TypeError, ValueError, AssertionError) as error:
            self._explain(error, x, inputs)
            raise

    def _explain(self, error: Exception, x: Tensor, inputs: GraphInputs) -> None:
        """Raise a clear error if a convolution failed for the dtype or the lack of an argument."""
        args, options = inputs.args, inputs.options
        if isinstance(error, RuntimeError) and not torch.is_autocast_enabled(x.device.type):
            of_dtypes = "dtype" in str(error) or "scalar type" in str(error)
            for name, value in {"x": x, **options}.items() if of_dtypes else ():
                explain_dtype(name, value, self)
        elif not isinstance(error, RuntimeError):
            for name, convs in (("conv", self.convs), ("gate_conv", self.gate_convs)):
                for conv in convs or ():
                    explain_options(name, conv, args, options, error)

    def _run_with_states(
        self, states: tuple[Tensor, ...], inputs: GraphInputs
    ) -> tuple[Tensor, Any]:
        """Return the features after all layers, and the states before and after every layer."""
        initial, layers = states, []
        for n in range(self.num_layers):
            layers.append(self._step(n, states, inputs))
            states = layers[-1][: len(initial)]
        stacks = (
            torch.stack([*initial[k : k + 1], *(layer[k] for layer in layers)])
            for k in range(len(layers[0]))
        )
        return states[0], self.states_type(*stacks)

    def initial_states(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the states before the first layer, the features first."""
        return (x,)

    def _step(self, n: int, states: tuple[Tensor, ...], inputs: GraphInputs) -> tuple[Tensor, ...]:
        """Return the states after layer n, followed by extras for ``return_states``."""
        raise NotImplementedError

    def _check_conversion(self) -> None:
        """Raise a TypeError if ``torch_geometric.nn.to_hetero`` cannot convert the layer."""

    def _inputs(
        self, graph: Any, num_nodes: int, args: tuple[Any, ...], options: dict[str, Any]
    ) -> GraphInputs:
        graph = as_int64(graph)
        adjacency = self._adjacency(graph, num_nodes) if self.sorts_edges else None
        return GraphInputs(graph, args, options, adjacency)

    def _run(self, states: tuple[Tensor, ...], inputs: GraphInputs) -> Tensor:
        """Return the features after all layers."""
        if not self.checkpoint or not torch.is_grad_enabled() or is_symbol(states[0]):
            return self._part(0, self.num_layers, *states, inputs=inputs)[0]
        from torch.utils.checkpoint import checkpoint

        size = math.ceil(math.sqrt(self.num_layers))
        for first in range(0, self.num_layers, size):
            last = min(first + size, self.num_layers)
            states = checkpoint(
                self._part, first, last, *states, inputs=inputs, use_reentrant=False
            )
        return states[0]

    def _part(
        self, first: int, last: int, *states: Tensor, inputs: GraphInputs
    ) -> tuple[Tensor, ...]:
        for n in range(first, last):
            states = self._step(n, states, inputs)[: len(states)]
        return states

    def _coupling(
        self,
        convs: nn.ModuleList,
        norms: nn.ModuleList | None,
        n: int,
        x: Tensor,
        inputs: GraphInputs,
    ) -> Tensor:
        """Return the convolution of layer n, followed by its norm if there is one."""
        result = self._convolve(convs, n, x, inputs)
        if norms is None:
            return result
        return norms[n if len(norms) > 1 else 0](result)  # type: ignore[no-any-return]

    def _convolve(self, convs: nn.ModuleList, n: int, x: Tensor, inputs: GraphInputs) -> Tensor:
        conv = convs[n if len(convs) > 1 else 0]
        if is_symbol(x):
            return conv(x, inputs.graph)  # type: ignore[no-any-return]
        name = "conv" if convs is self.convs else "gate_conv"
        width = getattr(conv, "in_channels", x.shape[1])
        _checks.require(
            not isinstance(width, int) or width == x.shape[1] or width in (0, -1), "x", x,
            f"a tensor with the {width} features per node that {name} takes",
            "map the features to that width first, e.g. with torch.nn.Linear",
        )  # fmt: skip
        result = convolve(conv, x, inputs.graph, *inputs.args, **inputs.options)
        if not isinstance(result, Tensor) or result.shape != x.shape:
            expected = f"{name} must keep the shape of its input, {list(x.shape)}"
            received = f"{_checks.described(result)} from {conv}"
            raise ValueError(_checks.message(expected, received, SAME_WIDTH))
        return result.clone() if result is x else result  # an activation in place would change x

    def _adjacency(self, graph: Any, num_nodes: int) -> Adjacency:
        """Return the sorted edges, caching those of the last call."""
        if isinstance(graph, Adjacency):
            return graph
        if torch._C._get_tracing_state() is not None:
            expected = "edge_index must be an anharmonic.Adjacency under torch.jit.trace"
            received = f"{_checks.described(graph)}, whose sorted edges the trace would keep"
            advice = "use torch.export.export, or make the Adjacency outside of the trace"
            raise TypeError(_checks.message(expected, received, advice))
        # In inference mode and inside a compiled graph no version counter reveals a change.
        keep = not (_tensors.watched() or graph.is_inference())
        if keep and self._last is not None:
            last_graph, version, nodes, adjacency = self._last
            is_same = last_graph() is graph and version == graph._version and nodes == num_nodes
            # A write through NumPy or .data does not change the version.
            if is_same and (
                graph.layout != torch.strided or torch.equal(adjacency.edge_index, graph)
            ):
                return adjacency
        edges = edges_of(graph)
        if type(edges) is not Tensor and not torch.compiler.is_compiling():
            edges = edges.as_subclass(Tensor)  # PyG's EdgeIndex checks and caches too much
        adjacency = Adjacency(edges, num_nodes)
        if keep:
            self._last = (weakref.ref(graph), graph._version, num_nodes, adjacency)
        return adjacency

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}  # a weak reference can be neither copied nor pickled
