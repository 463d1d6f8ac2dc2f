"""What the layers that torch brings need to keep this package's contract.

They take the same words, check input in the same voice, return named-tuple states and can stream.
Their arithmetic is torch's own, and so is their dropout (a new mask at every step).
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from anharmonic import _checks
from anharmonic.nn.sequence.inputs import (
    check_can_step,
    checked_sequence,
    checked_state,
    checked_step,
    refuse_elapsed,
)
from anharmonic.nn.sequence.recurrent import repr_of
from anharmonic.nn.store import Stored
from anharmonic.ops.sequence import OUTPUTS


class _TorchLayer(Stored, nn.RNNBase):
    """Mixed into ``nn.RNN``, ``nn.LSTM`` and ``nn.GRU``."""

    state_type: ClassVar[Any]

    def forward(
        self,
        x: Tensor | PackedSequence,
        state: Any = None,
        *,
        elapsed: None = None,
        output: str = "all",
    ) -> tuple[Any, Any]:
        """Runs the stack over whole sequences; see ``SequenceLayer.forward``.

        torch makes the whole output in any case: with another ``output`` it is not returned.

        Raises:
            TypeError: If a tensor has another dtype than the layer, or the state another form.
            ValueError: If a shape or device does not fit, a sequence is empty, x holds NaN, or
                elapsed is given, which these equations have no place for.
        """
        refuse_elapsed(self, elapsed)
        _checks.choice("output", output, OUTPUTS)
        example = next(self.parameters())
        if isinstance(x, PackedSequence):
            checked_sequence(x.data, self.input_size, False, example, packed=True)
            lead: tuple[int, ...] = (int(x.batch_sizes[0]),)
        else:
            x = checked_sequence(x, self.input_size, self.batch_first, example)
            lead = () if x.dim() == 2 else (x.shape[0 if self.batch_first else 1],)
        given = None
        if state is not None:
            levels = self.num_layers * (2 if self.bidirectional else 1)
            shape = (levels, *lead, self.hidden_size)
            variables = tuple(checked_state(state, shape, example, self.state_type))
            given = variables if len(variables) > 1 else variables[0]
        if isinstance(x, PackedSequence) and not self.bidirectional and not x.data.is_cuda:
            result, last = self._by_lengths(x, given)
        else:
            result, last = super().forward(x, given)
        end = self.state_type(*(last if isinstance(last, tuple) else (last,)))
        if output == "all":
            return result, end
        directions = 2 if self.bidirectional else 1
        return (torch.cat(tuple(end[0][-directions:]), dim=-1) if output == "last" else None), end

    def _by_lengths(self, packed: PackedSequence, given: Any) -> tuple[PackedSequence, Any]:
        """Runs packed sequences stretch by stretch, between the steps at which one of them ends.

        The same numbers as torch's own way, whose backward pass on a CPU takes time that grows with
        the square of the number of steps.
        """
        sizes, steps = torch.unique_consecutive(packed.batch_sizes, return_counts=True)
        states = given if isinstance(given, tuple) else (given,)
        if packed.sorted_indices is not None and given is not None:
            states = tuple(part[:, packed.sorted_indices] for part in states)
        outputs, ended, first = [], [], 0
        time = 1 if self.batch_first else 0
        for batch, length in zip(sizes.tolist(), steps.tolist(), strict=True):
            x = packed.data[first : first + length * batch].view(length, batch, -1)
            first += length * batch
            if states[0] is not None:
                ended.append(tuple(part[:, batch:] for part in states))
                states = tuple(part[:, :batch].contiguous() for part in states)
            state = states if len(states) > 1 else states[0]
            out, last = super().forward(x.transpose(0, time), state)
            states = last if isinstance(last, tuple) else (last,)
            outputs.append(out.transpose(0, time).flatten(0, 1))
        ended.append(states)
        parts = [torch.cat(part[::-1], 1) for part in zip(*ended, strict=True)]
        if packed.unsorted_indices is not None:
            parts = [part[:, packed.unsorted_indices] for part in parts]
        result = PackedSequence(
            torch.cat(outputs), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices
        )
        return result, tuple(parts) if len(parts) > 1 else parts[0]

    def step(self, x_t: Tensor, state: Any = None, elapsed: None = None) -> tuple[Tensor, Any]:
        """Takes one step of a stream; see ``SequenceLayer.step``.

        Raises:
            ValueError: If the layer is bidirectional, trains with dropout between its layers, the
                input does not fit, or elapsed is given.
        """
        refuse_elapsed(self, elapsed)
        check_can_step(self)
        x_t = checked_step(x_t, self.input_size, next(self.parameters()))
        time = 1 if self.batch_first and x_t.dim() == 2 else 0
        output, last = self(x_t.unsqueeze(time), state)
        return output.squeeze(time), last

    def extra_repr(self) -> str:
        """Names what differs from the defaults."""
        return repr_of(self)


def torch_arguments(
    input_size: int,
    hidden_size: int,
    num_layers: int,
    bias: bool,
    batch_first: bool,
    dropout: float,
    bidirectional: bool,
    device: torch.device | str | None,
    dtype: torch.dtype | None,
) -> dict[str, Any]:
    """Checks the words every sequence layer shares, in this package's voice."""
    return {
        "input_size": _checks.positive_int("input_size", input_size),
        "hidden_size": _checks.positive_int("hidden_size", hidden_size),
        "num_layers": _checks.positive_int("num_layers", num_layers),
        "bias": _checks.boolean("bias", bias),
        "batch_first": _checks.boolean("batch_first", batch_first),
        "dropout": _checks.number("dropout", dropout, low=0.0, high=1.0),
        "bidirectional": _checks.boolean("bidirectional", bidirectional),
        "device": device,
        "dtype": dtype,
    }
