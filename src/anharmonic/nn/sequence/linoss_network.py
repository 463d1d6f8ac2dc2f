"""The published block of LinOSS, and a stack of such blocks called like ``nn.LSTM``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.nn.sequence.inputs import check_can_step, checked_elapsed
from anharmonic.nn.sequence.layer import SequenceLayer
from anharmonic.nn.sequence.linoss import MIN_STIFFNESS, LinOSS
from anharmonic.nn.store import Stored, repr_of
from anharmonic.ops import Equation, State
from anharmonic.ops.reference import within, without_autocast
from anharmonic.ops.sequence import OUTPUTS, gaps_walked_back, reversed_in_time

NORMS = ("layer", "batch")


class LinOSSBlock(Stored, nn.Module):
    r"""LinOSS block: norm, oscillators, GELU and a gated linear unit, with a skip connection.

    .. math::
        v = \text{norm}(x), \quad r = \text{GELU}(C\,y(v) + d \odot v), \quad
        x' = x + \text{GLU}(W r + q)

    y(v) are the positions of 2 P paired oscillators driven by v, the real and imaginary parts of
    the publication's P oscillators. d starts from N(0, 1), C from U(-1/sqrt(P), 1/sqrt(P)).

    Args:
        size: Features of input and output, H >= 1.
        state_size: Pairs of oscillators, P >= 1.
        scheme: "implicit" (IM) or "implicit-explicit" (IMEX).
        damping: Whether every oscillator learns a damping (D-LinOSS); needs "implicit-explicit".
        norm: "layer" (over the features of a step) or "batch" (as published, over all steps of a
            batch; in training a sequence then depends on the others in its batch).
        min_stiffness: The least stiffness of an oscillator, >= 0; see ``LinOSS``.
        dropout: Probability in [0, 1] of zeroing a feature after GELU and after the gate; one mask
            per sequence.
        batch_first: Whether input and output are [B, T, H] instead of [T, B, H].
        memory: What to keep for the backward pass; see ``LinOSS``.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, H], [B, T, H] with ``batch_first``; lengths [B]; elapsed [T, B], or [B, T] with
        ``batch_first``; output as x; state: y, z [1, B, 2 P].

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Example:
        >>> import torch
        >>> block = LinOSSBlock(16, 8, batch_first=True)
        >>> output, state = block(torch.zeros(4, 100, 16))
        >>> output.shape, state.y.shape
        (torch.Size([4, 100, 16]), torch.Size([1, 4, 16]))

    References:
        Rusch and Rus, Oscillatory State-Space Models, ICLR 2025.
    """

    def __init__(
        self,
        size: int,
        state_size: int,
        *,
        scheme: str = "implicit",
        damping: bool = False,
        norm: str = "layer",
        min_stiffness: float = MIN_STIFFNESS,
        dropout: float = 0.0,
        batch_first: bool = False,
        memory: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.size = _checks.positive_int("size", size)
        self.state_size = _checks.positive_int("state_size", state_size)
        self.norm = _checks.choice("norm", norm, NORMS)
        self.dropout = _checks.number("dropout", dropout, low=0.0, high=1.0)
        self.batch_first = _checks.boolean("batch_first", batch_first)
        self.scheme, self.damping, self.memory = scheme, damping, memory
        self.min_stiffness = min_stiffness
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.normalise: nn.Module
        if norm == "layer":
            self.normalise = nn.LayerNorm(size, elementwise_affine=False)
        else:
            self.normalise = nn.BatchNorm1d(size, affine=False, **factory)
        self.oscillators = LinOSS(
            size, 2 * state_size, scheme=scheme, damping=damping, min_stiffness=min_stiffness,
            paired=True, bias=False, memory=memory, **factory,
        )  # fmt: skip
        self.readout = nn.Linear(2 * state_size, size, bias=False, **factory)
        self.direct = nn.Parameter(torch.empty(size, **factory))
        self.gate = nn.Linear(size, 2 * size, **factory)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraw every weight from its initial distribution."""
        self.oscillators.reset_parameters()
        self.gate.reset_parameters()
        bound = 1 / math.sqrt(self.state_size)
        with torch.no_grad():
            self.readout.weight.uniform_(-bound, bound)
            self.direct.normal_()

    def forward(
        self,
        x: Tensor,
        state: Any = None,
        *,
        lengths: Tensor | None = None,
        elapsed: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        """Run over whole sequences, or over the next part of long ones.

        Args:
            x: The sequences, padded at the end.
            state: State returned by the call on the previous part; zeros if None.
            lengths: Valid steps of each sequence (int64, 1 to T); all if None.
            elapsed: Time since the previous sample in nominal steps; 1 if None.

        Returns:
            The output and the state at the last valid steps. Output values past the end of a
            sequence are undefined.

        Raises:
            ValueError: If a shape does not fit, or elapsed is negative or not finite.
            TypeError: If a dtype does not fit.
        """
        _checks.require(
            isinstance(x, Tensor) and x.dim() == 3 and x.shape[2] == self.size, "x", x,
            f"a batch of sequences of {self.size} features", "put a single sequence into a batch",
        )  # fmt: skip
        if elapsed is not None:
            elapsed = checked_elapsed(elapsed, tuple(x.shape[:2]), self.oscillators)
        if self.batch_first:
            elapsed = None if elapsed is None else elapsed.transpose(0, 1)
            output, last = self.run_padded(x.transpose(0, 1), state, lengths, elapsed)
            return output.transpose(0, 1), last
        return self.run_padded(x, state, lengths, elapsed)

    def run_padded(
        self, x: Tensor, state: Any, lengths: Tensor | None, elapsed: Tensor | None
    ) -> tuple[Tensor, State]:
        """Run ``forward`` with x [T, B, H] and elapsed [T, B], ignoring ``batch_first``."""
        v = self._normalised(x, lengths)
        layer = self.oscillators
        equation = layer.equation()
        weights = layer._weights(equation)
        y, last = layer._run(equation, weights, v, state, True, lengths, elapsed, "all")
        assert y is not None
        r = self._drop(F.gelu(torch.addcmul(self.readout(y), self.direct, v)))
        return x + self._drop(F.glu(self.gate(r), dim=-1)), last

    def _normalised(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        if self.norm == "layer":
            return self.normalise(x)  # type: ignore[no-any-return]
        if lengths is None:
            return self.normalise(x.flatten(0, 1)).view_as(x)  # type: ignore[no-any-return]
        valid = within(x, lengths)[:, :, 0]
        v = torch.zeros_like(x)
        v[valid] = self.normalise(x[valid])
        return v

    def _drop(self, x: Tensor) -> Tensor:
        if not self.training or self.dropout == 0:
            return x
        return x * F.dropout(x.new_ones(x.shape[1:]), self.dropout)

    extra_repr = repr_of


class LinOSSNetwork(SequenceLayer):
    r"""Blocks of oscillators after a linear encoder, called like ``nn.LSTM``.

    The published model without its readout, which ``SequenceModel`` adds:
    ``SequenceModel("LinOSSNetwork", ..., readout="mean")``. Unlike in ``LinOSS``, the output is not
    a variable of the state.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Features between the blocks and of the output, H >= 1.
        num_layers: Blocks, L >= 1.
        state_size: Pairs of oscillators in a block, P >= 1; None for half of ``hidden_size``.
        scheme: "implicit" (IM) or "implicit-explicit" (IMEX).
        damping: Whether every oscillator learns a damping (D-LinOSS); needs "implicit-explicit".
        norm: "layer" or "batch"; see ``LinOSSBlock``.
        min_stiffness: The least stiffness of an oscillator, >= 0; see ``LinOSS``.
        bias: Whether the encoder has a bias.
        dropout: Probability in [0, 1] of zeroing a feature, twice in each block; one mask per
            sequence.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        bidirectional: Whether separate blocks also read the sequence backwards.
        memory: What to keep for the backward pass; see ``LinOSS``.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: y, z [L * D, B, 2 P]; elapsed [T, B] likewise.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Note:
        The publication normalises over the batch (``norm="batch"``). The default here normalises
        over the features of a step, so that a stream, a batch and a padded batch give the same
        numbers.

    Example:
        >>> import torch
        >>> network = LinOSSNetwork(6, 16, num_layers=2, batch_first=True)
        >>> output, state = network(torch.zeros(8, 100, 6))
        >>> output.shape, state.y.shape
        (torch.Size([8, 100, 16]), torch.Size([2, 8, 16]))

    References:
        Rusch and Rus, Oscillatory State-Space Models, ICLR 2025; Boyer, Rusch and Rus, Learning to
        Dissipate Energy in Oscillatory State-Space Models, 2025.
    """

    state_type = State
    has_step_size = True
    output_is_state = False
    dt = 1.0

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 2,
        *,
        state_size: int | None = None,
        scheme: str = "implicit",
        damping: bool = False,
        norm: str = "layer",
        min_stiffness: float = MIN_STIFFNESS,
        bias: bool = True,
        dropout: float = 0.0,
        batch_first: bool = False,
        bidirectional: bool = False,
        memory: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, bidirectional=bidirectional,
            memory=memory,
        )  # fmt: skip
        self.dropout = dropout
        self.scheme, self.damping, self.norm = scheme, damping, norm
        self.min_stiffness = min_stiffness
        self.state_size = (hidden_size + 1) // 2 if state_size is None else state_size
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.encoder = nn.Linear(input_size, hidden_size, bias, **factory)
        # Layer by layer, the forward direction first, as in the state.
        self.blocks = nn.ModuleList(
            LinOSSBlock(
                hidden_size, self.state_size, scheme=scheme, damping=damping, norm=norm,
                min_stiffness=min_stiffness, dropout=dropout, memory=memory, **factory,
            )
            for _ in range(num_layers * self.num_directions)
        )  # fmt: skip
        self._state_size = 2 * self.state_size
        self._suffixes = [f"_{k}" for k in range(len(self.blocks))]

    def reset_parameters(self) -> None:
        """Redraw every weight from its initial distribution."""
        for part in (self.encoder, *self.blocks):
            part.reset_parameters()

    def equation(self) -> Equation:
        """Return the oscillators' equation, which is the same in every block."""
        equation: Equation = self.blocks[0].oscillators.equation()  # type: ignore[operator,union-attr]
        return equation

    def _weights(self, equation: Equation, suffixes: Sequence[str] | None = None) -> list[Any]:
        return [(self.encoder.weight,)]

    @property
    def _example(self) -> Tensor:
        return self.encoder.weight

    def step(
        self, x_t: Tensor, state: Any = None, elapsed: Tensor | None = None
    ) -> tuple[Any, Any]:
        """Take one step of a stream; see ``SequenceLayer.step``.

        Raises:
            ValueError: If the network trains with dropout or batch norm, or the input does not fit.
        """
        check_can_step(self)
        _checks.require(
            not self.training or (self.dropout == 0 and self.norm == "layer"),
            "training", True, "False for step() with dropout or the norm over a batch",
            "call layer.eval() first, or train on whole sequences",
        )  # fmt: skip
        return super().step(x_t, state, elapsed)

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
        _checks.choice("output", output, OUTPUTS)
        start = self._start(state, x, batched)
        with without_autocast(x):
            encoded = self.encoder(x)
            ways = [
                self._one_way(direction, encoded, start, lengths, elapsed)
                for direction in range(self.num_directions)
            ]
        # In the order of the blocks: layer by layer, the forward direction first.
        ends = [end for layer in zip(*(way[1] for way in ways), strict=True) for end in layer]
        last = State(*(torch.cat(parts) for parts in zip(*ends, strict=True)))
        if not batched:
            last = State(last.y[:, 0], last.z[:, 0])
        if output == "none":
            return None, last
        if output == "last":
            if lengths is None:  # (without the number of steps, which an export leaves open)
                return torch.cat([level[-1] for level, _ in ways], dim=-1), last
            final = lengths.to(x.device) - 1
            rows = torch.arange(x.shape[1], device=x.device)
            return torch.cat([level[final, rows] for level, _ in ways], dim=-1), last
        result = ways[0][0]
        if self.bidirectional:
            result = torch.cat([result, reversed_in_time(ways[1][0], lengths)], dim=-1)
        if lengths is not None:
            result = torch.where(within(x, lengths), result, torch.zeros_like(result))
        return result, last

    def _one_way(
        self, direction: int, x: Tensor, start: State, lengths: Tensor | None,
        elapsed: Tensor | None,
    ) -> tuple[Tensor, list[State]]:  # fmt: skip
        """Return the output of one direction's blocks, in its time order, and their last states."""
        if direction == 1:
            x = reversed_in_time(x, lengths)
            elapsed = None if elapsed is None else gaps_walked_back(elapsed, lengths)
        ends = []
        for k in range(direction, len(self.blocks), self.num_directions):
            own = State(start.y[k : k + 1], start.z[k : k + 1])
            x, end = self.blocks[k].run_padded(x, own, lengths, elapsed)  # type: ignore[operator]
            ends.append(end)
        return x, ends

    def explain(self) -> str:
        """Return how the oscillators of the first block ran; see ``anharmonic.explain``."""
        said: str = self.blocks[0].oscillators.explain()  # type: ignore[operator,union-attr]
        return said
