"""Neural ODEs in matrix form, with a skew-symmetric, unrestricted or no state matrix."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from anharmonic import _checks, _tensors
from anharmonic.nn.ode.solve import Solver, checked_solver, checked_times, solve
from anharmonic.nn.store import Stored, repr_of

DYNAMICS = ("skew", "unrestricted", "regular")
MATRIX_ACTIVATIONS = ("identity", "tanh")
NORMALISATIONS = ("regression", "classification")


class NeuralODE(Stored):
    r"""The map from z(0) to z(end_time) of a neural ODE in matrix form, (3.1).

    .. math::
        z' = f(z, t) = f(0, t) + A(z, t)\, z, \qquad
        A = (B - B^T) / \sqrt 2 \;\text{("skew") or } A = B \;\text{("unrestricted")}

    ``num_layers`` tanh layers (``trunk``) of ``width`` units w and an affine ``head`` compute the d
    x d matrix B(z, t). Another such network of t computes f(0, t) (``origin_trunk``,
    ``origin_head``). With "regular" dynamics the first network computes f(z, t) itself.

    Args:
        hidden_size: Size of the state d, H >= 1.
        dynamics: "skew", "unrestricted" or "regular".
        width: Units w >= 1 of a hidden layer of the networks.
        num_layers: Hidden layers of each network, >= 1.
        matrix_activation: "identity", or "tanh", which bounds the entries of B; unused by
            "regular".
        normalisation: Which of the thesis's two scalings the heads start with: "regression", B / (w
            sqrt(d)) and f(0, t) / sqrt(w d), or "classification", B / sqrt(2 d) and f(0, t) /
            sqrt(2 w). Has no effect for "regular", whose head starts as PyTorch's.
        end_time: Length of the time interval, > 0.
        solver: Name in torchdiffeq: adaptive "dopri5", "dopri8", "bosh3", "fehlberg2",
            "adaptive_heun", or with fixed steps "euler", "midpoint", "heun2", "heun3", "rk4",
            "implicit_adams".
        rtol: Relative tolerance of an adaptive step, > 0.
        atol: Absolute tolerance of an adaptive step, > 0.
        step_size: Step of a solver with fixed steps, > 0; None for the adaptive ones.
        adjoint: Whether to solve the adjoint equation backwards in time for the gradients (memory
            does not grow with the steps), or to backpropagate through the solver's steps.
        max_evaluations: Largest number of evaluations of f in a solve (with its adjoint), >= 1.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Attributes:
        nfe: Number of function evaluations (NFE) of the last forward solve; 0 before the first.

    Shape:
        z [B, H] or [H]; the result likewise.

    Raises:
        ValueError: If an argument is out of range or conflicts with another.
        TypeError: If an argument has the wrong type.

    Note:
        The thesis leaves open how d x d numbers form a skew matrix; its Lemma 3.1 suggests the form
        used here. It also leaves open where tanh acts (here on B; A's entries then stay within sqrt
        2 of 0), depth, width, solver and tolerances. Only a constant skew A (``head.weight`` zero)
        conserves the norm of the adjoint (Lemmas 2.3, 2.9); A(z, t) conserves it approximately. The
        samples of a batch share the solver's steps, so a result depends on its batch within the
        tolerances.

    Example:
        >>> import torch
        >>> ode = NeuralODE(8, "skew")
        >>> ode(torch.ones(4, 8)).shape, ode.nfe > 0
        (torch.Size([4, 8]), True)

    References:
        Nestaas, Theoretically Motivated Neural ODE Architectures for Stable Adjoint Behavior, 2022.
        Chen et al., Neural Ordinary Differential Equations, NeurIPS 2018.
    """

    def __init__(
        self,
        hidden_size: int,
        dynamics: str = "skew",
        *,
        width: int = 32,
        num_layers: int = 1,
        matrix_activation: str = "identity",
        normalisation: str = "regression",
        end_time: float = 1.0,
        solver: str = "dopri5",
        rtol: float = 1e-4,
        atol: float = 1e-6,
        step_size: float | None = None,
        adjoint: bool = False,
        max_evaluations: int = 10_000,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.hidden_size = d = _checks.positive_int("hidden_size", hidden_size)
        self.dynamics = _checks.choice("dynamics", dynamics, DYNAMICS)
        self.width = _checks.positive_int("width", width)
        self.num_layers = _checks.positive_int("num_layers", num_layers)
        self.matrix_activation = _checks.choice(
            "matrix_activation", matrix_activation, MATRIX_ACTIVATIONS
        )
        self.normalisation = _checks.choice("normalisation", normalisation, NORMALISATIONS)
        if dynamics == "regular":
            for name, default in (
                ("matrix_activation", "identity"),
                ("normalisation", "regression"),
            ):
                _checks.require(
                    getattr(self, name) == default, name, getattr(self, name),
                    f"{default!r} for dynamics='regular', which has no state matrix",
                    "leave it out, or take dynamics='skew' or 'unrestricted'",
                )  # fmt: skip
        self.end_time = _checks.number("end_time", end_time, low=0.0, low_open=True)
        self.solver, self.rtol, self.atol, self.step_size, self.adjoint, self.max_evaluations = (
            checked_solver(solver, rtol, atol, step_size, adjoint, max_evaluations)
        )
        self.nfe = 0
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.trunk = _hidden_layers(d + 1, width, num_layers, factory)
        self.head = nn.Linear(width, d if dynamics == "regular" else d * d, **factory)
        if dynamics != "regular":
            self.origin_trunk = _hidden_layers(1, width, num_layers, factory)
            self.origin_head = nn.Linear(width, d, **factory)
        self.reset_parameters()

    @property
    def solver_settings(self) -> Solver:
        """The solver's settings.

        Each may be changed later as an attribute; the next solve checks it.
        """
        return checked_solver(
            self.solver, self.rtol, self.atol, self.step_size, self.adjoint, self.max_evaluations
        )

    def reset_parameters(self) -> None:
        """Redraw all weights as PyTorch does, and multiply the heads by their factors."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                module.reset_parameters()
        if self.dynamics == "regular":
            return
        d, w = self.hidden_size, self.width
        if self.normalisation == "regression":
            matrix, origin = w * math.sqrt(d), math.sqrt(w * d)
        else:
            matrix, origin = math.sqrt(2 * d), math.sqrt(2 * w)
        with torch.no_grad():
            for head, divisor in ((self.head, matrix), (self.origin_head, origin)):
                for parameter in (head.weight, head.bias):
                    parameter.div_(divisor)

    def state_matrix(self, z: Tensor, t: Tensor | float) -> Tensor:
        """Return the matrix A(z, t).

        Args:
            z: States.
            t: The time, a number.

        Shape:
            z [B, H]; result [B, H, H].

        Raises:
            ValueError: If the dynamics are "regular", which have no matrix.
        """
        _checks.require(
            self.dynamics != "regular", "dynamics", self.dynamics,
            "'skew' or 'unrestricted' for state_matrix", "differentiate vector_field instead",
        )  # fmt: skip
        B: Tensor = self.head(self.trunk(_with_time(z, t))).unflatten(-1, (self.hidden_size,) * 2)
        if self.matrix_activation == "tanh":
            B = torch.tanh(B)
        return (B - B.mT) / math.sqrt(2.0) if self.dynamics == "skew" else B

    def vector_field(self, z: Tensor, t: Tensor | float) -> Tensor:
        """Return the derivative f(z, t).

        Args:
            z: States.
            t: The time, a number.

        Shape:
            z [B, H]; result [B, H].
        """
        if self.dynamics == "regular":
            return self.head(self.trunk(_with_time(z, t)))  # type: ignore[no-any-return]
        at_origin = self.origin_head(self.origin_trunk(_with_time(z[:1, :0], t)))
        A = self.state_matrix(z, t)
        return at_origin + (A @ z.unsqueeze(-1)).squeeze(-1)  # type: ignore[no-any-return]

    def forward(self, z: Tensor) -> Tensor:
        """Solve from z at time 0 to ``end_time``.

        Args:
            z: The initial states.

        Raises:
            TypeError: If z has another dtype than the parameters.
            ValueError: If its shape or device does not fit, or it holds NaN.
            StiffError: If the solver's steps become too small or the evaluations too many.
            ImportError: If torchdiffeq is missing.
        """
        return self.trajectory(z, [0.0, self.end_time])[-1]

    def trajectory(self, z: Tensor, times: Any) -> Tensor:
        """Return the states at given times.

        Args:
            z: The states at the first of the times.
            times: At least two times, strictly increasing; they may lie outside [0, end_time].

        Shape:
            z [B, H] or [H]; result [T, B, H] or [T, H], z itself first.

        Raises:
            TypeError: If z has another dtype than the parameters.
            ValueError: If z or the times do not fit.
            StiffError: If the solver's steps become too small or the evaluations too many.
        """
        weight = self.head.weight
        z = _tensors.tensor_like("z", z, dtype=weight.dtype, device=weight.device)
        d = self.hidden_size
        _checks.require(
            z.dim() in (1, 2) and z.shape[-1] == d and 0 not in z.shape, "z", z,
            f"of shape [B, {d}] or [{d}]", "give one row per state",
        )  # fmt: skip
        _tensors.no_nan("z", z)
        rows = z if z.dim() == 2 else z[None]
        path, self.nfe = solve(
            _Derivative(self), rows, checked_times(times, z), self.solver_settings
        )
        return path if z.dim() == 2 else path[:, 0]  # type: ignore[no-any-return]

    extra_repr = repr_of


class _Derivative(nn.Module):
    """f as solvers call it, time first; the adjoint method uses its parameters."""

    def __init__(self, ode: NeuralODE) -> None:
        super().__init__()
        self.ode = ode

    def forward(self, t: Tensor, z: Tensor) -> Tensor:
        return self.ode.vector_field(z, t)


def _hidden_layers(inputs: int, width: int, number: int, factory: dict[str, Any]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for place in range(number):
        layers += [nn.Linear(width if place else inputs, width, **factory), nn.Tanh()]
    return nn.Sequential(*layers)


def _with_time(z: Tensor, t: Tensor | float) -> Tensor:
    """Append the time to the states as a feature: [B, d] to [B, d + 1]."""
    time = torch.as_tensor(t, dtype=z.dtype, device=z.device)
    return torch.cat((z, time.expand(z.shape[0], 1)), dim=-1)
