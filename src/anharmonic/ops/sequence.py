"""A stack of layers over a whole sequence: how a call travels from a layer to the C library.

A layer such as ``anharmonic.LEM`` lays its input out as [T, B, F], collects its weights and calls
its op, here ``lem``. Then:

1. ``lem/functional.py`` says what the model is: the name of its kernel, its settings (``dt`` and
   the like) and the shapes of its weights, in a ``Recurrence``.
2. ``run_sequence`` (in this file) checks all tensors against each other: compiled code trusts the
   sizes it is told. Nothing behind it checks again.
3. ``dispatch.py`` picks a backend that can run these tensors, and with it a *chain*: a function
   that runs a stack in one direction.
4. ``run_layers`` (in this file) calls the chain: once for a unidirectional stack; for a
   bidirectional one twice for every layer, with the conventions of ``torch.nn.LSTM``: states are
   ordered layer by layer, forward before reverse, and a layer's output is the concatenation of its
   directions.
5. The chain of LEM stands in ``lem/functional.py``, for each backend:

   - reference: ``replay.py`` applies the memory policy, ``recurrence.py`` walks tile by tile
     through time, all layers together, and ``lem/step.py`` is the equation of one step;
   - native: ``bridge/native.py`` has the call cut into tiles (``bridge/plan.py``, pure arithmetic),
     and makes it from within one operator, which autograd and compilers see as a single node;
     ``bridge/call.py`` turns tensors into the C structure and calls ``an_forward`` (csrc/engine.c);
   - triton: ``gpu/backend.py`` does the same on a GPU with the kernels of ``lem/triton.py``.

The other recurrences differ in steps 1 and 5 alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypedDict

import torch
from torch import Tensor

from anharmonic._checks import choice, has_dtype, has_shape, has_values, require
from anharmonic.ops.dispatch import Chain, pick
from anharmonic.ops.memory import checked_policy
from anharmonic.ops.recurrence import gaps_walked_back, reversed_in_time

OUTPUTS = ("all", "last", "none")
_MAY_BE_ABSENT = ("bias", "weight_skip")

Shapes = Callable[[int, list[int], int], dict[str, tuple[int, ...]]]
"""``shapes(layer, widths, hidden)``: the shapes of a layer's weights by field.

``widths[l]`` is the width of level l: the input for 0, what layer l - 1 gives for l.
"""

OneLayer = Callable[[int, list[Tensor], Any], tuple[Tensor, Any, dict[str, Any]]]
"""``one_layer(layer, levels, weight)`` -> input, weight and settings of that layer alone.

