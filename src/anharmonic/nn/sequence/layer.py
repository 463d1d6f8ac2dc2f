"""Sequence layers: the call of ``torch.nn.LSTM`` around any recurrence.

Layouts, packed sequences, states, streaming and checks are here, once. A layer says what its
equation is, and how its parameters start. ``EquationModule`` is what layers share with cells.
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
from anharmonic.nn.stability import levels_to_caller
from anharmonic.nn.store import Stored, repr_of
from anharmonic.ops import Equation, HiddenState, run
from anharmonic.ops.backend import checked_compiled, checked_policy
from anharmonic.ops.stream import Stream


class EquationModule(Stored, nn.Module):
    """A module that owns the weights of an equation: one set for each suffix, such as "_l0".

    A layer has the suffixes "_l0", "_l0_reverse", "_l1" and so on, a cell only "".
    """

    input_size: int
    hidden_size: int
    _has_bias: bool
    _gaps_warned = False
    _suffixes: Sequence[str] = ()

    # ---- a model defines these ---------------------------------------------------------------
    def equation(self) -> Equation:
        """Return the equation with the numbers in use."""
        raise NotImplementedError

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Fill a parameter in place with its first values; ``name`` is without suffix."""
        raise NotImplementedError

    def _initialise(self, name: str, parameter: Tensor, inputs: int) -> None:
        """``init_parameter`` for a layer of this many inputs."""
        self.init_parameter(name, parameter)

    def _frozen_names(self) -> frozenset[str]:
        """Names of what are buffers instead of parameters."""
        return frozenset()

    def _warn_unstable(self, longest: float = 1.0) -> bool:
        """Warn, and say so, if steps of dt times ``longest`` let states grow without bound."""
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
        """Shapes of one layer's weights; ``widths`` are those of the input and of each layer."""
        own = self.equation().of_layer(layer)
        return own.shapes(own.source(widths[: layer + 1]), self.hidden_size)

    def reset_parameters(self) -> None:
        """Draw every weight anew from the model's initial distribution."""
        with torch.no_grad():
            for full_name, name, inputs in self._layout:
                self._initialise(name, getattr(self, full_name), inputs)

    def layer_weights(self, suffix: str = "_l0") -> Any:
        """Return the weights of one layer and direction by name, None for those it lacks."""
        return self._weights(self.equation(), [suffix])[0]

    def _weights(self, equation: Equation, suffixes: Sequence[str] | None = None) -> list[Any]:
        """The weights of layers and directions; of all by default."""
        kind, parameters, weights = equation.Weights, self._parameters, []
        if not self._suffixes:
            _checks.require(
                False, f"the parameters of {type(self).__name__}", [], "made before it is called",
                "call self.make_parameters() at the end of its constructor",
            )  # fmt: skip
        for suffix in self._suffixes if suffixes is None else suffixes:
            values: list[Any] = []
            for name in kind._fields:
                value = parameters.get(name + suffix)  # by far the usual case, and the quickest
                values.append(getattr(self, name + suffix, None) if value is None else value)
            weights.append(kind(*values))
        return weights

    @property
    def _example(self) -> Tensor:
        """A weight, whose dtype and device are the layer's (found without a walk over modules)."""
        name = self._layout[0][0]
        found = self._parameters.get(name)
        example: Tensor = getattr(self, name) if found is None else found
        return example

    def extra_repr(self) -> str:
        """Name what differs from the defaults."""
        return repr_of(self)


