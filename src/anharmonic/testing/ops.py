"""Contract of ops: a fast backend agrees with the reference, including gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from anharmonic.testing.suite import Check, expect, expect_close, prepared, run_checks


class Sizes(NamedTuple):
    """Sizes of one call of an op.

    Attributes:
        steps: The number of time steps T.
        batch: The number of sequences B.
        inputs: The number of features F.
        hidden: The number of neurons H.
        layers: The number of layers L.

    Example:
        >>> Sizes(steps=7, batch=3, inputs=2, hidden=5, layers=1).hidden
        5
    """

    steps: int
    batch: int
    inputs: int
    hidden: int
    layers: int


class OpCall(NamedTuple):
    """One call of an op.

    Attributes:
        run: Runs the op on the named backend and returns the outputs and final states.
        leaves: The float64 tensors that require gradients, by name.

    Example:
        >>> OpCall._fields
        ('run', 'leaves')
    """

    run: Callable[[str], Sequence[Tensor | None]]
    leaves: Mapping[str, Tensor]


ODD_SIZES = (
    Sizes(1, 1, 1, 1, 1),
    Sizes(5, 2, 3, 4, 1),
    Sizes(70, 3, 2, 17, 2),
    Sizes(40, 17, 1, 3, 3),
    Sizes(9, 9, 5, 130, 2),
)
"""Sizes below and above those of tiles and vector registers, and no multiples of them."""


def op_checks(make: Callable[[Sizes], OpCall], backend: str) -> Iterator[tuple[str, Check]]:
    """Yield the name and callable of each check that every backend of an op must pass.

    Args:
        make: Creates a call of the op with these sizes, always with the same numbers.
        backend: The backend to compare with "reference".

    Example:
        >>> import torch
        >>> from anharmonic import ops
        >>> def make(sizes):
        ...     h = torch.rand(sizes.batch, sizes.hidden, dtype=torch.float64, requires_grad=True)
        ...     graph = ops.Adjacency(torch.zeros(2, 1).long(), sizes.batch)
        ...     return OpCall(lambda backend: [ops.gradient_gate(h, graph, backend=backend)],
        ...                   {"h": h})
        >>> len(list(op_checks(make, "reference")))
        7
    """
    for sizes in ODD_SIZES:
        title = ",".join(map(str, sizes))
        yield f"agrees_with_the_reference[{title}]", prepared(_agrees, (make(sizes), backend))
    case = make(ODD_SIZES[1]), backend
    yield "results_are_copies", prepared(_copies, case)
    yield "the_same_bits_again", prepared(_repeats, case)


def check_op(make: Callable[[Sizes], OpCall], backend: str) -> None:
    """Run every check of ``op_checks``.

    Args:
        make: Creates a call of the op.
        backend: The backend to compare with "reference".

    Raises:
        AssertionError: If a check failed; the message lists expected and received values.

    Example:
        >>> import torch
        >>> def make(sizes):
        ...     x = torch.linspace(-1, 1, sizes.hidden, dtype=torch.float64, requires_grad=True)
        ...     return OpCall(lambda backend: [x.tanh(), x.sum()], {"x": x})
        >>> check_op(make, "native")
    """
    run_checks(op_checks(make, backend))


def _gradients(call: OpCall, backend: str) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Return the results and the gradients of all leaves; every result entry has its own weight."""
    results = [value for value in call.run(backend) if value is not None]
    loss = torch.zeros((), dtype=torch.float64, device=results[0].device)
    for number, value in enumerate(results):
        weights = torch.linspace(-1, 1 + number, value.numel()).to(value)
        loss = loss + (weights.view_as(value) * value).sum()
    found = torch.autograd.grad(loss, list(call.leaves.values()))
    return [value.detach() for value in results], dict(zip(call.leaves, found, strict=True))


def _agrees(case: tuple[OpCall, str]) -> None:
    """In float64, outputs, final states and all gradients are those of the reference."""
    call, backend = case
    results, gradients = _gradients(call, backend)
    expected, expected_gradients = _gradients(call, "reference")
    expect(len(results) == len(expected), f"{len(expected)} results", len(results))
    pairs = [(f"result {k}", *pair) for k, pair in enumerate(zip(results, expected, strict=True))]
    pairs += [(f"the gradient of {k}", gradients[k], v) for k, v in expected_gradients.items()]
    close = partial(expect_close, rtol=0.0, atol=1e-12)
    for what, got, wanted in pairs:
        # Sums in another order differ relative to the largest entry, or to 1 if that is larger.
        scale = wanted.abs().max().clamp(min=1.0)
        close(what, got / scale, wanted / scale)


def _copies(case: tuple[OpCall, str]) -> None:
    """Results share no memory with the inputs, nor with each other."""
    call, backend = case
    taken = {leaf.untyped_storage().data_ptr() for leaf in call.leaves.values()}
    for number, value in enumerate(call.run(backend)):
        if value is not None:
            address = value.untyped_storage().data_ptr()
            expect(address not in taken, f"memory of its own for result {number}", "a view")
            taken.add(address)


def _repeats(case: tuple[OpCall, str]) -> None:
    """The same call gives the same bits."""
    call, backend = case
    (first, gradients), (second, again) = _gradients(call, backend), _gradients(call, backend)
    pairs = [*zip(first, second, strict=True), *((v, again[k]) for k, v in gradients.items())]
    expect(all(torch.equal(a, b) for a, b in pairs), "the same bits", "others")
