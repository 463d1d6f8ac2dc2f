"""The compiled backend: a chain of layers as one call of the C library.

``run`` plans the call (``plan.py``) and hands it to the operator ``anharmonic::walk``, which makes
the C call (``call.py``) and carries it into autograd, ``torch.compile`` and export. A model's
``functional.py`` says how its arguments become those of ``run``.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic._checks import watched
from anharmonic.ops.bridge.call import (
    Inputs,
    dense,
    dense_rows,
    invoke,
    like_in_time,
    make_call,
    pointer,
    pointers,
    workspace,
)
from anharmonic.ops.bridge.library import Call
from anharmonic.ops.bridge.operators import operator, refuse, refuse_second_derivative
from anharmonic.ops.bridge.plan import NOTHING, Plan, Sizes, plan_again, plan_call
from anharmonic.ops.dispatch import needs_gradient

CORNN_EXPLICIT, CORNN_IMPLICIT, UNICORNN, LEM, LEM_CLIPPED, LEM_SINGLE_SCALE = range(6)
"""Models (enum an_model in csrc/anharmonic.h)."""

# What a stored walk saves per neuron and step. UnICORNN's activations lie in the workspace of the
# tile that is walked again.
_ACTIVATIONS = {CORNN_EXPLICIT: 1, CORNN_IMPLICIT: 1, UNICORNN: 0, LEM: 4, LEM_CLIPPED: 4,
                LEM_SINGLE_SCALE: 2}  # fmt: skip
_recorder = threading.local()


def run(
    model: int,
    x: Tensor,
    weights: Sequence[Tensor | None],
    y0: Tensor,
    z0: Tensor,
    scalars: Sequence[float | Tensor],
    *,
    skip: int = 0,
    lengths: Tensor | None,
    masks: Sequence[Tensor] | None,
    elapsed: Tensor | None,
    return_sequence: bool,
    memory: str,
    grid: bool = False,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Runs a chain of layers.

    Args:
        model: One of the models above.
        x: Input.
        weights: Five per layer, in the order of csrc/anharmonic.h; None for those it lacks.
        y0: Initial y.
        z0: Initial z.
        scalars: dt, frequency, damping and gate floor, where a tensor gets a gradient (coRNN), and
            behind them the largest step of every layer (UnICORNN).
        skip: S of UnICORNN's residual stacking; 0 for none.
        lengths: Valid steps of each sequence, or None.
        masks: Dropout factors between layers, or None.
        elapsed: Time since the previous sample, or None.
        return_sequence: Whether the output is wanted.
        memory: The policy.
        grid: Whether states live on the fixed-point grid; "reversible" implies it.

    Shape:
        x [T, B, F]; y0, z0 [L, B, H]; lengths [B]; masks L - 1 times [B, H]; elapsed [T, B].
        Returns the output [T, B, H] or None, final y and z [L, B, H].

    Raises:
        MemoryError: If there is no memory for the tiles.
        OverflowError: If states leave the grid.
    """
    values = x.new_empty(0, dtype=torch.float64)
    if any([isinstance(v, Tensor) for v in scalars]):
        values = torch.stack([torch.as_tensor(v).to(torch.float64) for v in scalars[:4]])
    numbers = [0.0 if isinstance(v, Tensor) else float(v) for v in scalars]
    seen = watched()
    has_gradient = needs_gradient((x, y0, z0, values, elapsed, *weights))
    grid = grid or memory == "reversible"
    absent = x.new_empty(0)
    dropped = list(masks or ())
    if not has_gradient and torch.compiler.is_exporting():
        # What AOTInductor compiles would pass None for a list without entries.
        dropped = dropped or [absent]
        # A plan would tie the program to sizes like those of the example: it is made at each call.
        plan = Plan(model, skip, int(return_sequence), int(grid), 0, 0, NOTHING, 0, 0)
    else:
        plan = (plan_call if seen else plan_again)(
            model, sizes_of(model, x, y0), memory if has_gradient else None, return_sequence, skip,
            grid,
        )  # fmt: skip
    forward = walk if has_gradient or seen or type(x) is not Tensor else _walk
    flat = [absent if w is None else w for w in weights]
    output, y, z, _ = forward(x, flat, y0, z0, values, elapsed, lengths, dropped, plan, numbers)
    return (output if return_sequence else None), y, z


