"""Kernels by step: found by what the step does; new ones are made and checked.

The key of a kernel is the step's record (operators, numbers, shapes) with all sizes. A step with
changed numbers is a different step, and so is one that reads another external tensor.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from anharmonic.ops import library
from anharmonic.ops.compiler import build
from anharmonic.ops.compiler.kernel import ALL, STARTS, Cut, Kernel
from anharmonic.ops.compiler.trace import Example, Unsupported, check_batches, record
from anharmonic.ops.native import refuse_second_derivative

Loop = Callable[[list[Tensor], list[Tensor], list[Tensor]], tuple[Any, Sequence[Tensor]]]
"""``loop(inputs, state, weights)`` -> outputs [T, B, H] and the last state, in plain PyTorch."""

_MOST_STEPS = 512
_MOST_NEW = 32
"""New steps of one name and size, one after another, of which none is called twice."""
_lock = threading.RLock()


class _Entry:
    """State of one step at certain sizes.

    Attributes:
        kernels: Kernels by the weights and inputs that need gradients.
        batches: Numbers of sequences for which it was traced.
        reason: Why it is not compiled, or "".
        outside: External tensors, kept so that no other tensor gets their id.
    """

    def __init__(self, outside: list[Tensor]) -> None:
        self.kernels: dict[tuple[bool, ...], Kernel] = {}
        self.batches: set[int] = set()
        self.reason = ""
        self.outside = outside


_entries: OrderedDict[Any, _Entry] = OrderedDict()
_new: dict[Any, int] = {}


def find(example: Example, batch: int, loop: Loop, name: str, *, exactly: bool) -> Kernel:
    """Return the kernel of a step, traced for this number of sequences.

    A new kernel is compared with ``loop``, the same in plain PyTorch. With ``exactly`` the kernel
    gives exactly the needed gradients.

    Raises:
        Unsupported: If the step cannot be compiled; the message gives the reason.
    """
    random = torch.get_rng_state()  # a step that draws is run once more than the loop runs it
    own = torch.autograd.graph.saved_tensors_hooks(_unchanged, _unchanged)
    try:
        # Derivatives cannot be traced in inference mode, nor with the hooks of a checkpoint.
        with torch.inference_mode(False), own:
            return _found(example, batch, loop, name, exactly)
    finally:
        torch.set_rng_state(random)


def _unchanged(tensor: Tensor) -> Tensor:
    return tensor


def _found(example: Example, batch: int, loop: Loop, name: str, exactly: bool) -> Kernel:
    with torch.enable_grad():
        entries, outside = record(example, batch)
    sizes = (
        name, tuple(example.state), tuple(example.inputs), example.dtype, library.instruction_set(),
        tuple((tuple(w.shape), w.dtype) for w in example.weights),
    )  # fmt: skip
    key = (entries, sizes)
    entry = _entries.get(key)
    if entry is not None:
        _new[sizes] = 0
    if entry is None or entry.reason or batch not in entry.batches:
        with _lock:
            entry = _known(key, sizes, outside, example, batch)
    if not exactly and entry.kernels:
        return next(iter(entry.kernels.values()))
    kernel = entry.kernels.get(example.needs)
    if kernel is None:
        with _lock:
            kernel = entry.kernels.get(example.needs) or _made(entry, example, batch, loop)
    return kernel


def _known(key: Any, sizes: Any, outside: list[Tensor], example: Example, batch: int) -> _Entry:
    """The entry of a key, for which this number of sequences was traced."""
    entry = _entries.get(key)
    if entry is None:
        _new[sizes] = _new.get(sizes, 0) + 1
        if _new[sizes] > _MOST_NEW:
            raise Unsupported(
                "its numbers or tensors are others at every call; give them as weights or inputs"
            )
        entry = _entries[key] = _Entry(outside)
        with torch.no_grad():
            again = record(example, batch)
        if again[0] != key[0]:
            entry.reason = "it does something else when it is called again, or without gradients"
        while len(_entries) > _MOST_STEPS:
            _entries.popitem(last=False)
    if entry.reason:
        raise Unsupported(entry.reason)
    if batch not in entry.batches:
        if entry.kernels:
            kernel = next(iter(entry.kernels.values()))
            check_batches(kernel.trace, example._replace(needs=kernel.needs), batch)
        entry.batches.add(batch)
    return entry


def _made(entry: _Entry, example: Example, batch: int, loop: Loop) -> Kernel:
    """Make a kernel and compare it with the loop."""
    try:
        kernel = Kernel(example, batch, build.LEVEL)
        check(kernel, example, loop)
    except Unsupported as error:
        entry.reason = str(error)
        raise
    entry.kernels[example.needs] = kernel
    return kernel


# ---- the first call of a kernel is compared with the loop ----
_STEPS, _SEQUENCES = 7, (5, 1)


def check(kernel: Kernel, example: Example, loop: Loop) -> None:
    """Compare outputs, states and gradients of a new kernel with the loop on random sequences.

    The comparison uses float64, for which the step is traced again. A step that runs only in
    float32 is compared in float32.

    Raises:
        Unsupported: If they differ.
    """
    exact, exact_example = kernel, example
    if example.dtype is torch.float32:
        weights = [w.double() if w.is_floating_point() else w for w in example.weights]
        exact_example = example._replace(weights=weights, dtype=torch.float64)
        try:
            with torch.no_grad():
                # A tensor from outside may be float32 for good.
                record(exact_example, _SEQUENCES[0])
            exact = Kernel(exact_example, None, build.QUICK_LEVEL)
        except Unsupported:
            exact, exact_example = kernel, example
    precise = exact_example.dtype is torch.float64
    generator = torch.Generator().manual_seed(0)
    finite = False
    # The weights as they are, and near them.
    for spread, sequences in itertools.product((0.0, 0.1), _SEQUENCES):
        inputs, state, weights = _drawn(exact_example, spread, sequences, generator)
        expected = _results(loop, exact_example.needs, inputs, state, weights)
        for keep in (ALL, STARTS):
            compiled = partial(walk, exact, Cut(rows=2, tile=2, keep=keep, every=4), True)
            found = _results(compiled, exact_example.needs, inputs, state, weights)
            finite |= _agree(found, expected, 1e-9 if precise else 1e-4)
    if not finite:
        raise Unsupported("its results are NaN or infinite on random sequences of normal size")
    if exact is not kernel:
        inputs, state, weights = _drawn(example, 0.0, _SEQUENCES[0], generator)
        cut = kernel.cut(_STEPS, _SEQUENCES[0], "stored", True)
        compiled = partial(walk, kernel, cut, True)
        found = _results(compiled, example.needs, inputs, state, weights)
        expected = _results(loop, example.needs, inputs, state, weights)
        _agree(found, expected, 1e-3)


def _drawn(
    example: Example, spread: float, sequences: int, generator: torch.Generator
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(example.dtype)

    inputs = [normal(_STEPS, sequences, width) for width in example.inputs]
    state = [normal(sequences, width) * 0.5 for width in example.state]
    weights = []
    for weight in example.weights:
        value = weight.detach().clone()
        if spread and value.is_floating_point():
            value += spread * normal(*value.shape).to(value.dtype)
        weights.append(value)
    return inputs, state, weights


def _results(
    run: Loop, needs: tuple[bool, ...], inputs: list[Tensor], state: list[Tensor],
    weights: list[Tensor],
) -> list[Tensor | None]:  # fmt: skip
    """Return outputs, last state and all gradients of a loss with random weights per entry."""
    leaves = [tensor.detach().clone() for tensor in (*inputs, *state, *weights)]
    a, b = len(inputs), len(inputs) + len(state)
    wanted = [*needs[len(weights) :], *([True] * len(state)), *needs[: len(weights)]]
    for leaf, need in zip(leaves, wanted, strict=True):
        leaf.requires_grad_(need)
    with torch.enable_grad(), torch.autocast("cpu", enabled=False):
        output, ends = run(leaves[:a], leaves[a:b], leaves[b:])
        results = [output, *ends]
        parts = [
            (value * torch.cos(torch.arange(value.numel()) * 1.7 + k).view_as(value)).sum()
            for k, value in enumerate(results)
        ]
        loss = torch.stack(parts).sum()
        asked = [leaf for leaf, need in zip(leaves, wanted, strict=True) if need]
        found: Sequence[Tensor | None] = [None] * len(asked)
        if loss.requires_grad:  # a step may be a constant
            found = torch.autograd.grad(loss, asked, allow_unused=True)
    return [*(value.detach() for value in results), *found]


def _agree(found: Sequence[Tensor | None], expected: Sequence[Tensor | None], most: float) -> bool:
    """Raise if results differ by more than ``most`` of the largest entry; say if any was finite."""
    finite = False
    for value, right in zip(found, expected, strict=True):
        present = value if right is None else right  # no gradient is one of 0
        zero = torch.zeros(() if present is None else present.shape)
        value, right = zero if value is None else value, zero if right is None else right
        whole = right.isfinite()
        scale = right[whole].abs().max() if whole.any() else torch.ones(())
        error = (value - right)[whole].abs().max() if whole.any() else torch.zeros(())
        same = torch.equal(value.isfinite(), whole)
        if not same or not error <= most * scale.clamp(min=1e-30) + 1e-300:
            raise Unsupported("the compiled step does not agree with the loop; please report it")
        finite |= bool(whole.any())
    return finite


# ---- autograd ----
def walk(
    kernel: Kernel, cut: Cut, return_sequence: bool, inputs: Sequence[Tensor],
    state: Sequence[Tensor], weights: Sequence[Tensor],
) -> tuple[Tensor | None, list[Tensor]]:  # fmt: skip
    """Run a kernel under autograd and return output and last state."""
    output, *ends = _Walk.apply(  # type: ignore[no-untyped-call]
        kernel, cut, return_sequence, (len(inputs), len(state)), *inputs, *state, *weights
    )
    return output, ends


class _Walk(torch.autograd.Function):
    """A kernel as one node of the graph."""

    @staticmethod
    def forward(
        ctx: Any, kernel: Kernel, cut: Cut, return_sequence: bool, counts: tuple[int, int],
        *tensors: Tensor,
    ) -> tuple[Tensor | None, ...]:  # fmt: skip
        a, b = counts[0], sum(counts)
        output, ends, saved = kernel.forward(
            tensors[:a], tensors[a:b], tensors[b:], cut, return_sequence
        )
        ctx.kernel, ctx.cut, ctx.counts = kernel, cut, counts
        ctx.set_materialize_grads(False)
        # With the constants, so that a change in place before the backward pass is an error.
        ctx.save_for_backward(saved, *tensors, *kernel.trace.constants.values())
        return output, *ends

    @staticmethod
    def backward(
        ctx: Any, grad_output: Tensor | None, *grad_ends: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        refuse_second_derivative(ctx)
        saved, *tensors = ctx.saved_tensors
        a, b = ctx.counts[0], sum(ctx.counts)
        tensors = tensors[: len(ctx.needs_input_grad) - 4]
        grads = ctx.kernel.backward(
            grad_output, grad_ends, saved, tensors[:a], tensors[a:b], tensors[b:], ctx.cut
        )
        flat = list(itertools.chain.from_iterable(grads))
        wanted = ctx.needs_input_grad[4:]
        wanted_grads = (grad if needs else None for grad, needs in zip(flat, wanted, strict=True))
        return (*[None] * 4, *wanted_grads)
