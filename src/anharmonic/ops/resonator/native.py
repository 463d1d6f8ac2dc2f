"""Resonators in the compiled library (csrc/resonator.h); without gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from anharmonic._checks import watched
from anharmonic.ops.backend import needs_gradient, unfit_for_cpu
from anharmonic.ops.library import ResonatorCall
from anharmonic.ops.native import dense, invoke
from anharmonic.ops.resonator.pools import Driven
from anharmonic.ops.resonator.step import propagator

MOST_BIASES = 16
"""AN_MOST_BIASES of csrc/anharmonic.h."""


def unfit(tensors: Sequence[Tensor]) -> str | None:
    """Why the library cannot run these tensors; None if it can."""
    if needs_gradient(tensors):
        return "a tensor that needs a gradient"
    return "a call that is traced" if watched() else unfit_for_cpu(tensors)


def pool_native(
    driven: Driven, biases: Tensor, state: Tensor, pooled: Tensor, before: Tensor
) -> tuple[Tensor, Tensor]:
    """The chain of ``ops.resonator.pool`` as one call."""
    state, pooled = dense(state).clone(), dense(pooled).clone()
    Prepared(driven, biases, state, pooled, before).run()
    return state, pooled


def respond_native(driven: Driven, state: Tensor) -> tuple[Tensor, Tensor]:
    """The chain of ``ops.resonator.respond`` as one call."""
    state = dense(state).clone()
    output = driven.x.new_empty(len(driven.x), *state.shape[1:])
    none = state.new_zeros(2, 0, state.shape[-1])
    Prepared(driven, none, state, None, None, output).run()
    return output, state


class Prepared:
    """A call that can be repeated: it reads x, elapsed and before, and changes state and pools.

    All are taken as they lie in memory: a stream fills in its next sample and runs again.
    """

    def __init__(
        self,
        driven: Driven,
        biases: Tensor,
        state: Tensor,
        pooled: Tensor | None,
        before: Tensor | None,
        output: Tensor | None = None,
    ) -> None:
        x, offsets, weight, elapsed = map(_dense, (*driven[:3], driven.elapsed))
        steps = torch.stack(driven.step or propagator(driven.frequency, driven.q))
        frequency, q, biases = driven.frequency.double(), driven.q.double(), dense(biases)
        elapsed = None if elapsed is None else elapsed.double()
        tensors = (
            offsets, before, x, weight, steps, elapsed, frequency, q, biases, state, pooled, output
        )  # fmt: skip
        self._kept = tensors
        self._call = ResonatorCall(
            x.element_size(),
            torch.get_num_threads(),
            len(offsets) - 1,
            x.shape[1],
            len(frequency),
            biases.shape[1],
            *(None if t is None else t.data_ptr() for t in tensors),
        )

    def run(self) -> None:
        """Makes the call."""
        invoke("an_resonate", self._call)


def _dense(tensor: Any) -> Any:
    return None if tensor is None else dense(tensor)
