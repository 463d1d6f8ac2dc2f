"""Sequence layers that run through the kernels: memory policies, and streams prepared once."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, ClassVar

import torch
from torch import Tensor

from anharmonic.nn.sequence.base import SequenceLayer
from anharmonic.ops.bridge.native import recording
from anharmonic.ops.memory import checked_policy
from anharmonic.ops.recurrence import State
from anharmonic.ops.stream import Stream


class KernelLayer(SequenceLayer):
    """A sequence layer whose stack is one call of a kernel.

    Args:
        memory: What is kept for the backward pass: "stored" states, "chunked" (a state now and
            then, the rest computed again), or "auto", which picks between them by size.
    """

    _invertible: ClassVar[bool] = False  # whether memory="reversible" can undo its steps

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        memory: str,
    ) -> None:
        """Checks and keeps the words every layer with kernels shares."""
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional
        )
        self.memory = checked_policy(
            memory, invertible=self._invertible, bidirectional=self.bidirectional
        )

    def step(
        self, x_t: Tensor, state: Any = None, elapsed: Tensor | None = None
    ) -> tuple[Any, Any]:
        """Takes one step of a stream; see ``SequenceLayer.step``.

        Raises:
            ValueError: If the layer is bidirectional, trains with dropout between its layers, or
                the input does not fit.
        """
        plain = elapsed is None and not torch.compiler.is_compiling()
        stream = self.__dict__.get("_stream") if plain else None
        if stream is not None and stream.fits(self, x_t, state):
            output, y, z = stream.step(x_t, *state)
            return output, State(y, z)
        alone = plain and not torch.is_grad_enabled()
        with recording() if alone else nullcontext() as calls:
            output, last = super().step(x_t, state, elapsed)
        if calls is not None:
            self.__dict__["_stream"] = Stream.after(self, calls, x_t, last[0], output)
        return output, last

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and pickled: all but the prepared steps of a stream."""
        return {name: value for name, value in self.__dict__.items() if name != "_stream"}
