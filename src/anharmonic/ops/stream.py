"""Single steps of a stack without gradients, prepared once.

A step of a stream is a few small products. Checking and preparing the arguments of the C library
takes ten times as long. A ``Stream`` keeps the arguments of one call; a step then only sets the
pointers of input, state and results. Everything that could change the result is compared before
each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from anharmonic import _tensors
from anharmonic.ops import native
from anharmonic.ops.backend import choose, current_precision, forced, transformed
from anharmonic.ops.equation import Equation, State
from anharmonic.ops.library import Call
from anharmonic.ops.native import invoke


class Stream:
    """The prepared steps of one stack, for one shape of input and state."""

    def __init__(
        self, equation: Equation, weights: Sequence[Any], x_t: Tensor, state: State, memory: str
    ):
        batched = x_t.dim() == 2
        x, y = (x_t[None], state.y) if batched else (x_t[None, None], state.y[:, None])
        call = native.prepared_call(equation, x, weights, y, memory)
        call.x_batch, call.output_batch = call.inputs, call.hidden
        self._template, self._references = bytes(call), call.references
        self._equation, self._weights = equation, _described(weights)
        self._dtype, self._precision = x_t.dtype, current_precision()
        self._shapes = x_t.shape, state.y.shape, state.y.shape[1:]

    @classmethod
    def prepare(
        cls, equation: Equation, weights: Sequence[Any], x_t: Tensor, state: State, memory: str
    ) -> Stream | None:
        """Prepare steps like this one; return None if they cannot be reused.

        x_t is [B, F] or [F], each variable of the state [L, B, H] or [L, H]. ``memory`` determines
        whether states are on a grid.
        """
        tensors = [w for weight in weights for w in weight if w is not None]
        compiled = equation.compiled()
        if (
            compiled is None
            # Computed weights or numbers would become outdated.
            or any(isinstance(number, Tensor) for number in compiled.numbers)
            or compiled.weights is not None
            or x_t.numel() == 0
            or not all(w.is_contiguous() and not w.is_neg() for w in tensors)
            or choose(equation.kernel, "auto", [x_t, *state, *tensors]) != "native"
        ):
            return None
        return cls(equation, weights, x_t, state, memory)

    def fits(self, equation: Equation, weights: Sequence[Any], x_t: Any, state: Any) -> bool:
        """Whether the prepared call fits a step."""
        x_shape, state_shape, _ = self._shapes
        return (
            not torch.is_grad_enabled()
            and isinstance(state, tuple)
            and len(state) == 2
            and self._is_plain(x_t, x_shape)
            and self._is_plain(state[0], state_shape)
            and self._is_plain(state[1], state_shape)
            and forced() in ("auto", "native")
            and current_precision() == self._precision
            and transformed() is None
            and not _tensors.watched()
            and equation == self._equation
            and _described(weights) == self._weights
        )

    def _is_plain(self, value: Any, shape: torch.Size) -> bool:
        return (
            type(value) is Tensor
            and value.shape == shape
            and value.dtype is self._dtype
            and value.is_cpu
            and value.is_contiguous()
            and not value.is_neg()
        )

    def step(self, x_t: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, State]:
        """Take a fitting step and return the output and the new state.

        Raises:
            OverflowError: If states leave the grid of the reversible policy.
        """
        y_new, z_new = torch.empty_like(y), torch.empty_like(z)
        output = x_t.new_empty(self._shapes[2])
        call = Call.from_buffer_copy(self._template)  # several threads may step one layer
        call.threads = torch.get_num_threads()
        call.x, call.y0, call.z0 = x_t.data_ptr(), y.data_ptr(), z.data_ptr()
        call.y_n, call.z_n, call.output = y_new.data_ptr(), z_new.data_ptr(), output.data_ptr()
        invoke("an_forward", call)
        return output, State(y_new, z_new)


def _described(weights: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the weights' addresses and layouts."""
    return [
        (w.data_ptr(), w.dtype, w.shape, w.is_contiguous())
        for weight in weights
        for w in weight
        if w is not None
    ]
