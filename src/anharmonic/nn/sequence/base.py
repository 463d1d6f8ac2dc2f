"""The contract of sequence layers: the call of ``torch.nn.LSTM`` around any recurrence.

Layouts, packed sequences, states, streaming and checks are here, once. A layer says the shapes of
its parameters, how they start, and what runs a time-major batch through its stack (``_kernel``): an
op (``kernel_layer.py``), or its own step function (``step_layer.py``).
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from anharmonic import _checks
from anharmonic.nn.sequence.inputs import (
    check_can_step,
    checked_elapsed,
    checked_sequence,
    checked_state,
    checked_step,
    padded_elapsed,
    refuse_elapsed,
    without_autocast,
)
from anharmonic.nn.sequence.recurrent import _Recurrent, repr_of
from anharmonic.nn.stability import levels_to_caller
from anharmonic.ops.recurrence import State


class SequenceLayer(_Recurrent):
    """A stack of recurrent layers that takes what ``torch.nn.LSTM`` takes.

    ``layer(x, state)`` returns ``(output, state)``; ``layer.step(x_t, state)`` takes one step of a
    stream. The output at the last step equals the top layer's first variable. Unevenly sampled
    sequences come with ``elapsed``; ``output`` says how much of the output is wanted.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Layers stacked on each other, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also walks from the end.
        device: Where the parameters live.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F], [B, T, F] with ``batch_first``, [T, F] unbatched, or a ``PackedSequence``.
        output [T, B, D * H] in the same layout; state: a named tuple of [L * D, B, H] each.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument is of the wrong kind.
    """

    _directions: ClassVar[tuple[str, ...]] = ("", "_reverse")
    state_type: ClassVar[Any] = State
    has_step_size: ClassVar[bool] = True  # whether ``elapsed`` has a place in its equations
    memory: str

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

    def _sizes(self) -> list[int]:
        """Neurons of every layer; states are as wide as the widest, filled up with zeros."""
        return [self.hidden_size] * self.num_layers

    def make_parameters(self, **factory: Any) -> None:
        """Makes the parameters of all layers and directions, named as in torch."""
        directions = self._directions[: self.num_directions]
        names = [(f"_l{k}{d}", k) for k in range(self.num_layers) for d in directions]
        widths = [self.num_directions * size for size in self._sizes()]
        self._make(names, [self.input_size, *widths], **factory)

    def forward(
        self,
        x: Tensor | PackedSequence,
        state: Any = None,
        *,
        elapsed: Tensor | PackedSequence | None = None,
        output: str = "all",
    ) -> tuple[Any, Any]:
        """Runs the stack over whole sequences.

        Args:
            x: The sequences; padded tensors are taken as fully valid, ragged ones come packed.
            state: Initial state; zeros if None. A plain tuple will do, such as ``(y, z)``.
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
            ValueError: If a shape or device does not fit, a sequence is empty, x holds NaN, or
                elapsed is negative, not finite, or given to a model without a step size.
            OverflowError: If states leave the grid of ``memory="reversible"`` (on a GPU: NaN).
        """
        if not self.has_step_size:
            refuse_elapsed(self, elapsed)
        if isinstance(x, PackedSequence):
            return self._forward_packed(x, state, elapsed, output)
        x = checked_sequence(x, self.input_size, self.batch_first, self._example)
        if elapsed is not None:
            elapsed = checked_elapsed(elapsed, tuple(x.shape[:-1]), self)
        batched = x.dim() == 3
        if not batched:
            x, elapsed = x[:, None], None if elapsed is None else elapsed[:, None]
        elif self.batch_first:
            x, elapsed = x.transpose(0, 1), None if elapsed is None else elapsed.t()
        start = self._initial(state, x.shape[1] if batched else None)
        result, last = self._run(x, start, None, elapsed, output)
        if not batched:
            last = _unbatched(last)
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
        x_t = checked_step(x_t, self.input_size, self._example)
        batched = x_t.dim() == 2
        if elapsed is not None:
            elapsed = checked_elapsed(elapsed, tuple(x_t.shape[:-1]), self).reshape(1, -1)
        start = self._initial(state, x_t.shape[0] if batched else None)
        x = x_t[None] if batched else x_t[None, None]
        output, last = self._run(x, start, None, elapsed, "last")
        assert output is not None
        return (output, last) if batched else (output[0], _unbatched(last))

    def extra_repr(self) -> str:
        """Names what differs from the defaults."""
        return repr_of(self)

    def flatten_parameters(self) -> None:
        """Does nothing; here because code written for ``torch.nn.LSTM`` calls it."""

    def _initial(self, state: Any, batch: int | None) -> Any:
        """The checked initial state, [L * D, B, H]; ``batch`` is None for an unbatched input."""
        lead = () if batch is None else (batch,)
        shape = (self.num_layers * self.num_directions, *lead, max(self._sizes()))
        start = checked_state(state, shape, self._example, self.state_type)
        return start if batch is not None else type(start)(*(part[:, None] for part in start))

    def _run(
        self, x: Tensor, state: Any, lengths: Tensor | None, elapsed: Tensor | None, output: str
    ) -> tuple[Tensor | None, Any]:
        """Runs the stack: x [T, B, F] -> [T, B, D * H], [B, D * H] or None, and the last state."""
        masks = None
        if self.training and self.dropout > 0 and self.num_layers > 1:
            wide = (x.shape[1], self.num_directions * max(self._sizes()))
            masks = [
                nn.functional.dropout(x.new_ones(wide), self.dropout)
                for _ in range(self.num_layers - 1)
            ]
        with without_autocast(x):
            result, *last = self._kernel(
                x,
                self._suffixes,
                state,
                bidirectional=self.bidirectional,
                lengths=lengths,
                masks=masks,
                elapsed=elapsed,
                output=output,
                memory=self.memory,
            )
        return result, self.state_type(*last)

    def _forward_packed(
        self,
        packed: PackedSequence,
        state: Any,
        elapsed: Tensor | PackedSequence | None,
        output: str,
    ) -> tuple[Any, Any]:
        checked_sequence(packed.data, self.input_size, False, self._example, packed=True)
        x, lengths = pad_packed_sequence(packed)
        if elapsed is not None:
            elapsed = padded_elapsed(elapsed, lengths, self)
        result, last = self._run(x, self._initial(state, x.shape[1]), lengths, elapsed, output)
        if result is None or output == "last":
            return result, last
        order = packed.sorted_indices
        if order is not None:
            result = result.index_select(1, order)
            lengths = lengths[order.cpu()]
        again = pack_padded_sequence(result, lengths)
        return PackedSequence(again.data, again.batch_sizes, order, packed.unsorted_indices), last


def _unbatched(state: Any) -> Any:
    return type(state)(*(part[:, 0] for part in state))
