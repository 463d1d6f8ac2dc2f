"""A recurrence as one object: its weights, their shapes, and one step.

An ``Equation`` defines a model for ops, layers, cells and streams. ``ops/lem.py`` is an example,
and ``ops/sequence.py`` runs all of them. The C library and the GPU kernels repeat the step by hand
and take their numbers from ``compiled``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch.nn.functional as F
from torch import Tensor

_E = TypeVar("_E", bound="Equation")
Level = TypeVar("Level")
"""Output of one level of a stack for the next: a tensor, or its width."""


class State(NamedTuple):
    """State of an oscillator or multiscale layer.

    Attributes:
        y: Positions (slow states in LEM); the output is y.
        z: Velocities (fast states in LEM).

    Shape:
        [L * D, B, H] each for a layer ([L * D, H] unbatched), [B, H] or [H] for a cell; L layers,
        D directions, ordered layer by layer, forward before reverse.

    Example:
        >>> import torch
        >>> state = State(y=torch.zeros(1, 4, 8), z=torch.zeros(1, 4, 8))
        >>> State(*(part.detach() for part in state)).y.shape
        torch.Size([1, 4, 8])
    """

    y: Tensor
    z: Tensor


class HiddenState(NamedTuple):
    """State of a layer with one variable: h [L * D, B, H].

    Example:
        >>> import torch
        >>> HiddenState(torch.zeros(1, 4, 8)).h.shape
        torch.Size([1, 4, 8])
    """

    h: Tensor


@dataclass(frozen=True)
class Compiled:
    """Description of an equation for the C library and the GPU kernels.

    Attributes:
        model: Its name in ``native.MODELS``.
        numbers: dt, frequency, damping and gate floor (coRNN's may be tensors with gradients),
            followed by the largest step of every layer, or one for all (UnICORNN).
        skipped_layers: S of UnICORNN's residual stacking; 0 for none.
        weights: Converts a layer's weights to those of the model; None if they are the same.

    Example:
        >>> from anharmonic.ops import LEMEquation
        >>> LEMEquation(dt=0.5).compiled().model
        'lem'
    """

    model: str
    numbers: Sequence[float | Tensor]
    skipped_layers: int = 0
    weights: Callable[[Any], Sequence[Tensor | None]] | None = None


class Equation:
    """A recurrence. Subclass it as a frozen dataclass whose fields are the model's numbers.

    A model needs ``Weights``, ``shapes`` and ``step``. The rest has defaults: the drive is
    ``V u + b``, and without ``compiled`` the steps run as a loop in PyTorch.

    Attributes:
        kernel: Its name in ``ops.available_backends``; "" for the reference only.
        Weights: The named tuple of a layer's weights.
        State: The named tuple of its state; the first variable is the output.
        tile: Number of steps whose drive is computed at once; None for the whole sequence.
        invertible: Whether ``memory="reversible"`` can undo its steps.

    Example:
        >>> import torch
        >>> class LeakyWeights(NamedTuple):
        ...     weight_ih: Tensor
        ...     weight_hh: Tensor
        ...     bias: Tensor | None
        >>> @dataclass(frozen=True)
        ... class Leaky(Equation):
        ...     dt: float = 0.1
        ...     Weights, State = LeakyWeights, HiddenState
        ...
        ...     def shapes(self, inputs, hidden):
        ...         square = (hidden, hidden)
        ...         return {"weight_ih": (hidden, inputs), "weight_hh": square, "bias": (hidden,)}
        ...
        ...     def step(self, u, state, w, dt):
        ...         return HiddenState(state.h + dt * torch.tanh(u + state.h @ w.weight_hh.T))
        >>> from anharmonic.ops.sequence import run
        >>> w = LeakyWeights(torch.ones(3, 2), torch.zeros(3, 3), None)
        >>> output, h = run(Leaky(), torch.ones(5, 4, 2), [w], [torch.zeros(1, 4, 3)])
        >>> output.shape
        torch.Size([5, 4, 3])
    """

    kernel: ClassVar[str] = ""
    Weights: ClassVar[Any]
    State: ClassVar[Any] = State
    tile: ClassVar[int | None] = 64
    invertible: bool = False
    dt: Any = 1.0

    # ---- a model defines these ---------------------------------------------------------------
    def shapes(self, inputs: Any, hidden: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of each weight of a layer with this many inputs, by name."""
        raise NotImplementedError

    def step(self, u: Any, state: Any, w: Any, dt: Any) -> Any:
        """Take one step.

        Args:
            u: The drive of this step.
            state: The previous state.
            w: What ``prepare`` returned.
            dt: The step size times the elapsed time: a number, [H], [B, 1] or [B, H].

        Shape:
            u [B, ...]; state [B, H] for each variable.

        Returns:
            The new state, of the type ``State``.
        """
        raise NotImplementedError

    def drive(self, x: Any, w: Any) -> Any:
        """Return the input's contribution to every step, V u + b, [n, B, ...] or a tuple."""
        return F.linear(x, w.weight_ih, w.bias)

    def prepare(self, w: Any) -> Any:
        """Return what all steps have in common, such as transposed weights."""
        return w

    def step_size(self, w: Any) -> Any:
        """Return the step size of a layer, before multiplication by the elapsed time."""
        return self.dt

    def compiled(self) -> Compiled | None:
        """Return the description for compiled code; None for the reference only."""
        return None

    # ---- for stacks whose layers differ; most models leave these alone -------------------------
    def of_layer(self: _E, layer: int) -> _E:
        """Return the equation of one layer of a stack."""
        return self

    def source(self, levels: Sequence[Level]) -> Any:
        """Choose the next layer's input from the levels below, the input first."""
        return levels[-1]

    def alone(self: _E, layer: int, levels: Sequence[Tensor], w: Any) -> tuple[_E, Tensor, Any]:
        """Return equation, input and weights of one layer as a separate stack."""
        return self.of_layer(layer), self.source(levels), w

    def passed_up(self, output: Tensor, start: Any) -> Tensor:
        """Return the input of the layer above, from a layer's output and previous state."""
        return output
