"""Making operators of functions on raw memory, for autograd, ``torch.compile`` and export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from anharmonic._checks import message


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
        set_up: Saves what its derivative needs.
        devices: Where ``function`` can run.
    """
    full_name = f"anharmonic::{name}"
    schema = torch.library.infer_schema(function, mutates_args=())
    torch.library.define(full_name, schema, tags=torch.Tag.pt2_compliant_tag)
    torch.library.impl(full_name, devices, function)
    torch.library.register_fake(full_name, fake)
    torch.library.register_autograd(full_name, backward, setup_context=set_up)
    return getattr(torch.ops.anharmonic, name).default


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


def refuse_second_derivative(ctx: Any) -> None:
    """For a backward pass: with ``create_graph=True`` it would be differentiated again.

    Raises:
        RuntimeError: As ``refuse``; a compiler's own trace passes.
    """
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        refuse(ctx)
