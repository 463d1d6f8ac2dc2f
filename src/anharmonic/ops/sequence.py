"""Run an equation over whole sequences: a stack of layers, in one direction or both.

``run`` checks all tensors against each other, because compiled code does not check sizes again.
Then ``backend.choose`` selects the backend for a stack in one direction:

- reference: ``reference.py``, the loop over time in PyTorch;
- native: ``native.py``, one call of the C library;
- triton: ``gpu/backend.py``, the same with kernels for a GPU.

A bidirectional stack calls it twice for every layer, with the conventions of ``torch.nn.LSTM``:
states are ordered layer by layer, forward before reverse, and a layer's output is the concatenation
of its directions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

import torch
from torch import Tensor

from anharmonic._checks import choice, require
from anharmonic._tensors import has_dtype, has_shape, has_values
from anharmonic.ops import native, reference
from anharmonic.ops.backend import KERNELS, checked_policy, choose
from anharmonic.ops.equation import Equation

if TYPE_CHECKING:
    from anharmonic.ops.compiler.layers import CompiledSteps

OUTPUTS = ("all", "last", "none")
_MAY_BE_ABSENT = ("bias", "weight_skip")


class SequenceOptions(TypedDict, total=False):
    """Keyword arguments shared by all recurrences.

    Attributes:
        bidirectional: Whether every layer also reads the sequence backwards. Default False.
        lengths: Valid steps of each sequence, [B], int64 on the CPU. Beyond its length a sequence's
            state stays constant and its output is zero. None: all T steps are valid.
        masks: One factor per layer except the last, [B, D * H] each, multiplied to that layer's
            output at every step (dropout with one mask per sequence), or None.
        elapsed: Time since the previous sample in nominal steps, [T, B], >= 0; it multiplies dt. A
            reverse direction uses the same gaps. None means 1 everywhere.
        output: "all" steps (the default), the "last" valid one of each sequence, or "none".
        memory: What to keep for the backward pass. "stored" keeps all states, "chunked" keeps some
            and recomputes the rest, "reversible" keeps the final state only (if steps can be
            undone), "auto" (the default) chooses one of the first two by size.
        backend: "auto" (the default) or one of ``available_backends(...)``.

    Example:
        >>> options: SequenceOptions = {"output": "last", "memory": "chunked"}
        >>> sorted(options)
        ['memory', 'output']
    """

    bidirectional: bool
    lengths: Tensor | None
    masks: Sequence[Tensor] | None
    elapsed: Tensor | None
    output: str
    memory: str
    backend: str


def run(
    equation: Equation,
    x: Tensor,
    weights: Sequence[Any],
    state: Sequence[Tensor],
    *,
    bidirectional: bool = False,
    lengths: Tensor | None = None,
    masks: Sequence[Tensor] | None = None,
    elapsed: Tensor | None = None,
    output: str = "all",
    memory: str = "auto",
    backend: str = "auto",
    steps: Callable[[], CompiledSteps] | None = None,
) -> tuple[Tensor | None, ...]:
    """Check a call, and run all layers and directions on a suitable backend.

    Args:
        equation: The model.
        x: Input.
        weights: One named tuple per layer and direction.
        state: Initial variables of every layer and direction: y0 and, if the model has one, z0.
        bidirectional: See ``SequenceOptions``, like all following arguments.
        lengths: Valid steps.
        masks: Dropout factors between layers.
        elapsed: Time since the previous sample.
        output: Which outputs to return.
        memory: What to keep for the backward pass.
        backend: "auto" or a backend's name.
        steps: Makes the compiler for steps of an equation without kernels, or None.

    Shape:
        x [T, B, F]; state [L * D, B, H] each. Returns outputs [T, B, D * H], [B, D * H] ("last") or
        None, and the final state.

    Raises:
        ValueError: If a name is unknown, a shape does not fit, there are no steps, or policy or
            backend do not support this input.

    Example:
        >>> import torch
        >>> from anharmonic.ops import LEMEquation, LEMWeights
        >>> equation = LEMEquation(dt=0.5)
        >>> shapes = equation.shapes(3, 8)
        >>> weights = LEMWeights(**{name: torch.zeros(shape) for name, shape in shapes.items()})
        >>> zero = torch.zeros(1, 2, 8)
        >>> output, y, z = run(equation, torch.ones(5, 2, 3), [weights], (zero, zero))
        >>> output.shape, y.shape
        (torch.Size([5, 2, 8]), torch.Size([1, 2, 8]))
    """
    if memory != "auto":  # "auto" suits every recurrence
        checked_policy(memory, invertible=equation.invertible, bidirectional=bidirectional)
    directions = 2 if bidirectional else 1
    _check_shapes(equation, x, weights, state, directions)
    (length, batch, _), layers = x.shape, len(weights) // directions
    if elapsed is not None:
        has_shape("elapsed", elapsed, (length, batch), "give one time per sample")
    if masks is not None:
        _check_masks(masks, layers - 1, (batch, directions * state[0].shape[-1]))
    if lengths is not None:
        _check_lengths(lengths, length, batch)
    if 0 in (*x.shape, *state[0].shape):  # the fast backends expect at least one of each
        backend = "reference"
    tensors = [x, *state, *(masks or ())]
    if elapsed is not None:
        tensors.append(elapsed)
    chosen = _chosen(equation, backend, tensors, weights, state[0].shape[-1], memory)
    one_direction: Callable[..., Any] = reference.run
    if chosen == "native":
        one_direction = native.run
    elif chosen == "triton":
        from anharmonic.ops.gpu import backend as gpu

        one_direction = gpu.run
    elif x.is_cuda and "triton" in KERNELS.get(equation.kernel, ()):
        one_direction = _run_in_float32
    elif steps is not None and batch and equation.compiled() is None:
        own = steps()
        if own.serve(x, memory):
            one_direction = own.run
    if output not in OUTPUTS:
        choice("output", output, OUTPUTS)
    go = partial(one_direction, lengths=lengths, memory=memory)
    if bidirectional:
        return _both_directions(go, equation, x, weights, state, lengths, masks, elapsed, output)
    level, *end = go(
        equation, x, weights, state, masks=masks, elapsed=elapsed, return_sequence=output == "all"
    )
    return (end[0][-1].clone() if output == "last" else level), *end


def _chosen(
    equation: Equation, backend: str, tensors: list[Tensor], weights: Sequence[Any], hidden: int,
    memory: str,
) -> str:  # fmt: skip
    """Return the backend for a call; ``tensors`` are those besides weights and numbers."""
    compiled, reason, why_not_native = equation.compiled(), None, None
    if compiled is None:
        names = [value for value in vars(equation).values() if isinstance(value, str)]
        reason = f"{type(equation).__name__} ({', '.join(names)}), which only the reference has"
    else:
        for number in compiled.numbers:
            if isinstance(number, Tensor):
                tensors.append(number)
                why_not_native = "a scalar that is a tensor"
    for weight in weights:
        for tensor in weight:
            if tensor is not None:
                tensors.append(tensor)
    # Only coRNN's kernels, and UnICORNN's on a GPU, give gradients of tensor numbers.
    if equation.kernel == "cornn":
        why_not_native = None
    elif equation.kernel != "unicornn":
        reason = reason or why_not_native
    return choose(
        equation.kernel, backend, tensors, not_native=why_not_native, reference_only=reason,
        unfit_for_triton=partial(_why_not_triton, equation, hidden, memory),
    )  # fmt: skip


def check_numbers(**numbers: Any) -> None:
    """Check that the numbers of an equation are real numbers or scalar tensors."""
    for name, number in numbers.items():
        scalar = (
            number.dim() == 0 if isinstance(number, Tensor) else isinstance(number, int | float)
        )
        require(scalar, name, number, "a number or a scalar tensor", "pass one", TypeError)


def _why_not_triton(
    equation: Equation, hidden: int, memory: str, tensors: Sequence[Tensor], trusted: bool
) -> str | None:
    """Return why the GPU kernels cannot run an equation; None if they can."""
    from anharmonic.ops.gpu.backend import no_kernel, refusal

    def small_case(make_tensor: Callable[..., Tensor], backend: str) -> Sequence[Tensor | None]:
        """Make a call with the equation's default numbers."""
        usual = type(equation)()
        shapes = usual.of_layer(0).shapes(2, 3)
        weights = usual.Weights(*(make_tensor(*shape) for shape in shapes.values()))
        start = make_tensor(1, 4, 3), make_tensor(1, 4, 3)
        return run(usual, make_tensor(5, 4, 2), [weights], start, backend=backend)

    return no_kernel(equation.kernel, hidden, memory) or refusal(
        equation.kernel, tensors, None if trusted else small_case
    )


