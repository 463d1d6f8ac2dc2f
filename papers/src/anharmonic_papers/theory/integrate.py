"""Solutions of ordinary differential equations, exact where linear, as the statements need them."""

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from anharmonic import _checks

derivatives: Any = torch.autograd.functional  # its functions have no types
Field = Callable[[Tensor, Tensor], Tensor]
"""A right-hand side: state and time (a number as a tensor) to the state's rate of change."""


def rk4(field: Field, start: Tensor, times: Tensor, steps: int = 1) -> Tensor:
    """Solve z' = field(z, t) from times[0] by Runge and Kutta's method of order 4; [K, ...].

    It takes ``steps`` equal steps from one time to the next. Gradients pass through it. Times may
    decrease: then it solves backwards.
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
    """The exact solution exp(M t) start of z' = M z, for several columns at once; [K, N, m]."""
    _check_times(times)
    states: Tensor = torch.linalg.matrix_exp(matrix * times[:, None, None]) @ start
    return states


def _check_times(times: Tensor) -> None:
    is_curve = isinstance(times, Tensor) and times.dim() == 1 and len(times) > 0
    advice = "pass the times at which the state is wanted, e.g. torch.linspace(0, 1, 11)"
    _checks.require(is_curve, "times", times, "a tensor [K] with K >= 1", advice)
