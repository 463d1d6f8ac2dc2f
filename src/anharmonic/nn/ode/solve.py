"""Initial value problems solved with torchdiffeq, with checks, counts and a limit on stiffness.

torchdiffeq is an extra and is imported at the first solve.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from anharmonic import _checks, _tensors

ADAPTIVE = ("dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun")
"""Solvers that choose their steps by ``rtol`` and ``atol``."""
FIXED = ("euler", "midpoint", "heun2", "heun3", "rk4", "implicit_adams")
"""Solvers with a fixed ``step_size``, without torchdiffeq's explicit_adams, which is unstable."""


class StiffError(RuntimeError):
    """A solve needs too small steps or too many evaluations.

    Example:
        >>> issubclass(StiffError, RuntimeError)
        True
    """


class Solver(NamedTuple):
    """Settings of a solver, as ``NeuralODE`` describes them."""

    method: str = "dopri5"
    rtol: float = 1e-4
    atol: float = 1e-6
    step_size: float | None = None
    adjoint: bool = False
    max_evaluations: int = 10_000


def checked_solver(
    method: str,
    rtol: float,
    atol: float,
    step_size: float | None,
    adjoint: bool,
    max_evaluations: int,
) -> Solver:
    """Check a solver's settings and return them; the arguments are those of ``Solver``."""
    _checks.choice("solver", method, (*ADAPTIVE, *FIXED))
    rtol = _checks.number("rtol", rtol, low=0.0, low_open=True)
    atol = _checks.number("atol", atol, low=0.0, low_open=True)
    if method in ADAPTIVE:
        _checks.require(
            step_size is None, "step_size", step_size, f"None for the adaptive solver {method!r}",
            "set rtol and atol instead, or take a solver with fixed steps such as 'rk4'",
        )  # fmt: skip
    else:
        _checks.require(
            step_size is not None, "step_size", step_size, f"a number > 0 for solver={method!r}",
            "pass a step, or take an adaptive solver such as 'dopri5'",
        )  # fmt: skip
        step_size = _checks.number("step_size", step_size, low=0.0, low_open=True)
    adjoint = _checks.boolean("adjoint", adjoint)
    limit = _checks.positive_int("max_evaluations", max_evaluations)
    return Solver(method, rtol, atol, step_size, adjoint, limit)


def checked_times(times: Any, like: Tensor) -> Tensor:
    """Check the times of a solve and return them with the dtype and device of ``like``."""
    checked: Tensor = torch.as_tensor(times, dtype=like.dtype, device=like.device)
    _checks.require(
        checked.dim() == 1 and len(checked) >= 2, "times", checked,
        "a list of at least two, the initial state's first", "pass for example [0.0, 1.0]",
    )  # fmt: skip
    if not checked.isfinite().all() or not (checked.diff() > 0).all():
        near = [f"{t:g}" for t in checked.tolist()[:5]] + ["..."] * (len(checked) > 5)
        raise ValueError(
            _checks.message(
                f"times must be finite and strictly increasing in {checked.dtype}",
                ", ".join(near),
                "sort them and remove repetitions; to go backwards in time, solve for -f",
            )
        )
    return checked


class _Counted(nn.Module):
    """Dynamics for torchdiffeq that count calls and stop a hopeless solve with an error."""

    def __init__(self, dynamics: Callable[[Tensor, Any], Any], solver: Solver) -> None:
        super().__init__()
        self.dynamics = dynamics
        self.solver = solver
        self.evaluations = 0

    def forward(self, t: Tensor, z: Any) -> Any:
        self.evaluations += 1
        if self.evaluations > self.solver.max_evaluations:
            raise self.too_stiff(f"more than max_evaluations={self.solver.max_evaluations}")
        return self.dynamics(t, z)

    def callback_step(self, t0: Tensor, z: Any, dt: Tensor) -> None:
        """Called by the solver before every forward step."""
        if not (t0 + dt > t0 and t0 - dt < t0):
            raise self.too_stiff(f"a step of {float(dt):g} at time {float(t0):g}")
        self.check_finite(z)

    callback_step_adjoint = callback_step  # and before every backward step of the adjoint method

    def check_finite(self, z: Any) -> None:
        for part in (z,) if isinstance(z, Tensor) else z:
            if _tensors.has_values(part) and not math.isfinite(float(part.detach().abs().sum())):
                raise self.too_stiff("a state that is not finite")

    def too_stiff(self, came: str) -> StiffError:
        solver = self.solver
        how = f"rtol={solver.rtol:g}, atol={solver.atol:g}"
        if solver.step_size is not None:
            how = f"step_size={solver.step_size:g}"
        return StiffError(
            _checks.message(
                f"solver {solver.method!r} ({how}) must reach the end in steps that it can take",
                f"{came}, so the dynamics are too stiff for it or their values overflow",
                "loosen rtol and atol, bound the dynamics (matrix_activation='tanh', a smaller lr "
                "or weight_decay), shorten the time, or raise max_evaluations",
            )
        )


def solve(
    dynamics: Callable[[Tensor, Any], Any], start: Any, times: Tensor, solver: Solver
) -> tuple[Any, int]:
    """Solve z' = dynamics(t, z) from ``start``, a tensor or a tuple of tensors, at the first time.

    Return the states at all times (tensors with an additional first axis), and the number of
    evaluations of the dynamics, which must be a ``torch.nn.Module`` for the adjoint method.

    Raises:
        StiffError: If the steps become too small, or the evaluations too many; with the adjoint
            method also from ``backward``.
        ImportError: If torchdiffeq is missing.

    Example:
        >>> times = torch.tensor([0.0, 1.0])
        >>> path, evaluations = solve(lambda t, z: -z, torch.ones(1), times, Solver())
        >>> f"{path[1].item():.3f}", evaluations
        ('0.368', 20)
    """
    try:
        import torchdiffeq
    except ImportError as error:
        raise _checks.missing_extra("torchdiffeq", "ode", "solving a neural ODE") from error
    counted = _Counted(dynamics, solver)
    options = None
    if solver.step_size is not None:
        options = {"step_size": solver.step_size}
        # torchdiffeq takes memory for all steps before the first.
        if float(times[-1] - times[0]) / solver.step_size > solver.max_evaluations:
            raise counted.too_stiff(f"more than max_evaluations={solver.max_evaluations}")
    method = torchdiffeq.odeint_adjoint if solver.adjoint else torchdiffeq.odeint
    path = method(
        counted, start, times,
        rtol=solver.rtol, atol=solver.atol, method=solver.method, options=options,
    )  # fmt: skip
    counted.check_finite(path)  # solvers with fixed steps do not stop at infinities
    return path, counted.evaluations