class SequenceLayer(EquationModule):
    """A stack of recurrent layers, called like ``torch.nn.LSTM``.

    ``layer(x, state)`` returns ``(output, state)``; ``layer.step(x_t, state)`` takes one step of a
    stream. The output at the last step equals the top layer's first variable. Unevenly sampled
    sequences come with ``elapsed``; ``output`` says how much of the output is wanted.

    To write a layer, say what one step is, in one of two ways, and call ``make_parameters`` at the
    end of the constructor. Stacking, both directions, packed sequences, dropout, streaming and
    saving follow.

    - Override ``equation`` and return an ``anharmonic.ops.Equation``, as ``LEM`` does. An equation
      also serves as a function, in cells, and where it is compiled.
    - Override ``parameter_shapes`` and ``step_function``. It is compiled to C where there is a C
      compiler, and runs as a loop in PyTorch elsewhere; see ``compiled``. ``drive`` is the input's
      share of all steps, one product over the whole sequence, and ``prepare`` what is the same at
      every step (a matrix exponential, say). With a step size set ``has_step_size = True`` and
      ``self.dt``; ``elapsed`` then multiplies it. ``state_type`` names the variables of the state:
      the first is the output.

    ``init_parameter`` says how a parameter starts.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Layers stacked on each other, L >= 1.
        bias: Whether there is a parameter called "bias"; if not, it is None in the weights.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also walks from the end.
        memory: What is kept for the backward pass: "stored" states, "chunked" (a state now and
            then, the rest computed again), or "auto", which picks between them by size.
        compiled: Whether ``step_function`` is compiled to C: "auto" for sequences of 32 steps and
            more, if it can be; True always, or an error; False never. ``anharmonic.explain(layer)``
            says how the last call ran.
        device: Where the parameters live.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F], [B, T, F] with ``batch_first``, [T, F] unbatched, or a ``PackedSequence``.
        output [T, B, D * H] in the same layout; state: a named tuple of [L * D, B, H] each.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument is of the wrong kind.

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
    has_step_size: bool = False  # whether ``elapsed`` has a place in its equations
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
                stacklevel=levels_to_caller(),
            )

    # ---- what a layer says -------------------------------------------------------------------
    def equation(self) -> Equation:
        """Return the equation with the numbers in use; by default one of the methods below."""
        return _LayerEquation(self)

    def parameter_shapes(self, input_size: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of each parameter of a layer, by name, for this many inputs."""
        raise NotImplementedError(self._lacks("parameter_shapes"))

    def step_function(self, u: Any, state: Any, w: Any, dt: float | Tensor) -> Any:
        """Take one step of one layer.

        Args:
            u: The drive of this step, [B, ...].
            state: The state before it, [B, H] each.
            w: What ``prepare`` returned.
            dt: Step size times the elapsed time, a number or [B, 1]; 1 without a step size.

        Returns:
            The new state.
        """
        raise NotImplementedError(self._lacks("step_function"))

    def _lacks(self, method: str) -> str:
        advice = f"define {method}, as in the example of StepLayer"
        return _checks.message(
            f"{type(self).__name__} must define its step", f"no {method}", advice
        )

    def drive(self, x: Tensor, w: Any) -> Any:
        """Return the input's share of every step, [T, B, ...] from x [T, B, F], or a tuple."""
        return F.linear(x, w.weight_ih, w.bias)

    def prepare(self, w: Any) -> Any:
        """Return what every step takes alike, from the layer's parameters by name."""
        return w

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Fill a parameter in place with its first values: U(-1/sqrt(H), 1/sqrt(H))."""
        bound = 1 / math.sqrt(self.hidden_size)
        parameter.uniform_(-bound, bound)

    # ---- parameters ----------------------------------------------------------------------------
    @property
    def num_directions(self) -> int:
        """2 if bidirectional, else 1."""
        return 2 if self.bidirectional else 1

    def _output_widths(self) -> list[int]:
        """Features that each layer gives the next."""
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

        NaN in the input propagates, as in ``torch.nn.LSTM``: to the same sequence's later steps.

        Args:
            input: The sequences x. Padded tensors are fully valid; ragged ones come packed.
            hx: Initial state; zeros if None. A plain tuple will do, such as ``(y, z)``.
            elapsed: Time since the previous sample in units of the nominal step, >= 0; it
                multiplies dt in every layer. A reverse direction walks back over the same gaps and
                takes the first sample's for its own first step. None is 1 everywhere.
            output: What to return of the output: "all" steps, the "last" valid one of each sequence
                (of each direction its own last, joined) or "none". The less is asked for, the less
                memory training takes.

        Shape:
            elapsed [T, B], [B, T] with ``batch_first``, [T] unbatched; for packed input packed with
            the same lengths, or padded. output: as x with "all", [B, D * H] with "last" ([D * H]
            unbatched).

        Returns:
            The output, laid out (and packed) as the input, in the order of the batch for "last",
            None for "none"; and the final state: for packed input each sequence's own last valid
            step.

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
        """Takes one step of a stream; the same numbers as ``forward`` on the whole sequence.

        (With ``memory="reversible"`` in float32 they are near: there states are handed from step to
        step as float32, within a sequence they keep to a finer grid.)

        Args:
            x_t: The features of one time step.
            state: What the last step returned; zeros if None.
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
        # Without gradients steps are prepared for the next one, see ops/stream.py.
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
        """A step as a sequence of length 1."""
        x_t = checked_step(x_t, self.input_size, weights[0][0])
        batched = x_t.dim() == 2
        if elapsed is not None:
            elapsed = checked_elapsed(elapsed, tuple(x_t.shape[:-1]), self).reshape(1, -1)
        x = x_t[None] if batched else x_t[None, None]
        output, last = self._run(equation, weights, x, state, batched, None, elapsed, "last")
        assert output is not None
        return (output if batched else output[0]), last

    def _own_steps(self) -> Any:
        """What compiles the steps of an equation for which there is no code by hand."""
        steps = self.__dict__.get("_compiled_steps")
        if steps is None or steps.compiled != self.compiled:
            from anharmonic.ops.compiler.layers import CompiledSteps  # most layers do without

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
        """Return what is copied and pickled: all but what is prepared and compiled."""
        left_out = ("_stream", "_compiled_steps")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def flatten_parameters(self) -> None:
        """Does nothing; here because code written for ``torch.nn.LSTM`` calls it."""

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

        Unless ``batched`` the states are those of one sequence, [L * D, H], and B is 1.
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
        """The state that a call begins with, checked, with an axis for the batch."""
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
    """The equation of a layer that defines its step in methods of its own."""

    tile = None

    def __init__(self, layer: SequenceLayer) -> None:
        self._layer = layer
        self.State = layer.state_type  # type: ignore[misc]
        self.Weights = _named(tuple(self.shapes(1, layer.hidden_size)))  # type: ignore[misc]

    @property
    def dt(self) -> Any:
        """Return the layer's, where it has one."""
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
    """A named tuple of a layer's parameters, with a bias even where there is none."""
    return namedtuple("LayerWeights", dict.fromkeys((*names, "bias")))


StepLayer = SequenceLayer
"""The name under which layers of one's own are documented."""
