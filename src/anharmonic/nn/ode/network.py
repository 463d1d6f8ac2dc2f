"""Network for tables of numbers: encoder, neural ODE, decoder."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from anharmonic import _checks, _tensors
from anharmonic.nn.ode.matrix_form import NeuralODE
from anharmonic.nn.store import Stored


class NeuralODENetwork(Stored):
    r"""Neural ODE between two affine maps, for classification or regression of rows of numbers.

    .. math::
        z(0) = E x + e, \quad z' = f(0, t) + A(z, t)\, z, \quad \hat o = D z(t_1) + d

    Classification takes one output per class (logits). This class wraps ``NeuralODE``.

    Args:
        input_size: Features of a row, F >= 1.
        output_size: Outputs O >= 1: classes, or target values.
        hidden_size: Size of the state, H >= 1.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.
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

    Shape:
        x [B, F]; prediction [B, O].

    Raises:
        ValueError: If an argument is out of range or conflicts with another.
        TypeError: If an argument has the wrong type.

    Note:
        The thesis does not define z(0); here it is an affine map of the features.

    Example:
        >>> import torch
        >>> model = NeuralODENetwork(30, 2, hidden_size=8)
        >>> model(torch.zeros(4, 30)).shape
        torch.Size([4, 2])

    References:
        Nestaas, Theoretically Motivated Neural ODE Architectures for Stable Adjoint Behavior, 2022.
    """

    block_type = NeuralODE
    block_options = (
        "dynamics", "width", "num_layers", "matrix_activation", "normalisation", "end_time",
        "solver", "rtol", "atol", "step_size", "adjoint", "max_evaluations",
    )  # fmt: skip

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        hidden_size: int = 16,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.input_size = _checks.positive_int("input_size", input_size)
        self.output_size = _checks.positive_int("output_size", output_size)
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.ode = NeuralODE(hidden_size, **options, **factory)
        self.encoder = nn.Linear(input_size, hidden_size, **factory)
        self.decoder = nn.Linear(hidden_size, output_size, **factory)

    @property
    def output_layer(self) -> nn.Module:
        """The layer whose outputs are the predictions."""
        return self.decoder

    def config(self) -> dict[str, Any]:
        """The constructor's arguments (without device and dtype) by name."""
        sizes = {"input_size": self.input_size, "output_size": self.output_size}
        return {**sizes, **self.ode.config()}

    def forward(self, x: Tensor) -> Tensor:
        """Predict from rows of features.

        Args:
            x: The rows.

        Raises:
            TypeError: If x has another dtype than the model.
            ValueError: If its shape or device does not fit, or it holds NaN.
            StiffError: If the solver's steps become too small or the evaluations too many.
            ImportError: If torchdiffeq is missing.
        """
        weight = self.encoder.weight
        x = _tensors.tensor_like("x", x, dtype=weight.dtype, device=weight.device)
        _checks.require(
            x.dim() == 2 and x.shape[1] == self.input_size and 0 not in x.shape, "x", x,
            f"of shape [B, {self.input_size}]",
            "give one row of features per sample; a single one as x[None]",
        )  # fmt: skip
        _tensors.no_nan("x", x)
        return self.decoder(self.ode(self.encoder(x)))  # type: ignore[no-any-return]