``levels[l]`` is the input of layer l.
"""


class SequenceOptions(TypedDict, total=False):
    """What every recurrence takes beside its own settings, by keyword.

    Attributes:
        bidirectional: Whether every layer also walks from the end. Default False.
        lengths: Valid steps of each sequence, [B], int64 on the CPU; beyond its length a sequence's
            state stands still and its output is zero. None: all T steps are valid.
        masks: One factor per layer but the last, [B, D * H] each, multiplied to that layer's output
            at every step (dropout with one mask per sequence), or None.
        elapsed: Time since the previous sample in nominal steps, [T, B], >= 0; it multiplies dt. A
            reverse direction walks back over the same gaps. None is 1 everywhere.
        output: "all" steps (the default), the "last" valid one of each sequence, or "none".
        memory: What is kept for the backward pass: "stored" states, "chunked" (a state now and
            then, the rest computed again), "reversible" (the end only, where the steps can be
            undone) or "auto" (the default), which picks between the first two by size.
        backend: "auto" (the default) or one of ``available_backends(...)``.
    """

    bidirectional: bool
    lengths: Tensor | None
    masks: Sequence[Tensor] | None
    elapsed: Tensor | None
    output: str
    memory: str
    backend: str


class Recurrence(NamedTuple):
    """A model as a stack runs it.

    Attributes:
        name: The kernel's name.
        settings: The model's own arguments of a chain.
        shapes: The shapes of a layer's weights.
        invertible: Whether the steps can be undone.
        one_layer: What a single layer of a bidirectional stack is given, if not its level, weight
            and ``settings``.
        reference_only: Why only the reference can run this call, whatever its tensors; or None.
    """

    name: str
    settings: dict[str, Any]
    shapes: Shapes
    invertible: bool = False
    one_layer: OneLayer | None = None
    reference_only: str | None = None


def run_sequence(
    recurrence: Recurrence,
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
) -> tuple[Tensor | None, ...]:
    """Checks a call, and runs all layers and directions on the backend that fits.

    Args:
        recurrence: The model.
        x: Input.
        weights: One named tuple per layer and direction.
        state: Initial variables of every layer and direction: y0 and, if the model has it, z0.
        bidirectional: See ``SequenceOptions``, as for all that follow.
        lengths: Valid steps.
        masks: Dropout factors between layers.
        elapsed: Time since the previous sample.
        output: What to return of the outputs.
        memory: What is kept for the backward pass.
        backend: "auto" or a backend's name.

    Shape:
        x [T, B, F]; state [L * D, B, H] each. Returns outputs [T, B, D * H], [B, D * H] ("last") or
        None, and the final state.

    Raises:
        ValueError: If a name is unknown, a shape does not fit, there is nothing to walk over, or
            the policy or backend cannot run this input.
    """
    if memory != "auto":  # which fits every recurrence
        checked_policy(memory, invertible=recurrence.invertible, bidirectional=bidirectional)
    directions = 2 if bidirectional else 1
    _check_shapes(x, weights, state, recurrence.shapes, directions)
    (steps, batch, _), layers = x.shape, len(weights) // directions
    if elapsed is not None:
        has_shape("elapsed", elapsed, (steps, batch), "give one time per sample")
    if masks is not None:
        _check_masks(masks, layers - 1, (batch, directions * state[0].shape[-1]))
    if lengths is not None:
        _check_lengths(lengths, steps, batch)
    given: list[Any] = [x, *state, elapsed, *(masks or ())]
    for name, value in recurrence.settings.items():
        if name in ("dt", "frequency", "damping") and not isinstance(value, (float, int, list)):
            scalar = isinstance(value, Tensor) and value.dim() == 0
            require(scalar, name, value, "a number or a scalar tensor", "pass one", TypeError)
        given.extend(value if isinstance(value, (list, tuple)) else [value])
    for weight in weights:
        given.extend(weight)
    chain = pick(
        recurrence.name, backend, [value for value in given if isinstance(value, Tensor)],
        recurrence.reference_only,
    )  # fmt: skip
    return run_layers(
        chain, x, weights, state, settings=recurrence.settings, one_layer=recurrence.one_layer,
        bidirectional=bidirectional, lengths=lengths, masks=masks, elapsed=elapsed, output=output,
        memory=memory,
    )  # fmt: skip


def run_layers(
    chain: Chain,
    x: Tensor,
    weights: Sequence[Any],
    state: Sequence[Tensor],
    *,
    settings: dict[str, Any],
    one_layer: OneLayer | None = None,
    bidirectional: bool,
    lengths: Tensor | None,
    masks: Sequence[Tensor] | None,
    elapsed: Tensor | None,
    output: str,
    memory: str,
) -> tuple[Tensor | None, ...]:
    """Runs all layers and directions with one chain; arguments as in ``run_sequence``."""
    return_sequence = choice("output", output, OUTPUTS) == "all"
    shared = {"lengths": lengths, "memory": memory}
    if not bidirectional:
        level, *end = chain(
            x,
            weights,
            *state,
            **settings,
            **shared,
            masks=masks,
            elapsed=elapsed,
            return_sequence=return_sequence,
        )
        return (end[0][-1].clone() if output == "last" else level), *end
    gaps = (elapsed, None if elapsed is None else gaps_walked_back(elapsed, lengths))
    levels = [x]
    ends = []
    num_layers = len(weights) // 2
    for layer in range(num_layers):
        wanted = return_sequence or layer < num_layers - 1
        outputs = []
        for direction in range(2):
            k = 2 * layer + direction
            source, weight, own = levels[layer], weights[k], settings
            if one_layer is not None:
                source, weight, own = one_layer(layer, levels, weight)
            if direction == 1:
                source = reversed_in_time(source, lengths)
            out, *end = chain(
                source, [weight], *(variable[k : k + 1] for variable in state), **own, **shared,
                masks=None, elapsed=gaps[direction], return_sequence=wanted,
            )  # fmt: skip
            if out is not None:
                outputs.append(reversed_in_time(out, lengths) if direction == 1 else out)
            ends.append(end)
        if wanted:
            level = torch.cat(outputs, dim=-1)
            levels.append(
                level if masks is None or layer == num_layers - 1 else level * masks[layer]
            )
    last = [torch.cat(variables) for variables in zip(*ends, strict=True)]
    if output == "last":
        return torch.cat((last[0][-2], last[0][-1]), dim=-1), *last
    return levels[-1] if return_sequence else None, *last


# ---- checks: compiled code trusts the sizes it is told ---------------------------------------
def _check_shapes(
    x: Tensor, weights: Sequence[Any], state: Sequence[Tensor], shapes: Shapes, directions: int
) -> None:
    """Checks input, state and weights against each other."""
    real = isinstance(x, Tensor) and x.is_floating_point()
    require(real, "x", x, "a floating-point tensor", "convert it with torch.as_tensor", TypeError)
    require(
        x.dim() == 3 and 0 not in x.shape, "x", x,
        "of shape [T, B, F] with at least one step and one sequence",
        "put time first and leave empty batches out",
    )  # fmt: skip
    batch, levels, hidden = x.shape[1], len(weights), state[0].shape[-1] if state[0].dim() else 0
    for name, variable in zip(("y0", "z0"), state, strict=False):
        has_shape(name, variable, (levels, batch, hidden), "its sizes are levels, batch, hidden")
    require(
        levels > 0 and levels % directions == 0, "weights", f"{levels} entries",
        "one per layer" + (" and direction" if directions == 2 else ""), "give every layer its own",
    )  # fmt: skip
    widths = [x.shape[2]] + [directions * hidden] * (levels // directions)
    for k, weight in enumerate(weights):
        expected = shapes(k // directions, widths, hidden)
        named, advice = hasattr(weight, "_fields"), "use the named tuple of this recurrence"
        came = type(weight).__name__
        require(named, f"weights[{k}]", came, f"of {', '.join(expected)}", advice, TypeError)
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
            # (Half-precision inputs beside float32 weights are for the kernels of a GPU.)
            if torch.float64 in (value.dtype, x.dtype):
                has_dtype(f"weights[{k}].{name}", value, x.dtype)


def _check_masks(masks: Sequence[Tensor], number: int, shape: tuple[int, int]) -> None:
    """Checks the dropout masks between layers."""
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
    """Checks the valid steps of each sequence."""
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
