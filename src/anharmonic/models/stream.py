"""Single steps of a layer without gradients, prepared once.

A step of a stream is a handful of small products, while checking and filling the arguments of the
C library takes ten times as long. So the first step of a stream leaves its filled call behind, and
later ones only set the pointers of input, state and results. Whatever else could change the answer
is compared before every step; where something differs, the step goes the usual way.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.kernels import dispatch, native
from anharmonic.kernels.call import Call
from anharmonic.kernels.library import library
from anharmonic.kernels.native import Recorded
from anharmonic.models.inputs import State

_PLAIN = (bool, int, float, str, tuple, list, type(None))


class Stream:
    """The prepared steps of one layer, for one shape of input and state."""

    def __init__(self, call: Call, alive: list[Any], x_t: Tensor, output: Tensor, state: State):
        call.x_batch = x_t.shape[-1]
        call.output_batch = output.shape[-1]
        self._template = bytes(call)
        self._alive = alive
        self._dtype = x_t.dtype
        self._shapes = x_t.shape, state.y.shape, output.shape
        self._words: dict[str, Any] = {}
        self._pointers: list[int] = []

    @classmethod
    def after(
        cls, layer: Any, calls: list[Recorded], x_t: Tensor, output: Tensor, state: State
    ) -> Stream | None:
        """Prepares steps like the one that made these calls; None if it cannot be repeated."""
        pointers = _pointers(layer)
        # A weight that was copied or computed on the way would stay as it was, as would dt, say,
        # computed from a trained parameter.
        if len(calls) != 1 or calls[0].weights != set(pointers):
            return None
        stream = cls(calls[0].call, calls[0].alive, x_t, output, state)
        stream._words, stream._pointers = _words(layer), pointers
        return stream

    def fits(self, layer: Any, x_t: Any, state: Any) -> bool:
        """Whether a step of the layer is one of those prepared."""
        x_shape, state_shape, _ = self._shapes
        return (
            not torch.is_grad_enabled()
            and type(state) in (State, tuple)
            and len(state) == 2
            and self._is_plain(x_t, x_shape)
            and self._is_plain(state[0], state_shape)
            and self._is_plain(state[1], state_shape)
            and dispatch.forced() in ("auto", "native")
            and dispatch.transformed() is None
            and _pointers(layer) == self._pointers
            and layer._example.dtype is self._dtype
            and _words(layer) == self._words
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

    def step(self, x_t: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, State]:
        """Takes a step that fits."""
        _checks.no_nan("x_t", x_t)
        y, z = state
        result = State(torch.empty_like(y), torch.empty_like(z))
        output = x_t.new_empty(self._shapes[2])
        call = Call.from_buffer_copy(self._template)  # threads may step one layer at once
        call.threads = torch.get_num_threads()
        call.x, call.y0, call.z0 = x_t.data_ptr(), y.data_ptr(), z.data_ptr()
        call.y_n, call.z_n = result.y.data_ptr(), result.z.data_ptr()
        call.output = output.data_ptr()
        native.check(library().an_forward(ctypes.byref(call)))  # type: ignore[union-attr]
        return output, result


def _words(layer: Any) -> dict[str, Any]:
    """The layer's own settings, among them whether it trains."""
    return {name: word for name, word in layer.__dict__.items() if type(word) in _PLAIN}


def _pointers(layer: Any) -> list[int]:
    return [t.data_ptr() for t in (*layer._parameters.values(), *layer._buffers.values())]
