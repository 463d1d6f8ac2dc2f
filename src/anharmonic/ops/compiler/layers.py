"""Compiled layers without hand-written kernels: a stack as successive recurrences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from anharmonic._tensors import watched
from anharmonic.ops import reference
from anharmonic.ops.backend import forced
from anharmonic.ops.compiler.recurrence import Compiling, Form
from anharmonic.ops.equation import Equation
from anharmonic.ops.reference import Stack, Steps, keep, within, without_autocast

_SHORTEST = 32
"""Number of steps from which "auto" compiles, because compiling takes seconds."""


class CompiledSteps(Compiling):
    """The compiled steps of one layer module."""

    def serve(self, x: Tensor, memory: str) -> bool:
        """Whether to call ``run`` for an input; if not, the reference runs it."""
        if watched() or torch.compiler.is_exporting():
            return False
        shortest = 2 if self.compiled is True else _SHORTEST
        reason = None
        if self.compiled is False:
            reason = "compiled=False was given"
        elif forced() != "auto":
            reason = f"the backend {forced()!r} is chosen"
        elif memory == "reversible":
            reason = "memory='reversible' is not compiled"
        elif x.shape[0] < shortest:
            reason = f"the last call had fewer than {shortest} steps"
        if reason:
            self.run_loop(reason)
        return reason is None

    def run(
        self,
        equation: Equation,
        x: Tensor,
        weights: Sequence[Any],
        state: Sequence[Tensor],
        *,
        lengths: Tensor | None,
        masks: Sequence[Tensor] | None,
        elapsed: Tensor | None,
        return_sequence: bool,
        memory: str,
    ) -> tuple[Any, ...]:
        """Run a stack in one direction like ``reference.run``, which runs uncompiled steps."""
        valid = None if lengths is None else within(x, lengths)
        equations = [equation.of_layer(k) for k in range(len(weights))]
        stack, level, ends = Stack(equations, masks, return_sequence), x, []
        for k, (own, w) in enumerate(zip(equations, weights, strict=True)):
            start = own.State(*(variable[k] for variable in state))
            form = LayerForm(own, level, w, start, elapsed, valid)
            wanted = return_sequence or k < len(weights) - 1
            with without_autocast(x):
                found = self.run_compiled(form, memory, wanted)
            if found is None:
                return reference.run(
                    equation, x, weights, state, lengths=lengths, masks=masks, elapsed=elapsed,
                    return_sequence=return_sequence, memory=memory,
                )  # fmt: skip
            output, end = found
            ends.append(end)
            if output is not None:
                level = stack.hand_up(k, output, start, valid)
        last = [torch.stack(variables) for variables in zip(*ends, strict=True)]
        return level if return_sequence else None, *last


class LayerForm(Form):
    """A call of one layer, with inputs x, elapsed times and running sequences, if given."""

    def __init__(
        self, equation: Equation, x: Tensor, weights: Any, state: Any, elapsed: Tensor | None,
        valid: Tensor | None,
    ) -> None:  # fmt: skip
        self._equation = equation
        self._uneven, self._ragged = elapsed is not None, valid is not None
        inputs = [x]
        if elapsed is not None:
            inputs.append(elapsed[:, :, None])
        if valid is not None:
            inputs.append(valid.to(x.dtype))
        super().__init__(self._one, inputs, state, weights)

    def _one(self, inputs: list[Tensor], state: Any, weights: Any) -> Any:
        """Take one step including the drive; the compiler finds parts independent of the state."""
        own, (x, *others) = self._equation, inputs
        drive = own.drive(own.source([x[None]]), weights)
        if isinstance(drive, Tensor):
            u: Any = drive.squeeze(0)
        else:
            u = type(drive)._make(part.squeeze(0) for part in drive)
        dt = own.step_size(weights)
        if self._uneven:
            dt = dt * others[0]
        new = own.step(u, state, own.prepare(weights), dt)
        if self._ragged:
            running = others[-1] > 0
            new = type(state)._make(keep(running, a, b) for a, b in zip(new, state, strict=True))
        return new

    def loop(
        self, inputs: list[Tensor], state: list[Tensor], weights: list[Tensor],
        return_sequence: bool = True,
    ) -> tuple[Any, list[Tensor]]:  # fmt: skip
        """Run like the reference, with the drive of the whole sequence at once."""
        x, *others = inputs
        elapsed = others[0][:, :, 0] if self._uneven else None
        valid = others[-1] > 0 if self._ragged else None
        output, end = reference.walk(
            self._equation, self.weights_of(weights), [x], self.state_of(state),
            Steps(x, elapsed, valid),
        )  # fmt: skip
        return output, list(end)
