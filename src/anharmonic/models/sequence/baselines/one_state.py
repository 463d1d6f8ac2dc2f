"""The contract of sequence layers for recurrences with one variable, as a plain loop over time.

A model says the shapes of its parameters, how they start, and one step of one layer. Everything
else (layouts, packed sequences, states, dropout, directions, streaming, checks) is here, once. The
input's part of a layer is one product over the whole sequence; the loop is PyTorch's own, without a
faster backend or a memory policy: these models are compared with, not built on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from anharmonic import _checks
from anharmonic.kernels.stack import OUTPUTS, gaps_walked_back, reversed_in_time
from anharmonic.kernels.steps import Steps, keep
from anharmonic.models.inputs import (
    check_can_step,
    checked_elapsed,
    checked_sequence,
    checked_step,
    padded_elapsed,
    without_autocast,
)
from anharmonic.models.recurrent import _Recurrent, repr_of
from anharmonic.models.sequence.baselines.rnn import HiddenState
from anharmonic.models.sequence.baselines.torch_layers import (
    checked_variables,
    refuse_elapsed,
)
from anharmonic.models.stability import levels_to_caller, warn_unstable

Update = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""``update(h, u, gap)``: one step of one layer.

It takes the state h [B, H], the input's part u of this step [B, ...] and the time since the
previous sample [B, 1] in nominal steps (None where time is even, or the model has no step size).
"""


