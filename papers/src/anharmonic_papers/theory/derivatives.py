"""Directional derivatives and Jacobians of small functions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def derivative(function: Callable[[Tensor], Tensor], x: Tensor, direction: Tensor) -> Tensor:
    """The derivative (direction·∇) function at x.

    Args:
        function: What PyTorch can differentiate twice.
        x: The point.
        direction: As large as x.

    Shape:
        x, direction [d]; function(x) and result [...].

    Example:
        >>> derivative(lambda x: x**2, torch.tensor([3.0, 1.0]), torch.tensor([1.0, 0.0])).tolist()
        [6.0, 0.0]
    """
    return _derivatives(function, x, [direction])[0]


def jacobian(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """All derivatives ∂function/∂x_k, the last axis over k.

    Args:
        function: What PyTorch can differentiate twice.
        x: The point.

    Shape:
        x [d]; function(x) [...]; result [..., d].

    Example:
        >>> jacobian(lambda x: x.flip(0) * x[0], torch.tensor([3.0, 1.0])).tolist()
        [[1.0, 3.0], [6.0, 0.0]]
    """
    return torch.stack(_derivatives(function, x, list(torch.eye(len(x), dtype=x.dtype))), dim=-1)


def _derivatives(
    function: Callable[[Tensor], Tensor], x: Tensor, directions: list[Tensor]
) -> list[Tensor]:
    """Forward derivatives by two backward ones: u·∂f/∂x is linear in u with derivative ∂f/∂x."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        value = function(x)
        if not value.requires_grad:
            return [torch.zeros_like(value) for _ in directions]
        u = torch.zeros_like(value, requires_grad=True)
        (row,) = torch.autograd.grad(value, x, u, create_graph=True, materialize_grads=True)
        return [
            torch.autograd.grad(row, u, d, retain_graph=True, materialize_grads=True)[0]
            for d in directions
        ]
