"""Solutions of ordinary differential equations, exact where linear, as the statements need them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor

from anharmonic import _checks

Field = Callable[[Tensor, Tensor], Tensor]
"""A right-hand side: state and time (a number as a tensor) to the state's rate of change."""


def rk4(field: Field, start: Tensor, times: Tensor, steps: int = 1) -> Tensor:
    """Solve z' = field(z, t) with the classical Runge-Kutta method of order 4.

    Gradients pass through it. Times may decrease: then it solves backwards.

    Args:
        field: The right-hand side.
        start: The state at ``times[0]``.
        times: The times at which the state is wanted.
        steps: Equal steps from one time to the next, >= 1.

    Shape:
        start [...]; times [K]; result [K, ...].

    Raises:
        ValueError: If times are no curve of numbers, or steps < 1.

    Example:
        >>> times = torch.linspace(0, 1, 11, dtype=torch.float64)
        >>> z = rk4(lambda z, t: -z, torch.ones(1, dtype=torch.float64), times)
        >>> bool((z[-1] - torch.exp(-times[-1])).abs() < 1e-6)
        True
    """
    _check_times(times)
    _checks.positive_int("steps", steps)
    states, z = [start], start
    for begin, end in itertools.pairwise(times):
        h = (end - begin) / steps
        for k in range(steps):
            t = begin + k * h
            k1 = field(z, t)
            k2 = field(z + h / 2 * k1, t + h / 2)
            k3 = field(z + h / 2 * k2, t + h / 2)
            k4 = field(z + h * k3, t + h)
            z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states.append(z)
    return torch.stack(states)


def linear_flow(matrix: Tensor, start: Tensor, times: Tensor) -> Tensor:
    """The exact solution exp(M t) start of z' = M z.

    Args:
        matrix: M.
        start: The state at time 0; columns are solved side by side.
        times: The times at which it is wanted.

    Shape:
        matrix [N, N]; start [N, m]; times [K]; result [K, N, m].

    Raises:
        ValueError: If times are no curve of numbers.

    Example:
        >>> turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
        >>> z = linear_flow(turn, torch.tensor([[0.0], [1.0]]), torch.tensor([torch.pi / 2]))
        >>> torch.allclose(z[0, :, 0], torch.tensor([1.0, 0.0]), atol=1e-6)
        True
    """
    _check_times(times)
    states: Tensor = torch.linalg.matrix_exp(matrix * times[:, None, None]) @ start
    return states


def _check_times(times: Tensor) -> None:
    if not isinstance(times, Tensor) or times.dim() != 1 or len(times) == 0:
        raise ValueError(
            _checks.message(
                "times must be a tensor [K] with K >= 1",
                _checks.described(times),
                "pass the times at which the state is wanted, e.g. torch.linspace(0, 1, 11)",
            )
        )
