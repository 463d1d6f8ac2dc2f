"""Solutions of differential equations with a fixed step, for the continuous statements."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


def runge_kutta(
    field: Callable[[Tensor], Tensor], start: Tensor, length: float, steps: int
) -> Tensor:
    """The classical Runge-Kutta method of fourth order over one interval.

    Args:
        field: The right-hand side, which does not change over the interval.
        start: The state at its beginning.
        length: Its length.
        steps: Steps taken in it.

    Returns:
        The state at its end.

    Example:
        >>> import torch
        >>> end = runge_kutta(lambda y: -y, torch.ones((), dtype=torch.float64), 1.0, 100)
        >>> bool((end - torch.tensor(-1.0).double().exp()).abs() < 1e-10)
        True
    """
    h, state = length / steps, start
    for _ in range(steps):
        k1 = field(state)
        k2 = field(state + h / 2 * k1)
        k3 = field(state + h / 2 * k2)
        k4 = field(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state
