"""Base class of cells: one step of one layer, like ``torch.nn.LSTMCell``."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from anharmonic import _checks
from anharmonic.nn.sequence.inputs import (
    checked_elapsed,
    checked_state,
    checked_step,
)
from anharmonic.nn.sequence.layer import EquationModule
from anharmonic.ops import Equation, State, run


class SequenceCell(EquationModule):
    """One step of one layer, like ``torch.nn.LSTMCell``; ``layer_class`` names the layer."""

    layer_class: ClassVar[Any]

    def __init__(self, input_size: int, hidden_size: int, bias: bool) -> None:
        super().__init__()
        self.input_size = _checks.positive_int("input_size", input_size)
        self.hidden_size = _checks.positive_int("hidden_size", hidden_size)
        self._has_bias = _checks.boolean("bias", bias)
        if not bias:
            self.register_parameter("bias", None)

    def equation(self) -> Equation:
        """Return the equation of the layer."""
        equation: Equation = self.layer_class.equation(self)
        return equation

    def _initialise(self, name: str, parameter: Tensor, inputs: int) -> None:
        self.layer_class._initialise(self, name, parameter, inputs)

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Initialise a parameter as the layer does."""
        self.layer_class.init_parameter(self, name, parameter)

    def _frozen_names(self) -> frozenset[str]:
        names: frozenset[str] = self.layer_class._frozen_names(self)
        return names

    def _warn_unstable(self, longest: float = 1.0) -> bool:
        return bool(self.layer_class._warn_unstable(self, longest))

    def make_parameters(self, **factory: Any) -> None:
        """Make the parameters."""
        self._make([("", 0)], [self.input_size], **factory)

    def config(self) -> dict[str, Any]:
        """The constructor's arguments (without device and dtype) by name."""
        return super().config() | {"bias": self._has_bias}

    def forward(
        self,
        input: Tensor,
        hx: tuple[Tensor, Tensor] | None = None,
        elapsed: Tensor | None = None,
    ) -> State:
        """Take one step.

        Args:
            input: The features of one time step, x_t.
            hx: The previous state; zeros if None.
            elapsed: Time since the previous sample in units of the nominal step, [B] or [], >= 0;
                it multiplies dt. None means 1.

        Raises:
            TypeError: If a tensor has another dtype than the cell.
            ValueError: If a shape or device does not fit, or elapsed is negative or not finite.
        """
        x_t = checked_step(input, self.input_size, self._example)
        batched = x_t.dim() == 2
        y, z = checked_state(hx, (*x_t.shape[:-1], self.hidden_size), self._example)
        if elapsed is not None:
            elapsed = checked_elapsed(elapsed, tuple(x_t.shape[:-1]), self).reshape(1, -1)
        if not batched:
            x_t, y, z = x_t[None], y[None], z[None]
        equation = self.equation()
        _, y, z = run(
            equation,
            x_t[None],
            self._weights(equation),
            State(y[None], z[None]),
            elapsed=elapsed,
            output="none",
            memory="stored",
        )
        assert y is not None and z is not None
        return State(y[0], z[0]) if batched else State(y[0, 0], z[0, 0])