def sizes_of(model: int, x: Tensor, y0: Tensor) -> Sizes:
    """What a call is planned by."""
    steps, batch, inputs = x.shape
    layers, _, hidden = y0.shape
    return Sizes(steps, batch, inputs, hidden, layers, x.element_size(), _ACTIVATIONS[model])


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
    """One call of the library: output, final y, final z and the bytes that are saved."""
    x, y0, z0, cut = dense_rows(x), dense(y0), dense(z0), Plan(*plan)
    if cut.block == 0:
        wanted, grid = bool(cut.return_sequence), bool(cut.grid)
        cut = plan_again(cut.model, sizes_of(cut.model, x, y0), None, wanted, cut.skip, grid)
    output, y, z = _results(x, y0, cut)
    saved = workspace(cut.saved_bytes) if cut.saved_bytes else x.new_empty(0, dtype=torch.uint8)
    masks = [mask for mask in masks if mask.numel()]
    call, references = make_call(
        Inputs(x, weights, y0, values, elapsed, lengths, masks, cut, numbers)
    )
    call.y0, call.z0 = y0.data_ptr(), z0.data_ptr()
    call.y_n, call.z_n, call.saved = y.data_ptr(), z.data_ptr(), saved.data_ptr()
    if cut.return_sequence:
        call.output = output.data_ptr()
        call.output_time, call.output_batch = output.stride(0), output.stride(1)
    invoke("an_forward", call)
    recorded = getattr(_recorder, "calls", None)
    if recorded is not None:
        recorded.append(Recorded(call, references))
    return output, y, z, saved


def _results(x: Tensor, y0: Tensor, plan: Plan) -> tuple[Tensor, Tensor, Tensor]:
    """Output (of size 0 if it is not wanted), final y and final z, not yet computed."""
    output = like_in_time(x, y0.shape[2]) if plan.return_sequence else x.new_empty(0)
    return output, x.new_empty(y0.shape), x.new_empty(y0.shape)


def _walk_fake(
    x: Tensor, weights: Any, y0: Tensor, *rest: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    plan = Plan(*rest[-2])
    x = dense_rows(x)
    return *_results(x, y0, plan), x.new_empty(plan.saved_bytes, dtype=torch.uint8)


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
    """Gradients of x, y0, z0, scalars, elapsed and weights; absent ones have size 0."""
    x = dense_rows(x)
    call, references = make_call(
        Inputs(x, weights, y0, values, elapsed, lengths, masks, Plan(*plan), numbers)
    )
    call.saved = saved.data_ptr()
    grads = _gradients(x, weights, y0, values, elapsed, needs_x)
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
    del references
    return grads


def _gradients(
    x: Tensor,
    weights: Sequence[Tensor],
    y0: Tensor,
    values: Tensor,
    elapsed: Tensor | None,
    needs_x: bool,
) -> list[Tensor]:
    """What ``_walk_backward`` returns, not yet computed."""
    return [
        like_in_time(x, x.shape[2]) if needs_x else x.new_empty(0),
        x.new_empty(y0.shape),
        x.new_empty(y0.shape),
        x.new_zeros(values.shape, dtype=torch.float64),
        x.new_empty(0 if elapsed is None else elapsed.shape),
        *[x.new_empty(w.shape) for w in weights],
    ]


def _walk_backward_fake(
    grad_output: Any, grad_y: Any, grad_z: Any, saved: Any, x: Tensor, weights: Any, y0: Tensor,
    values: Tensor, elapsed: Tensor | None, *rest: Any,
) -> list[Tensor]:  # fmt: skip
    return _gradients(dense_rows(x), weights, y0, values, elapsed, rest[-1])


def _set_up(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weights, y0, _, values, elapsed, lengths, masks, *settings = inputs
    ctx.set_materialize_grads(False)
    ctx.counts = len(weights), len(masks)
    ctx.save_for_backward(output[3], x, y0, values, elapsed, lengths, *weights, *masks)
    ctx.plan, ctx.numbers = settings


def _differentiate(
    ctx: Any, grad_output: Tensor | None, grad_y: Tensor | None, grad_z: Tensor | None, _: Any
) -> tuple[Any, ...]:
    refuse_second_derivative(ctx)
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


walk = operator("walk", _walk, _walk_fake, _differentiate, _set_up)
walk_backward = operator("walk_backward", _walk_backward, _walk_backward_fake, refuse)


class Recorded(NamedTuple):
    """A call that was made, and what it points to, the list of weights first."""

    call: Call
    references: list[Any]


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
