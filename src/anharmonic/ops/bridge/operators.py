"""The operators ``anharmonic::walk`` and ``anharmonic::walk_backward``: all recurrences, compiled.

They carry the C library into autograd, ``torch.compile`` and export; ``native.run`` calls them.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic._checks import message
from anharmonic.ops.bridge.call import Call
from anharmonic.ops.bridge.fill import (
    Inputs,
    dense,
    dense_rows,
    filled,
    gradients,
    invoke,
    kept_bytes,
    pointer,
    pointers,
    results,
)
from anharmonic.ops.bridge.plan import Plan

_recorder = threading.local()


def forward(inputs: Inputs, z0: Tensor) -> tuple[Tensor | None, Tensor, Tensor, Tensor | None]:
    """One call of the library: output, final y, final z and the bytes that are kept, or None."""
    plan = inputs.plan
    x, y0, z0 = dense_rows(inputs.x), dense(inputs.y0), dense(z0)
    if x is not inputs.x or y0 is not inputs.y0:
        inputs = inputs._replace(x=x, y0=y0)
    output, y, z = results(x, y0, plan)
    saved = kept_bytes(plan.kept_bytes) if plan.kept_bytes else None
    call, alive = filled(inputs)
    call.y0, call.z0 = y0.data_ptr(), z0.data_ptr()
    call.y_n, call.z_n, call.saved = y.data_ptr(), z.data_ptr(), pointer(saved)
    if output is not None:
        call.output = output.data_ptr()
        call.output_time, call.output_batch = output.stride(0), output.stride(1)
    invoke("an_forward", call)
    recorded = getattr(_recorder, "calls", None)
    if recorded is not None:
        recorded.append(Recorded(call, alive, {w.data_ptr() for w in alive[0] if w is not None}))
    return output, y, z, saved


class Recorded(NamedTuple):
    """A filled call, what keeps its weights alive, and their addresses."""

    call: Call
    alive: list[Any]
    weights: set[int]


@contextmanager
def recording() -> Iterator[list[Recorded]]:
    """Collects the forward calls that this thread makes within a ``with`` block."""
    before = getattr(_recorder, "calls", None)
    calls: list[Recorded] = []
    _recorder.calls = calls
    try:
        yield calls
    finally:
        _recorder.calls = before


def _walk(
    x: Tensor,
    weights: Sequence[Tensor],
    y0: Tensor,
    z0: Tensor,
    values: Tensor,
    elapsed: Tensor | None,
    lengths: Tensor | None,
    masks: Sequence[Tensor],
    plan: Sequence[int],
    numbers: Sequence[float],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    inputs = Inputs(x, weights, y0, values, elapsed, lengths, masks, Plan(*plan), numbers)
    output, y, z, saved = forward(inputs, z0)
    if saved is None:
        saved = x.new_empty(0, dtype=torch.uint8)
    return _or_empty(output, x), y, z, saved


def _or_empty(tensor: Tensor | None, like: Tensor) -> Tensor:
    """Operators return tensors only."""
    return like.new_empty(0) if tensor is None else tensor


def _walk_fake(
    x: Tensor, weights: Any, y0: Tensor, *rest: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    plan = Plan(*rest[-2])
    x = dense_rows(x)
    output, y, z = results(x, y0, plan)
    return _or_empty(output, x), y, z, x.new_empty(plan.kept_bytes, dtype=torch.uint8)


def _walk_backward(
    grad_output: Tensor | None,
    grad_y: Tensor | None,
    grad_z: Tensor | None,
    saved: Tensor,
    x: Tensor,
    weights: Sequence[Tensor],
    y0: Tensor,
    values: Tensor,
    elapsed: Tensor | None,
    lengths: Tensor | None,
    masks: Sequence[Tensor],
    plan: Sequence[int],
    numbers: Sequence[float],
    needs_x: bool,
) -> list[Tensor]:
    x = dense_rows(x)
    call, alive = filled(
        Inputs(x, weights, y0, values, elapsed, lengths, masks, Plan(*plan), numbers)
    )
    call.saved = saved.data_ptr()
    grads = gradients(x, weights, y0, values, elapsed, needs_x)
    grad_x, grad_y0, grad_z0, grad_values, grad_elapsed, *grad_weights = grads
    if grad_output is not None:
        grad_output = dense_rows(grad_output)
        call.grad_output = grad_output.data_ptr()
        call.grad_output_time, call.grad_output_batch = (
            grad_output.stride(0), grad_output.stride(1),
        )  # fmt: skip
    grad_y = None if grad_y is None else dense(grad_y)
    grad_z = None if grad_z is None else dense(grad_z)
    call.grad_y_n, call.grad_z_n = pointer(grad_y), pointer(grad_z)
    if needs_x:
        call.grad_x = grad_x.data_ptr()
        call.grad_x_time, call.grad_x_batch = grad_x.stride(0), grad_x.stride(1)
    weight_table = pointers(grad_weights)
    call.grad_weights = ctypes.addressof(weight_table)
    call.grad_y0, call.grad_z0 = pointer(grad_y0), pointer(grad_z0)
    call.grad_elapsed, call.grad_scalars = pointer(grad_elapsed), pointer(grad_values)
    invoke("an_backward", call)
    del alive
    return grads


def _walk_backward_fake(
    grad_output: Any, grad_y: Any, grad_z: Any, saved: Any, x: Tensor, weights: Any, y0: Tensor,
    values: Tensor, elapsed: Tensor | None, *rest: Any,
) -> list[Tensor]:  # fmt: skip
    return gradients(dense_rows(x), weights, y0, values, elapsed, rest[-1])


def _set_up(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weights, y0, _, values, elapsed, lengths, masks, *settings = inputs
    ctx.set_materialize_grads(False)
    ctx.counts = len(weights), len(masks)
    ctx.save_for_backward(output[3], x, y0, values, elapsed, lengths, *weights, *masks)
    ctx.plan, ctx.numbers = settings


def _differentiate(
    ctx: Any, grad_output: Tensor | None, grad_y: Tensor | None, grad_z: Tensor | None, _: Any
) -> tuple[Any, ...]:
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        refuse(ctx)
    saved, x, y0, values, elapsed, lengths, *rest = ctx.saved_tensors
    weights, masks = rest[: ctx.counts[0]], rest[ctx.counts[0] :]
    grads = walk_backward(
        grad_output if Plan(*ctx.plan).return_sequence else None, grad_y, grad_z, saved, x, weights,
        y0, values, elapsed, lengths, masks, ctx.plan, ctx.numbers, ctx.needs_input_grad[0],
    )  # fmt: skip
    grad_x, grad_y0, grad_z0, grad_values, grad_elapsed, *grad_weights = grads
    return (
        grad_x if ctx.needs_input_grad[0] else None,
        grad_weights,
        grad_y0,
        grad_z0,
        grad_values,
        None if elapsed is None else grad_elapsed,
        None,
        [None] * len(masks),
        None,
        None,
    )


def refuse(ctx: Any, *grads: Any) -> None:
    """The derivative of a derivative that is compiled.

    Raises:
        RuntimeError: Always; it says what to do instead.
    """
    raise RuntimeError(
        message(
            "compiled kernels can be differentiated once",
            "a second derivative",
            "compute it within anharmonic.use_backend('reference')",
        )
    )


def operator(
    name: str,
    function: Callable[..., Any],
    fake: Callable[..., Any],
    backward: Callable[..., Any],
    set_up: Callable[..., None] | None = None,
    devices: Sequence[str] = ("cpu",),
) -> Any:
    """Makes an operator; unlike with ``custom_op``, its first call does not import the compiler.

    Args:
        name: Its name within ``torch.ops.anharmonic``.
        function: What it computes, annotated with the types of its schema.
        fake: Empty results of the same shapes.
        backward: Its derivative.
        set_up: What its derivative needs is kept by this.
        devices: Where ``function`` can run.
    """
    full_name = f"anharmonic::{name}"
    schema = torch.library.infer_schema(function, mutates_args=())
    torch.library.define(full_name, schema, tags=torch.Tag.pt2_compliant_tag)
    torch.library.impl(full_name, devices, function)
    torch.library.register_fake(full_name, fake)
    torch.library.register_autograd(full_name, backward, setup_context=set_up)
    return getattr(torch.ops.anharmonic, name).default


walk = operator("walk", _walk, _walk_fake, _differentiate, _set_up)
walk_backward = operator("walk_backward", _walk_backward, _walk_backward_fake, refuse)
