"""The contract of sequence layers: what ``torch.nn.LSTM`` takes, with the model's own state.

A model file says three things: the shapes of its parameters, how they start, and which kernel runs
them. Everything else (layouts, packed sequences, states, dropout, directions, streaming, checks)
is here, once.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from anharmonic import _checks
from anharmonic.models.inputs import (
    State,
    check_can_step,
    checked_sequence,
    checked_state,
    checked_step,
    without_autocast,
)
from anharmonic.models.stability import levels_to_caller
from anharmonic.models.store import Stored


class _Recurrent(Stored, nn.Module):
    """What cells and layers share: parameters by name, and a kernel that runs them."""

    input_size: int
    hidden_size: int
    _has_bias: bool

    # ---- a model defines these three -------------------------------------------------------
    def _shapes(self, layer: int, widths: list[int]) -> dict[str, tuple[int, ...]]:
        """Shapes of one layer's parameters by stem (a stem is a name without ``_l0``).

        ``widths[l]`` is the width of level l: 0 the input, l the output of layer l.
        """
        raise NotImplementedError

    def _initialise(self, stem: str, parameter: Tensor, width: int) -> None:
        """Fills one parameter in place with its starting values; ``width`` is its layer's input."""
        raise NotImplementedError

    def _kernel(
        self,
        x: Tensor,
        suffixes: list[str],
        state: State,
        *,
        bidirectional: bool,
        lengths: Tensor | None,
        masks: list[Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Runs the whole stack: x [T, B, F] -> outputs [T, B, D * H], final y and z."""
        raise NotImplementedError

    # ---- parameters ------------------------------------------------------------------------
    def _frozen_stems(self) -> frozenset[str]:
        """Stems that are buffers instead of parameters."""
        return frozenset()

    def _make(self, suffixes: list[tuple[str, int]], widths: list[int], **factory: Any) -> None:
        """Makes the parameters of every (suffix, layer) pair and initialises them."""
        self._suffixes = [suffix for suffix, _ in suffixes]
        self._layout: list[tuple[str, str, int]] = []
        for suffix, layer in suffixes:
            for stem, shape in self._shapes(layer, widths).items():
                if stem == "bias" and not self._has_bias:
                    continue
                value = torch.empty(shape, **factory)
                if stem in self._frozen_stems():
                    self.register_buffer(stem + suffix, value)
                else:
                    self.register_parameter(stem + suffix, nn.Parameter(value))
                self._layout.append((stem + suffix, stem, widths[layer]))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws every weight anew from the model's initial distribution."""
        with torch.no_grad():
            for name, stem, width in self._layout:
                self._initialise(stem, getattr(self, name), width)

    def _weight(self, name: str) -> Any:
        """One parameter or buffer, or None where the layer has none of that name."""
        return getattr(self, name, None)

    @property
    def _example(self) -> Tensor:
        return next(self.parameters())


class SequenceCell(_Recurrent):
    """One step of one layer, as ``torch.nn.LSTMCell``.

    Shape:
        x_t [B, F] or [F]; state: y, z [B, H] or [H]. Returns the new state; ``state.y`` is the
        output.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool) -> None:
        """Checks and keeps the sizes."""
        super().__init__()
        self.input_size = _checks.positive_int("input_size", input_size)
        self.hidden_size = _checks.positive_int("hidden_size", hidden_size)
        self._has_bias = _checks.boolean("bias", bias)
        if not bias:
            self.register_parameter("bias", None)

    def config(self) -> dict[str, Any]:
        """The constructor's arguments (without device and dtype) by name."""
        return super().config() | {"bias": self._has_bias}

    def forward(self, x_t: Tensor, state: tuple[Tensor, Tensor] | None = None) -> State:
        """Takes one step from ``state`` (zeros if None) with the input ``x_t``.

        Raises:
            TypeError: If a tensor has another dtype than the cell.
            ValueError: If a shape or device does not fit, or ``x_t`` holds NaN.
        """
        x_t = checked_step(x_t, self.input_size, self._example)
        _checks.no_nan("x_t", x_t)
        batched = x_t.dim() == 2
        rows = x_t if batched else x_t[None]
        shape = (rows.shape[0], self.hidden_size) if batched else (self.hidden_size,)
        y, z = checked_state(state, shape, self._example)
        if not batched:
            y, z = y[None], z[None]
        with without_autocast(rows):
            _, y, z = self._kernel(
                rows[None], [""], State(y[None], z[None]), bidirectional=False, lengths=None,
                masks=None,
            )  # fmt: skip
        return State(y[0], z[0]) if batched else State(y[0, 0], z[0, 0])

    def extra_repr(self) -> str:
        """Names what differs from the defaults."""
        return repr_of(self)


class SequenceLayer(_Recurrent):
    """A stack of recurrent layers that takes what ``torch.nn.LSTM`` takes.

    ``layer(x, state)`` returns ``(output, state)``; ``layer.step(x_t, state)`` takes one step of a
    stream. The output at the last step equals the top layer's y.

    Shape:
        x [T, B, F], [B, T, F] with ``batch_first``, [T, F] unbatched, or a ``PackedSequence``.
        output [T, B, D * H] in the same layout; state: y, z [L * D, B, H].
    """

    _directions: ClassVar[tuple[str, ...]] = ("", "_reverse")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
    ) -> None:
        """Checks and keeps the words every sequence layer shares."""
        super().__init__()
        self.input_size = _checks.positive_int("input_size", input_size)
        self.hidden_size = _checks.positive_int("hidden_size", hidden_size)
        self.num_layers = _checks.positive_int("num_layers", num_layers)
        self.bias = self._has_bias = _checks.boolean("bias", bias)
        self.batch_first = _checks.boolean("batch_first", batch_first)
        self.dropout = _checks.number("dropout", dropout, low=0.0, high=1.0)
        self.bidirectional = _checks.boolean("bidirectional", bidirectional)
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

    @property
    def num_directions(self) -> int:
        """2 if bidirectional, else 1."""
        return 2 if self.bidirectional else 1

    def _make_layers(self, **factory: Any) -> None:
        """Makes the parameters of all layers and directions, named as in torch."""
        directions = self._directions[: self.num_directions]
        names = [(f"_l{k}{d}", k) for k in range(self.num_layers) for d in directions]
        wide = self.num_directions * self.hidden_size
        self._make(names, [self.input_size, *[wide] * self.num_layers], **factory)

    def forward(
        self,
        x: Tensor | PackedSequence,
        state: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Any, State]:
        """Runs the stack over whole sequences.

        Args:
            x: The sequences; padded tensors are taken as fully valid, ragged ones come packed.
            state: Initial state; zeros if None. A plain tuple ``(y, z)`` will do.

        Returns:
            The output, laid out (and packed) as the input, and the final state: for packed input
            each sequence's own last valid step.

        Raises:
            TypeError: If a tensor has another dtype than the layer.
            ValueError: If a shape or device does not fit, a sequence is empty, or x holds NaN.
        """
        if isinstance(x, PackedSequence):
            return self._forward_packed(x, state)
        x = checked_sequence(x, self.input_size, self.batch_first, self._example)
        if x.dim() == 2:
            shape = (self.num_layers * self.num_directions, self.hidden_size)
            y, z = checked_state(state, shape, self._example)
            output, last = self._run(x[:, None], State(y[:, None], z[:, None]), None)
            return output[:, 0], State(last.y[:, 0], last.z[:, 0])
        if self.batch_first:
            x = x.transpose(0, 1)
        output, last = self._run(x, self._initial(state, x.shape[1]), None)
        return (output.transpose(0, 1) if self.batch_first else output), last

    def step(self, x_t: Tensor, state: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, State]:
        """Takes one step of a stream; the same numbers as ``forward`` on the whole sequence.

        Args:
            x_t: The features of one time step.
            state: What the last step returned; zeros if None.

        Shape:
            x_t [B, F] or [F]; output [B, H] or [H]; state as in ``forward``.

        Raises:
            ValueError: If the layer is bidirectional, trains with dropout between its layers, or
                the input does not fit.
        """
        check_can_step(self)
        x_t = checked_step(x_t, self.input_size, self._example)
        time = 1 if self.batch_first and x_t.dim() == 2 else 0
        output, last = self(x_t.unsqueeze(time), state)
        return output.squeeze(time), last

    def extra_repr(self) -> str:
        """Names what differs from the defaults."""
        return repr_of(self)

    def flatten_parameters(self) -> None:
        """Does nothing; here because code written for ``torch.nn.LSTM`` calls it."""

    def _initial(self, state: tuple[Tensor, Tensor] | None, batch: int) -> State:
        shape = (self.num_layers * self.num_directions, batch, self.hidden_size)
        return checked_state(state, shape, self._example)

    def _run(self, x: Tensor, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
        """Runs time-major, batched input through the kernel."""
        masks = None
        if self.training and self.dropout > 0 and self.num_layers > 1:
            wide = (x.shape[1], self.num_directions * self.hidden_size)
            masks = [
                nn.functional.dropout(x.new_ones(wide), self.dropout)
                for _ in range(self.num_layers - 1)
            ]
        with without_autocast(x):
            output, y, z = self._kernel(
                x,
                self._suffixes,
                state,
                bidirectional=self.bidirectional,
                lengths=lengths,
                masks=masks,
            )
        return output, State(y, z)

    def _forward_packed(
        self, packed: PackedSequence, state: tuple[Tensor, Tensor] | None
    ) -> tuple[PackedSequence, State]:
        checked_sequence(packed.data, self.input_size, False, self._example, packed=True)
        x, lengths = pad_packed_sequence(packed)
        output, last = self._run(x, self._initial(state, x.shape[1]), lengths)
        order = packed.sorted_indices
        if order is not None:
            output = output.index_select(1, order)
            lengths = lengths[order.cpu()]
        again = pack_padded_sequence(output, lengths)
        return PackedSequence(again.data, again.batch_sizes, order, packed.unsorted_indices), last


def repr_of(module: Stored) -> str:
    """Sizes, and every constructor argument that differs from its default."""
    parameters = inspect.signature(type(module).__init__).parameters
    parts = []
    for name, value in module.config().items():
        if parameters[name].default is inspect.Parameter.empty:
            parts.append(f"{value}")
        elif value != parameters[name].default:
            parts.append(f"{name}={value!r}")
    return ", ".join(parts)
