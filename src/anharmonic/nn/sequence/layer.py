"""Sequence layers: the interface of ``torch.nn.LSTM`` around any recurrence.

This module handles layouts, packed sequences, states, streaming and checks for all layers. A layer
defines its equation and the initial values of its parameters. Layers and cells share
``EquationModule``.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections import namedtuple
from collections.abc import Sequence
from keyword import iskeyword
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from anharmonic import _checks, _tensors
from anharmonic.nn.sequence.inputs import (
    check_can_step,
    checked_elapsed,
    checked_sequence,
    checked_state,
    checked_step,
    padded_elapsed,
    refuse_elapsed,
)
from anharmonic.nn.store import Stored, repr_of
from anharmonic.ops import Equation, HiddenState, run
from anharmonic.ops.backend import checked_compiled, checked_policy
from anharmonic.ops.stream import Stream


class EquationModule(Stored, nn.Module):
    """A module that owns the weights of an equation, one set per suffix such as "_l0".

    A layer has the suffixes "_l0", "_l0_reverse", "_l1" and so on, a cell only "".
    """

    input_size: int
    hidden_size: int
    _has_bias: bool
    _gaps_warned = False
    _suffixes: Sequence[str] = ()

    # ---- a model defines these ---------------------------------------------------------------
    def equation(self) -> Equation:
        """Return the equation with the current parameter values."""
        raise NotImplementedError

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Initialise a parameter in place; ``name`` has no suffix."""
        raise NotImplementedError

    def _initialise(self, name: str, parameter: Tensor, inputs: int) -> None:
        """Call ``init_parameter`` for a layer with this many inputs."""
        self.init_parameter(name, parameter)

    def _frozen_names(self) -> frozenset[str]:
        """Names of the buffers that take the place of parameters."""
        return frozenset()

    def _warn_unstable(self, longest: float = 1.0) -> bool:
        """Warn and return True if steps of dt times ``longest`` let states grow without bound."""
        return False

    # ---- parameters ----------------------------------------------------------------------------
    def _make(self, suffixes: list[tuple[str, int]], widths: list[int], **factory: Any) -> None:
        """Make the parameters of every (suffix, layer) pair and initialise them."""
        self._suffixes = [suffix for suffix, _ in suffixes]
        self._layout: list[tuple[str, str, int]] = []
        for suffix, layer in suffixes:
            for name, shape in self._shapes(layer, widths).items():
                if name == "bias" and not self._has_bias:
                    continue
                value = torch.empty(shape, **factory)
                if name in self._frozen_names():
                    self.register_buffer(name + suffix, value)
                else:
                    self.register_parameter(name + suffix, nn.Parameter(value))
                self._layout.append((name + suffix, name, widths[layer]))
        self.reset_parameters()

    def _shapes(self, layer: int, widths: list[int]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of one layer's weights, given the ``widths`` of input and layers."""
        own = self.equation().of_layer(layer)
        return own.shapes(own.source(widths[: layer + 1]), self.hidden_size)

    def reset_parameters(self) -> None:
        """Redraw every weight from the model's initial distribution."""
        with torch.no_grad():
            for full_name, name, inputs in self._layout:
                self._initialise(name, getattr(self, full_name), inputs)

    def layer_weights(self, suffix: str = "_l0") -> Any:
        """Return the weights of one layer and direction by name; None for missing ones."""
        return self._weights(self.equation(), [suffix])[0]

    def _weights(self, equation: Equation, suffixes: Sequence[str] | None = None) -> list[Any]:
        """Return the weights of layers and directions; all by default."""
        kind, parameters, weights = equation.Weights, self._parameters, []
        if not self._suffixes:
            _checks.require(
                False, f"the parameters of {type(self).__name__}", [], "made before it is called",
                "call self.make_parameters() at the end of its constructor",
            )  # fmt: skip
        for suffix in self._suffixes if suffixes is None else suffixes:
            values: list[Any] = []
            for name in kind._fields:
                value = parameters.get(name + suffix)  # the common case, and the fastest
                values.append(getattr(self, name + suffix, None) if value is None else value)
            weights.append(kind(*values))
        return weights

    @property
    def _example(self) -> Tensor:
        """Return a weight that shows the layer's dtype and device, without walking over modules."""
        name = self._layout[0][0]
        found = self._parameters.get(name)
        example: Tensor = getattr(self, name) if found is None else found
        return example

    extra_repr = repr_of


class SequenceLayer(EquationModule):
    """A stack of recurrent layers, called like ``torch.nn.LSTM``.

    ``layer(x, state)`` returns ``(output, state)``; ``layer.step(x_t, state)`` takes one step of a
    stream. The output at the last step equals the top layer's first variable. Pass ``elapsed`` for
    unevenly sampled sequences. ``output`` selects which steps to return.

    To write a layer, define its step in one of two ways and call ``make_parameters`` at the end of
    the constructor. Stacking, both directions, packed sequences, dropout, streaming and saving then
    work.

    - Override ``equation`` and return an ``anharmonic.ops.Equation``, as ``LEM`` does. An equation
      also works as a function, in cells and when compiled.
    - Override ``parameter_shapes`` and ``step_function``. The step is compiled to C if a C compiler
      is available, and runs as a PyTorch loop otherwise; see ``compiled``. ``drive`` computes the
      input's contribution to all steps in one product over the whole sequence. ``prepare`` computes
      what is the same at every step, such as a matrix exponential. For a layer with a step size set
      ``has_step_size = True`` and ``self.dt``; ``elapsed`` then multiplies it. ``state_type`` names
      the variables of the state. The first is the output.

    Override ``init_parameter`` to initialise parameters.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether there is a parameter called "bias"; without it, the weights hold None.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also reads the sequence backwards.
        memory: What to keep for the backward pass. "stored" keeps all states, "chunked" keeps some
            and recomputes the rest, "auto" chooses by size.
        compiled: Whether to compile ``step_function`` to C. "auto" compiles it for sequences of 32
            or more steps if possible, True always compiles or raises an error, False never
            compiles. Under ``use_backend("reference")`` the loop runs in any case.
            ``anharmonic.explain(layer)`` shows how the last call ran.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F], [B, T, F] with ``batch_first``, [T, F] unbatched, or a ``PackedSequence``.
        output [T, B, D * H] in the same layout; state: a named tuple of [L * D, B, H] each.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Example:
        >>> import torch
        >>> from anharmonic.nn import HiddenState, SequenceLayer
        >>> class LeakyRNN(SequenceLayer):
        ...     def __init__(
        ...         self, input_size, hidden_size, num_layers=1, *,
        ...         leak=0.1, device=None, dtype=None, **options,
        ...     ):
        ...         super().__init__(input_size, hidden_size, num_layers, **options)
        ...         self.leak = leak
        ...         self.make_parameters(device=device, dtype=dtype)
        ...
        ...     def parameter_shapes(self, input_size):
        ...         H = self.hidden_size
        ...         return {"weight_ih": (H, input_size), "weight_hh": (H, H), "bias": (H,)}
        ...
        ...     def step_function(self, u, state, w, dt):
        ...         new = torch.tanh(u + state.h @ w.weight_hh.T)
        ...         return HiddenState(torch.lerp(state.h, new, self.leak))
        >>> layer = LeakyRNN(2, 8, leak=0.5, bidirectional=True)
        >>> layer
        LeakyRNN(2, 8, leak=0.5, bidirectional=True)
        >>> output, state = layer(torch.zeros(5, 3, 2))
        >>> output.shape, state.h.shape
        (torch.Size([5, 3, 16]), torch.Size([2, 3, 8]))
    """

    _directions: ClassVar[tuple[str, ...]] = ("", "_reverse")
    state_type: ClassVar[Any] = HiddenState
    output_is_state: ClassVar[bool] = True  # whether the output is the top layer's first variable
    has_step_size: bool = False  # whether ``elapsed`` enters its equations
    _invertible: ClassVar[bool] = False  # whether memory="reversible" can undo its steps
    dt: Any

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        memory: str = "stored",
        compiled: bool | str = "auto",
    ) -> None:
        super().__init__()
        self.input_size = _checks.positive_int("input_size", input_size)
        self.hidden_size = _checks.positive_int("hidden_size", hidden_size)
        self._state_size = self.hidden_size  # neurons in the state of a layer
        self.num_layers = _checks.positive_int("num_layers", num_layers)
        self.bias = self._has_bias = _checks.boolean("bias", bias)
        self.batch_first = _checks.boolean("batch_first", batch_first)
        self.dropout = _checks.number("dropout", dropout, low=0.0, high=1.0)
        self.bidirectional = _checks.boolean("bidirectional", bidirectional)
        self.memory = checked_policy(
            memory, invertible=self._invertible, bidirectional=self.bidirectional
        )
        self.compiled = checked_compiled(compiled)
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                _checks.message(
                    "dropout acts between layers and needs num_layers > 1",
                    f"dropout={self.dropout}, num_layers=1",
                    "add layers or set dropout=0",
                ),
                UserWarning,
                stacklevel=_checks.levels_to_caller("anharmonic.nn", "torch.nn.modules.module"),
            )

    # ---- what a layer says -------------------------------------------------------------------
    def equation(self) -> Equation:
        """Return the layer's equation; by default one made of the methods below."""
        return _LayerEquation(self)

    def parameter_shapes(self, input_size: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of each parameter by name, for a layer with this many inputs."""
        raise NotImplementedError(self._lacks("parameter_shapes"))

    def step_function(self, u: Any, state: Any, w: Any, dt: float | Tensor) -> Any:
        """Take one step of one layer.

        Args:
            u: The drive of this step, [B, ...].
            state: The previous state, [B, H] each.
            w: What ``prepare`` returned.
            dt: Step size times elapsed time, a number or [B, 1]; 1 without a step size.

        Returns:
            The new state.
        """
        raise NotImplementedError(self._lacks("step_function"))

    def _lacks(self, method: str) -> str:
        advice = f"define {method}, as in the example of SequenceLayer"
        return _checks.message(
            f"{type(self).__name__} must define its step", f"no {method}", advice
        )

    def drive(self, x: Tensor, w: Any) -> Any:
        """Return the input's contribution to every step, [T, B, ...], or a tuple of such."""
        return F.linear(x, w.weight_ih, w.bias)

    def prepare(self, w: Any) -> Any:
        """Return what all steps have in common, computed from the layer's parameters by name."""
        return w

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Initialise a parameter in place, by default from U(-1/sqrt(H), 1/sqrt(H))."""
        bound = 1 / math.sqrt(self.hidden_size)
        parameter.uniform_(-bound, bound)

    # ---- parameters ----------------------------------------------------------------------------
    @property
    def num_directions(self) -> int:
        """2 if bidirectional, else 1."""
        return 2 if self.bidirectional else 1

    def _output_widths(self) -> list[int]:
        """Number of features that each layer passes to the next."""
        return [self.num_directions * self.hidden_size] * self.num_layers

    def make_parameters(self, **factory: Any) -> None:
        """Make the parameters of all layers and directions, named as in torch."""
        directions = self._directions[: self.num_directions]
        names = [(f"_l{k}{d}", k) for k in range(self.num_layers) for d in directions]
        self._make(names, [self.input_size, *self._output_widths()], **factory)

    # ---- calls ---------------------------------------------------------------------------------
    def forward(
        self,
        input: Tensor | PackedSequence,
        hx: Any = None,
        *,
        elapsed: Tensor | PackedSequence | None = None,
        output: str = "all",
    ) -> tuple[Any, Any]:
        """Run the stack over whole sequences.

        NaN in the input propagates to later steps of the same sequence, as in ``torch.nn.LSTM``.

        Args:
            input: The sequences x. All steps of a tensor count as valid; pack sequences of unequal
                length.
            hx: Initial state; zeros if None. May be a plain tuple, such as ``(y, z)``.
            elapsed: Time since the previous sample in units of the nominal step, >= 0; it
                multiplies dt in every layer. A reverse direction uses the same gaps and takes the
                first sample's gap for its own first step. None means 1 everywhere.
            output: Which steps of the output to return: "all", the "last" valid one of each
                sequence (the last of each direction, concatenated) or "none". Returning less saves
                memory in training.

        Shape:
            elapsed [T, B], [B, T] with ``batch_first``, [T] unbatched. For packed input, elapsed is
            packed with the same lengths or padded. output: as x with "all", [B, D * H] with "last"
            ([D * H] unbatched).

        Returns:
            The output and the final state. The output has the layout of the input (packed for
            packed input), follows the batch order for "last", and is None for "none". For packed
            input the final state is that of each sequence's last valid step.

        Warns:
            StabilityWarning: Once, if dt times the largest ``elapsed`` lets states grow.

        Raises:
            TypeError: If a tensor has another dtype than the layer.
            ValueError: If a shape or device does not fit, there are no steps, or elapsed is
                negative, not finite, or given to a model without a step size.
            OverflowError: If states leave the grid of ``memory="reversible"``.
        """
        if not self.has_step_size:
            refuse_elapsed(self, elapsed)
        equation = self.equation()
        weights = self._weights(equation)
        if isinstance(input, PackedSequence):
            return self._forward_packed(equation, weights, input, hx, elapsed, output)
        x = checked_sequence(input, self.input_size, self.batch_first, weights[0][0])
        if elapsed is not None:
            elapsed = checked_elapsed(elapsed, tuple(x.shape[:-1]), self)
        batched = x.dim() == 3
        if not batched:
            x, elapsed = x[:, None], None if elapsed is None else elapsed[:, None]
        elif self.batch_first:
            x, elapsed = x.transpose(0, 1), None if elapsed is None else elapsed.t()
        result, last = self._run(equation, weights, x, hx, batched, None, elapsed, output)
        if result is None or (output == "all" and batched and not self.batch_first):
            return result, last
        if output == "last":
            return (result if batched else result[0]), last
        return (result.transpose(0, 1) if batched else result[:, 0]), last

    def step(
        self, x_t: Tensor, state: Any = None, elapsed: Tensor | None = None
    ) -> tuple[Any, Any]:
        """Take one step of a stream; the results equal those of ``forward`` on the whole sequence.

        With ``memory="reversible"`` in float32 they only agree closely. There the state passed
        between steps is float32, while ``forward`` keeps it on a finer grid.

        Args:
            x_t: The features of one time step.
            state: State returned by the previous step; zeros if None.
            elapsed: Time since the previous sample in nominal steps, >= 0; None is 1.

        Shape:
            x_t [B, F] or [F]; elapsed [B] or []; output [B, H] or [H]; state as in ``forward``.

        Raises:
            ValueError: If the layer is bidirectional, trains with dropout between its layers, the
                input does not fit, or elapsed is given to a model without a step size.
        """
        if not self.has_step_size:
            refuse_elapsed(self, elapsed)
        check_can_step(self)
        equation = self.equation()
        weights = self._weights(equation)
        # Without gradients, work is reused between steps; see ops/stream.py.
        repeats = elapsed is None and not torch.is_grad_enabled()
        repeats = repeats and type(self)._run is SequenceLayer._run
        if repeats and not torch.compiler.is_compiling():
            stream = self.__dict__.get("_stream")
            if stream is not None and stream.fits(equation, weights, x_t, state):
                prepared: tuple[Any, Any] = stream.step(x_t, *state)
                return prepared
        output, last = self._step(equation, weights, x_t, state, elapsed)
        if repeats and not _tensors.watched():
            self.__dict__["_stream"] = Stream.prepare(equation, weights, x_t, last, self.memory)
        return output, last

    def _step(
        self, equation: Equation, weights: Any, x_t: Tensor, state: Any, elapsed: Tensor | None
    ) -> tuple[Any, Any]:
        """Take a step as a sequence of length 1."""
        x_t = checked_step(x_t, self.input_size, weights[0][0])
        batched = x_t.dim() == 2
        if elapsed is not None:
            elapsed = checked_elapsed(elapsed, tuple(x_t.shape[:-1]), self).reshape(1, -1)
        x = x_t[None] if batched else x_t[None, None]
        output, last = self._run(equation, weights, x, state, batched, None, elapsed, "last")
        assert output is not None
        return (output if batched else output[0]), last

    def _own_steps(self) -> Any:
        """Return the compiler for equations without a hand-written kernel."""
        steps = self.__dict__.get("_compiled_steps")
        if steps is None or steps.compiled != self.compiled:
            from anharmonic.ops.compiler.layers import CompiledSteps  # most layers do not need it

            kind = type(self)
            warns = not kind.__module__.startswith("anharmonic.")
            steps = CompiledSteps(kind.__name__, self.compiled, warns)
            self.__dict__["_compiled_steps"] = steps
        return steps

    def explain(self) -> str:
        """Return how the last call ran; see ``anharmonic.explain``."""
        if self.equation().compiled() is None:
            said: str = self._own_steps().explain()
            return said
        return f"{type(self).__name__} runs code that was written by hand."

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to copy and pickle, without prepared and compiled parts."""
        left_out = ("_stream", "_compiled_steps")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def flatten_parameters(self) -> None:
        """Do nothing. Exists because code written for ``torch.nn.LSTM`` calls it."""

    def _run(
        self,
        equation: Equation,
        weights: Any,
        x: Tensor,
        state: Any,
        batched: bool,
        lengths: Tensor | None,
        elapsed: Tensor | None,
        output: str,
    ) -> tuple[Tensor | None, Any]:
        """Run the stack: x [T, B, F] -> [T, B, D * H], [B, D * H] or None, and the last state.

        Unless ``batched``, the states belong to one sequence, [L * D, H], and B is 1.
        """
        start = self._start(state, x, batched)
        masks = None
        if self.training and self.dropout > 0 and self.num_layers > 1:
            wide = (x.shape[1], self.num_directions * self._state_size)
            masks = [
                nn.functional.dropout(x.new_ones(wide), self.dropout)
                for _ in range(self.num_layers - 1)
            ]
        result, *end = run(
            equation,
            x,
            weights,
            start,
            bidirectional=self.bidirectional,
            lengths=lengths,
            masks=masks,
            elapsed=elapsed,
            output=output,
            memory=self.memory,
            steps=self._own_steps,
        )
        last = self.state_type._make(end)
        return result, last if batched else last._make(part[:, 0] for part in last)

    def _start(self, state: Any, x: Tensor, batched: bool) -> Any:
        """Return the checked initial state with a batch axis."""
        batch = (x.shape[1],) if batched else ()
        shape = (len(self._suffixes), *batch, self._state_size)
        start = checked_state(state, shape, x, self.state_type)
        return start if batched else start._make(part[:, None] for part in start)

    def _forward_packed(
        self,
        equation: Equation,
        weights: Any,
        packed: PackedSequence,
        state: Any,
        elapsed: Tensor | PackedSequence | None,
        output: str,
    ) -> tuple[Any, Any]:
        data = checked_sequence(packed.data, self.input_size, False, weights[0][0], packed=True)
        x, lengths = pad_packed_sequence(PackedSequence(data, *packed[1:]))
        if elapsed is not None:
            elapsed = padded_elapsed(elapsed, lengths, self)
        result, last = self._run(equation, weights, x, state, True, lengths, elapsed, output)
        if result is None or output == "last":
            return result, last
        order = packed.sorted_indices
        if order is not None:
            result = result.index_select(1, order)
            lengths = lengths[order.cpu()]
        again = pack_padded_sequence(result, lengths)
        return PackedSequence(again.data, again.batch_sizes, order, packed.unsorted_indices), last


class _LayerEquation(Equation):
    """The equation of a layer that defines its step in its own methods."""

    tile = None

    def __init__(self, layer: SequenceLayer) -> None:
        self._layer = layer
        self.State = layer.state_type  # type: ignore[misc]
        self.Weights = _named(tuple(self.shapes(1, layer.hidden_size)))  # type: ignore[misc]

    @property
    def dt(self) -> Any:
        """Return the layer's step size, if it has one."""
        return self._layer.dt if self._layer.has_step_size else 1.0

    def shapes(self, inputs: int, hidden: int) -> dict[str, tuple[int, ...]]:
        """Call ``SequenceLayer.parameter_shapes``."""
        shapes = self._layer.parameter_shapes(inputs)
        sound = isinstance(shapes, dict) and len(shapes) > 0
        for name, shape in shapes.items() if sound else ():
            sound &= isinstance(name, str) and name.isidentifier() and not iskeyword(name)
            sound &= isinstance(shape, (tuple, list)) and all(
                isinstance(size, int) and size >= 0 for size in shape
            )
        _checks.require(
            sound, f"parameter_shapes of {type(self._layer).__name__}", shapes,
            "a dictionary of names and sizes", 'for example {"weight_ih": (8, 2), "bias": (8,)}',
        )  # fmt: skip
        return {name: tuple(shape) for name, shape in shapes.items()}

    def drive(self, x: Tensor, w: Any) -> Any:
        """Call ``SequenceLayer.drive``."""
        for name, value in zip(w._fields, w, strict=True):
            if value is not None:
                _tensors.has_dtype(name, value, x.dtype)
        return self._layer.drive(x, w)

    def prepare(self, w: Any) -> Any:
        """Call ``SequenceLayer.prepare``."""
        return self._layer.prepare(w)

    def step(self, u: Any, state: Any, w: Any, dt: Any) -> Any:
        """Call ``SequenceLayer.step_function``."""
        unchanged = _tensors.Unchanged(state)
        new = self._layer.step_function(u, state, w, dt)
        unchanged.check()
        if not isinstance(new, (tuple, list)):
            kind = type(state).__name__
            advice = f"return {kind}({', '.join(state._fields)})"
            expected = f"step_function must return a {kind}"
            raise _tensors.WrongStep(_checks.message(expected, _checks.described(new), advice))
        _tensors.check_step(new, state)
        return new


@functools.cache
def _named(names: tuple[str, ...]) -> Any:
    """Return a named tuple type of a layer's parameters, always with a bias."""
    weights = [name for name in names if name != "bias"]
    return namedtuple("LayerWeights", [*weights, "bias"])  # the first one is never None


StepLayer = SequenceLayer
"""Another name of ``SequenceLayer``."""
