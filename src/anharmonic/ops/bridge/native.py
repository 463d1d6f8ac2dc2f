"""The compiled backend: a chain of layers as one call of the C library.

``run`` plans the call (``plan.py``) and hands it to the operator ``anharmonic::walk``, which makes
the C call (``call.py``) and carries it into autograd, ``torch.compile`` and export. An equation's
``compiled`` says which model of the library it is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from anharmonic._checks import watched
from anharmonic.ops.backend import needs_gradient
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
from anharmonic.ops.equation import Equation

MODELS = (
    "cornn_explicit", "cornn_implicit", "unicornn", "lem", "lem_clipped", "lem_single_scale",
)  # fmt: skip
"""Models by number (enum an_model in csrc/anharmonic.h)."""

# What a stored walk saves per neuron and step. UnICORNN's activations lie in the workspace of the
# tile that is walked again.
_ACTIVATIONS = (1, 1, 0, 4, 4, 2)


def run(
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
    grid: bool = False,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Run a stack in one direction as one call of the library.

    Args:
        equation: The model, which says how it is compiled.
        x: Input.
        weights: The named tuple of every layer, in the order of csrc/anharmonic.h.
        state: Initial y and z.
        lengths: Valid steps of each sequence, or None.
        masks: Dropout factors between layers, or None.
        elapsed: Time since the previous sample, or None.
        return_sequence: Whether the output is wanted.
        memory: The policy.
        grid: Whether states live on the fixed-point grid; "reversible" implies it.

    Shape:
        x [T, B, F]; y, z [L, B, H]; lengths [B]; masks L - 1 times [B, H]; elapsed [T, B].
        Returns the output [T, B, H] or None, final y and z [L, B, H].

    Raises:
        MemoryError: If there is no memory for the tiles.
        OverflowError: If states leave the grid.
    """
    compiled = equation.compiled()
    assert compiled is not None
    model, skip, scalars = MODELS.index(compiled.model), compiled.skipped_layers, compiled.numbers
    y0, z0 = state
    flat = _five_per_layer(weights)
    values = x.new_empty(0, dtype=torch.float64)
    if any([isinstance(v, Tensor) for v in scalars]):
        values = torch.stack([torch.as_tensor(v).to(torch.float64) for v in scalars[:4]])
    numbers = [0.0 if isinstance(v, Tensor) else float(v) for v in scalars]
    seen = watched()
    has_gradient = needs_gradient((x, y0, z0, values, elapsed, *flat))
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
    filled = [absent if w is None else w for w in flat]
    output, y, z, _ = forward(x, filled, y0, z0, values, elapsed, lengths, dropped, plan, numbers)
    return (output if return_sequence else None), y, z


def _five_per_layer(weights: Sequence[Any]) -> list[Tensor | None]:
    """The weights as the C library takes them, None for those a model lacks."""
    return [value for w in weights for value in (*w, *[None] * (5 - len(w)))]


def prepared_call(
    equation: Equation, x: Tensor, weights: Sequence[Any], y0: Tensor, memory: str
) -> tuple[Call, list[Any]]:
    """Make a call without gradients whose pointers of input, state and results are not yet set.

    Args:
        equation: The model; its numbers are no tensors.
        x: An input of the sizes meant.
        weights: The named tuple of every layer, contiguous.
        y0: A state of the sizes meant.
        memory: The policy.

    Shape:
        x [T, B, F]; y0 [L, B, H].

    Returns:
        The call, and the Python objects that it points to, which must live as long.
    """
    compiled = equation.compiled()
    assert compiled is not None
    model, skip = MODELS.index(compiled.model), compiled.skipped_layers
    plan = plan_again(model, sizes_of(model, x, y0), None, False, skip, memory == "reversible")
    absent = x.new_empty(0)
    flat = [absent if w is None else w for w in _five_per_layer(weights)]
    numbers = [float(number) for number in compiled.numbers]
    values = x.new_empty(0, dtype=torch.float64)
    return make_call(Inputs(x, flat, y0, values, None, None, [], plan, numbers))


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
    del references
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
