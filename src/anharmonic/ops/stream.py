"""Single steps of a layer without gradients, prepared once.

A step of a stream is a handful of small products, while checking and making the arguments of the C
library takes ten times as long. So the first step of a stream leaves its call behind, and later
ones only set the pointers of input, state and results. Whatever else could change the answer
is compared before every step; where something differs, the step goes the usual way.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.ops import dispatch
from anharmonic.ops.bridge.call import invoke
from anharmonic.ops.bridge.library import Call
from anharmonic.ops.bridge.native import Recorded

_PLAIN = (bool, int, float, str, type(None))
_NOT_SETTINGS = {*nn.Module().__dict__, "_stream"} - {"training"}


class Stream:
    """The prepared steps of one layer, for one shape of input and state."""

    def __init__(self, layer: nn.Module, recorded: Recorded, shapes: tuple[torch.Size, ...]):
        call = recorded.call
        call.x_batch, call.output_batch = call.inputs, call.hidden
        self._template = bytes(call)
        self._references = recorded.references
        self._dtype = torch.float32 if call.real_bytes == 4 else torch.float64
        self._shapes = shapes
        self._settings = _settings(layer)
        self._weights = _weights(layer)

    @classmethod
    def after(
        cls, layer: nn.Module, calls: list[Recorded], x_t: Tensor, y: Tensor, output: Tensor
    ) -> Stream | None:
        """Prepares steps like the one that made these calls; None if it cannot be repeated.

        Args:
            layer: The layer that took the step.
            calls: The calls it made.
            x_t: Its input.
            y: A state, as the layer takes and gives it.
            output: Its output.

        Shape:
            x_t [B, F] or [F]; y [L, B, H] or [L, H]; output [B, H] or [H].
        """
        # A class of another package may do more in a step than its call. A weight that was copied
        # or computed on the way would stay as it was, and so would dt from a trained parameter.
        if len(calls) != 1 or not type(layer).__module__.startswith("anharmonic."):
            return None
        stream = cls(layer, calls[0], (x_t.shape, y.shape, output.shape))
        addresses = {w.data_ptr() for w in calls[0].references[0] if w.numel()}
        if stream._settings is None or stream._weights is None:
            return None
        return stream if set(stream._weights) == addresses else None

    def fits(self, layer: nn.Module, x_t: Any, state: Any) -> bool:
        """Whether a step of the layer is one of those prepared."""
        x_shape, state_shape, _ = self._shapes
        return (
            not torch.is_grad_enabled()
            and isinstance(state, tuple)
            and len(state) == 2
            and self._is_plain(x_t, x_shape)
            and self._is_plain(state[0], state_shape)
            and self._is_plain(state[1], state_shape)
            and dispatch.forced() in ("auto", "native")
            and dispatch.transformed() is None
            and not _checks.watched()
            and _weights(layer) == self._weights
            and _settings(layer) == self._settings
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

    def step(self, x_t: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Takes a step that fits; returns the output and the new state.

        Raises:
            ValueError: If x_t holds NaN.
            OverflowError: If states leave the grid of the reversible policy.
        """
        _checks.no_nan("x_t", x_t)
        y_new, z_new = torch.empty_like(y), torch.empty_like(z)
        output = x_t.new_empty(self._shapes[2])
        call = Call.from_buffer_copy(self._template)  # threads may step one layer at once
        call.threads = torch.get_num_threads()
        call.x, call.y0, call.z0 = x_t.data_ptr(), y.data_ptr(), z.data_ptr()
        call.y_n, call.z_n, call.output = y_new.data_ptr(), z_new.data_ptr(), output.data_ptr()
        invoke("an_forward", call)
        return output, y_new, z_new


def _settings(layer: nn.Module) -> dict[str, Any] | None:
    """The layer's own settings, among them whether it trains; None if one may change unseen."""
    settings = {}
    for name, value in layer.__dict__.items():
        if name in _NOT_SETTINGS:
            continue
        if type(value) in (list, tuple):
            value = tuple(value)
        elif type(value) not in _PLAIN:
            return None
        settings[name] = value
    return settings


def _weights(layer: nn.Module) -> dict[int, torch.dtype] | None:
    """Where the weights lie, and their kind; None if one is not contiguous."""
    weights = {}
    for weight in (*layer._parameters.values(), *layer._buffers.values()):
        if weight is not None:
            if not weight.is_contiguous():
                return None
            weights[weight.data_ptr()] = weight.dtype
    return weights