class _OneState(_Recurrent):
    """A stack of recurrences h_n = update(h_{n-1}, V x_n + b)."""

    _has_step_size: ClassVar[bool] = False

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

    # ---- a model defines these, and `_shapes` and `_initialise` ------------------------------
    def _drive(self, x: Tensor, suffix: str) -> Tensor:
        """The input's part of every step of one layer: [T, B, F] -> [T, B, ...]."""
        return F.linear(x, self._weight("weight_ih" + suffix), self._weight("bias" + suffix))

    def _update(self, suffix: str) -> Update:
        """One step of the layer whose parameters end in ``suffix``."""
        raise NotImplementedError

    # ---- the contract ------------------------------------------------------------------------
    @property
    def num_directions(self) -> int:
        """2 if bidirectional, else 1."""
        return 2 if self.bidirectional else 1

    def _make_layers(self, **factory: Any) -> None:
        """Makes the parameters of all layers and directions, named as in torch."""
        directions = ("", "_reverse")[: self.num_directions]
        names = [(f"_l{k}{d}", k) for k in range(self.num_layers) for d in directions]
        wide = self.num_directions * self.hidden_size
        self._make(names, [self.input_size, *[wide] * self.num_layers], **factory)

    def forward(
        self,
        x: Tensor | PackedSequence,
        state: Any = None,
        *,
        elapsed: Tensor | PackedSequence | None = None,
        output: str = "all",
    ) -> tuple[Any, HiddenState]:
        """Runs the stack over whole sequences; see ``SequenceLayer.forward``.

        Raises:
            TypeError: If a tensor has another dtype than the layer, or the state another form.
            ValueError: If a shape or device does not fit, a sequence is empty, x holds NaN, or
                elapsed is negative, not finite, or given to a model without a step size.
        """
        if not self._has_step_size:
            refuse_elapsed(self, elapsed)
        _checks.choice("output", output, OUTPUTS)
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
        result, h = self._run(x, start, None, elapsed, output)
        if not batched:
            time_first = output == "all"
            result = None if result is None else result[:, 0] if time_first else result[0]
            return result, HiddenState(h[:, 0])
        if output == "all" and self.batch_first and result is not None:
            result = result.transpose(0, 1)
        return result, HiddenState(h)

    def step(
        self, x_t: Tensor, state: Any = None, elapsed: Tensor | None = None
    ) -> tuple[Tensor, HiddenState]:
        """Takes one step of a stream; see ``SequenceLayer.step``.

        Raises:
            ValueError: If the layer is bidirectional, trains with dropout between its layers, the
                input does not fit, or elapsed is given to a model without a step size.
        """
        if not self._has_step_size:
            refuse_elapsed(self, elapsed)
        check_can_step(self)
        x_t = checked_step(x_t, self.input_size, self._example)
        batched = x_t.dim() == 2
        if elapsed is not None:
            elapsed = checked_elapsed(elapsed, tuple(x_t.shape[:-1]), self).reshape(1, -1)
        start = self._initial(state, len(x_t) if batched else None)
        x = x_t[None] if batched else x_t[None, None]
        output, h = self._run(x, start, None, elapsed, "last")
        assert output is not None
        return (output, HiddenState(h)) if batched else (output[0], HiddenState(h[:, 0]))

    def extra_repr(self) -> str:
        """Names what differs from the defaults."""
        return repr_of(self)

    def flatten_parameters(self) -> None:
        """Does nothing; here because code written for ``torch.nn.LSTM`` calls it."""

    def _initial(self, state: Any, batch: int | None) -> Tensor:
        """The checked initial h [L * D, B, H]; ``batch`` is None for an unbatched input."""
        lead = () if batch is None else (batch,)
        if state is None:
            levels = self.num_layers * self.num_directions
            h = self._example.new_zeros((levels, *lead, self.hidden_size))
        else:
            (h,) = checked_variables(self, HiddenState._fields, state, lead, self._example)
        return h[:, None] if batch is None else h

    def _forward_packed(
        self, packed: PackedSequence, state: Any, elapsed: Any, output: str
    ) -> tuple[Any, HiddenState]:
        checked_sequence(packed.data, self.input_size, False, self._example, packed=True)
        x, lengths = pad_packed_sequence(packed)
        if elapsed is not None:
            elapsed = padded_elapsed(elapsed, lengths, self)
        result, h = self._run(x, self._initial(state, x.shape[1]), lengths, elapsed, output)
        if result is None or output == "last":
            return result, HiddenState(h)
        order = packed.sorted_indices
        if order is not None:
            result, lengths = result.index_select(1, order), lengths[order.cpu()]
        again = pack_padded_sequence(result, lengths)
        rows = PackedSequence(again.data, again.batch_sizes, order, packed.unsorted_indices)
        return rows, HiddenState(h)

    def _run(
        self, x: Tensor, start: Tensor, lengths: Tensor | None, elapsed: Tensor | None, output: str
    ) -> tuple[Tensor | None, Tensor]:
        """Runs the stack: x [T, B, F] -> [T, B, D * H], [B, D * H] or None, and h [L * D, B, H]."""
        valid = None
        if lengths is not None:
            steps = torch.arange(len(x), device=x.device)[:, None]
            valid = (steps < lengths.to(x.device))[:, :, None]
        back = None if elapsed is None else gaps_walked_back(elapsed, lengths)
        gaps, D = (elapsed, back), self.num_directions
        ends: list[Tensor] = []
        with without_autocast(x):
            for layer in range(self.num_layers):
                outputs = []
                for direction in range(D):
                    k = D * layer + direction
                    source = reversed_in_time(x, lengths) if direction else x
                    suffix = self._suffixes[k]
                    out, end = self._walk(suffix, Steps(source, gaps[direction], valid), start[k])
                    outputs.append(reversed_in_time(out, lengths) if direction else out)
                    ends.append(end)
                x = torch.cat(outputs, dim=-1)
                if self.training and self.dropout > 0 and layer < self.num_layers - 1:
                    x = x * F.dropout(torch.ones_like(x[0]), self.dropout)  # one mask per sequence
        if output == "all":
            return x, torch.stack(ends)
        return (torch.cat(ends[-D:], dim=-1) if output == "last" else None), torch.stack(ends)

    def _walk(self, suffix: str, steps: Steps, h: Tensor) -> tuple[Tensor, Tensor]:
        """Runs one layer in one direction; states stand still beyond a sequence's end."""
        update = self._update(suffix)
        outputs = []
        drive = self._drive(steps.x, suffix).unbind(0)
        for u, gap, valid in zip(drive, steps.gaps(), steps.holds(), strict=True):
            h = keep(valid, update(h, u, gap), h)
            outputs.append(h)
        return torch.stack(outputs), h


class _WithStepSize(_OneState):
    """Steps of size dt of an equation whose state leaks at the rate ``diffusion``."""

    _has_step_size = True

    def _set_step(self, dt: float, diffusion: float) -> None:
        self.dt = _checks.number("dt", dt, low=0.0, low_open=True)
        self.diffusion = _checks.number("diffusion", diffusion, low=0.0)
        self._warn_unstable()

    def _moved(self, h: Tensor, change: Tensor, gap: Tensor | None) -> Tensor:
        """The state after a step of size dt, or dt times the gap: h + dt * change."""
        return h + (self.dt if gap is None else self.dt * gap) * change

    def _warn_unstable(self, longest: float = 1.0) -> bool:
        values = f"dt={self.dt:g}, diffusion={self.diffusion:g}"
        if self.dt * longest * self.diffusion >= 2:
            advice = "choose a smaller dt or less diffusion"
            return warn_unstable("dt * diffusion must be < 2", values, advice, longest)
        if self.dt * longest > 1:  # explicit steps lengthen what a skew matrix only turns
            return warn_unstable("dt must be <= 1", values, "choose a smaller dt", longest)
        return False