def _run_in_float32(
    equation: Equation, x: Tensor, weights: Sequence[Any], state: Sequence[Tensor], *,
    masks: Sequence[Tensor] | None, elapsed: Tensor | None, **shared: Any,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Call ``reference.run`` with states in at least float32, like the GPU kernels."""
    kind = state[0].dtype
    if kind in (torch.float32, torch.float64) and x.dtype is kind:
        return reference.run(equation, x, weights, state, masks=masks, elapsed=elapsed, **shared)
    level, *end = reference.run(
        equation, x.float(),
        [w._make(None if t is None else t.float() for t in w) for w in weights],
        [variable.float() for variable in state],
        masks=None if masks is None else [mask.float() for mask in masks],
        elapsed=None if elapsed is None else elapsed.float(), **shared,
    )  # fmt: skip
    return level if level is None else level.to(kind), *(variable.to(kind) for variable in end)


def _both_directions(
    go: Callable[..., Any],
    equation: Equation,
    x: Tensor,
    weights: Sequence[Any],
    state: Sequence[Tensor],
    lengths: Tensor | None,
    masks: Sequence[Tensor] | None,
    elapsed: Tensor | None,
    output: str,
) -> tuple[Tensor | None, ...]:
    """Run a bidirectional stack, layer by layer; arguments as in ``run``."""
    gaps = (elapsed, None if elapsed is None else gaps_walked_back(elapsed, lengths))
    levels, ends = [x], []
    num_layers = len(weights) // 2
    for layer in range(num_layers):
        top = layer == num_layers - 1
        wanted = output == "all" or not top
        outputs = []
        for direction in range(2):
            k = 2 * layer + direction
            own, source, weight = equation.alone(layer, levels, weights[k])
            start = [variable[k : k + 1] for variable in state]
            if direction == 1:
                source = reversed_in_time(source, lengths)
            out, *end = go(
                own, source, [weight], start, masks=None, elapsed=gaps[direction],
                return_sequence=wanted,
            )  # fmt: skip
            ends.append(end)
            if out is None:
                continue
            if not top:
                out = own.passed_up(out, own.State(*(variable[0] for variable in start)))
            outputs.append(reversed_in_time(out, lengths) if direction == 1 else out)
        if wanted:
            level = torch.cat(outputs, dim=-1)
            levels.append(level if masks is None or top else level * masks[layer])
    last = [torch.cat(variables) for variables in zip(*ends, strict=True)]
    if output == "last":
        return torch.cat((last[0][-2], last[0][-1]), dim=-1), *last
    return levels[-1] if output == "all" else None, *last


# ---- checks: compiled code trusts the sizes it is told ---------------------------------------
def _check_shapes(
    equation: Equation,
    x: Tensor,
    weights: Sequence[Any],
    state: Sequence[Tensor],
    directions: int,
) -> None:
    """Check input, state and weights against each other."""
    if not (isinstance(x, Tensor) and x.is_floating_point()):
        advice = "convert it with torch.as_tensor"
        require(False, "x", x, "a floating-point tensor", advice, TypeError)
    if x.dim() != 3 or x.shape[0] == 0:
        require(False, "x", x, "of shape [T, B, F] with at least one step", "put time first")
    batch, levels, hidden = x.shape[1], len(weights), state[0].shape[-1] if state[0].dim() else 0
    for name, variable in zip(("y0", "z0"), state, strict=False):
        if variable.shape != (levels, batch, hidden):
            has_shape(
                name, variable, (levels, batch, hidden), "its sizes are levels, batch, hidden"
            )
    if levels == 0 or levels % directions:
        require(
            False, "weights", f"{levels} entries",
            "one per layer" + (" and direction" if directions == 2 else ""),
            "give every layer its own",
        )  # fmt: skip
    widths = [x.shape[2]] + [directions * hidden] * (levels // directions)
    for k, weight in enumerate(weights):
        layer = k // directions
        own = equation.of_layer(layer)
        expected = own.shapes(own.source(widths[: layer + 1]), hidden)
        if not hasattr(weight, "_fields"):
            advice, came = "use the named tuple of this recurrence", type(weight).__name__
            require(False, f"weights[{k}]", came, f"of {', '.join(expected)}", advice, TypeError)
        for name, value in zip(weight._fields, weight, strict=True):
            if value is None and (name in _MAY_BE_ABSENT or name not in expected):
                continue
            shape = expected.get(name)
            if value is None or shape is None or value.shape != shape:
                require(
                    False, f"weights[{k}].{name}", value,
                    "None" if shape is None else f"a tensor of shape {list(shape)}",
                    "weights fit the sizes of x and y0, layer by layer",
                )  # fmt: skip
            # (Half-precision inputs with float32 weights are for GPU kernels.)
            if torch.float64 in (value.dtype, x.dtype):
                has_dtype(f"weights[{k}].{name}", value, x.dtype)


def _check_masks(masks: Sequence[Tensor], number: int, shape: tuple[int, int]) -> None:
    """Check the dropout masks between layers."""
    require(
        len(masks) == number, "masks", len(masks), f"one per layer but the last, {number}",
        "leave the top layer's out",
    )  # fmt: skip
    for k, mask in enumerate(masks):
        has_shape(f"masks[{k}]", mask, shape, "one per sequence")
        require(
            not mask.requires_grad, f"masks[{k}]", mask, "a constant, without a gradient",
            "detach it",
        )  # fmt: skip


def _check_lengths(lengths: Tensor, steps: int, batch: int) -> None:
    """Check the valid steps of each sequence."""
    require(
        isinstance(lengths, Tensor)
        and lengths.shape == (batch,)
        and lengths.dtype is torch.int64
        and lengths.is_cpu,
        "lengths", lengths, f"an int64 tensor of shape [{batch}] on the CPU",
        "use what pad_packed_sequence returns",
    )  # fmt: skip
    if has_values(lengths):
        low, high = (int(end) for end in lengths.aminmax())
        require(
            0 <= low and high <= steps, "lengths", (low, high), f"in [0, {steps}]",
            "count the valid steps of each sequence",
        )  # fmt: skip


def reversed_in_time(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Reverse each sequence of [T, B, F] within its length; padding stays in place.

    Example:
        >>> x = torch.tensor([1.0, 2.0, 3.0]).reshape(3, 1, 1)
        >>> reversed_in_time(x, torch.tensor([2])).flatten().tolist()
        [2.0, 1.0, 3.0]
    """
    if lengths is None:
        return x.flip(0)
    steps = torch.arange(x.shape[0], device=x.device)[:, None]
    last = lengths.to(x.device)[None, :] - 1
    index = torch.where(steps <= last, last - steps, steps)
    return x.gather(0, index[:, :, None].expand_as(x))


def gaps_walked_back(elapsed: Tensor, lengths: Tensor | None) -> Tensor:
    """Return the elapsed times [T, B] in the order of a reverse direction.

    The gap between samples n and n + 1 is ``elapsed[n + 1]`` from both sides, so the reverse
    direction over N samples meets N - 1, ..., 1. Its first step takes the first sample's gap.

    Example:
        >>> gaps_walked_back(torch.tensor([[1.0], [2.0], [3.0], [9.0]]), torch.tensor([3]))
        tensor([[1.],
                [3.],
                [2.],
                [9.]])
    """
    if lengths is None:
        return torch.cat([elapsed[:1], elapsed[1:].flip(0)])
    steps = torch.arange(elapsed.shape[0], device=elapsed.device)[:, None]
    length = lengths.to(elapsed.device)[None, :]
    back = (length - steps) % length.clamp(min=1)
    return elapsed.gather(0, torch.where(steps < length, back, steps))
