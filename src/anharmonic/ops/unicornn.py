r"""UnICORNN: independent undamped oscillators with learned time scales.

With ``memory="reversible"`` states are on a fixed-point grid, where a step can be undone bit for
bit. States are float64 multiples of 2⁻⁴⁰ with magnitude below 2¹⁰. Increments are computed in the
layer's own dtype (``f(y)`` is y in that dtype), rounded to the grid by R and added exactly:

.. math::
    z_n &= z_{n-1} - R(h\,(\tanh(w f(y_{n-1}) + x_n) + \alpha f(y_{n-1}))) \\
    y_n &= y_{n-1} + R(h\, f(z_n))

The increment of y depends only on z_n, that of z only on y_{n-1}. Subtracting them in reverse order
restores the same bits. R is treated as the identity in derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic._checks import require
from anharmonic.ops.backend import GRID_LIMIT, off_grid
from anharmonic.ops.equation import Compiled, Equation, Level, State
from anharmonic.ops.sequence import SequenceOptions, check_numbers, run

SPACING = 2.0**-40


class UnICORNNWeights(NamedTuple):
    """Weights of one layer in one direction: V [H, F], w, b or None, c [H]; Λ [H, F'] or None.

    Example:
        >>> one = UnICORNNWeights(torch.ones(8, 3), torch.ones(8), None, torch.zeros(8))
        >>> one.timescale.shape
        torch.Size([8])
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor | None
    timescale: Tensor
    weight_skip: Tensor | None = None


@dataclass(frozen=True)
class UnICORNNEquation(Equation):
    r"""Equation (3.6) with residual stacking (3.79); ``frequency`` is α, ``skipped_layers`` S.

    .. math::
        x_n &= V y_n^{l-1} + b \quad (+\ \Lambda y_n^{l-S-1}), \qquad h = dt\,\hat\sigma(c) \\
        z_n &= z_{n-1} - h \odot [\tanh(w \odot y_{n-1} + x_n) + \alpha y_{n-1}] \\
        y_n &= y_{n-1} + h \odot z_n

    ``dt`` holds one step per layer; ``of_layer`` picks one.

    Example:
        >>> UnICORNNEquation(dt=(0.1,)).shapes(3, 8)["weight_ih"]
        (8, 3)
    """

    dt: Any = (0.1,)
    frequency: float = 1.0
    skipped_layers: int | None = None

    kernel: ClassVar[str] = "unicornn"
    Weights: ClassVar[Any] = UnICORNNWeights
    invertible = True

    def of_layer(self, layer: int) -> UnICORNNEquation:
        """Return one with the layer's own step, and a skip connection if one ends there."""
        S = self.skipped_layers
        return replace(
            self, dt=self.dt[layer], skipped_layers=None if S is None or layer < S else S
        )

    def source(self, levels: Sequence[Level]) -> Any:
        """Choose the level below, and the one of the skip connection."""
        if self.skipped_layers is None:
            return levels[-1]
        return levels[-1], levels[-1 - self.skipped_layers]

    def shapes(self, inputs: Any, hidden: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of V, w, b and c, and of Λ where a skip connection ends."""
        one = (hidden,)
        inputs, skipped = inputs if isinstance(inputs, tuple) else (inputs, None)
        shapes = {"weight_ih": (hidden, inputs), "weight_hh": one, "bias": one, "timescale": one}
        return shapes if skipped is None else shapes | {"weight_skip": (hidden, skipped)}

    def drive(self, x: Any, w: UnICORNNWeights) -> Tensor:
        """Return x_n."""
        x, skipped = x if isinstance(x, tuple) else (x, None)
        drive = F.linear(x, w.weight_ih, w.bias)
        if skipped is None or w.weight_skip is None:
            return drive
        return drive + F.linear(skipped, w.weight_skip)

    def prepare(self, w: UnICORNNWeights) -> Tensor:
        """Return w."""
        return w.weight_hh

    def step_size(self, w: UnICORNNWeights) -> Tensor:
        """Return h = dt σ̂(c)."""
        h: Tensor = self.dt * torch.sigmoid(w.timescale)
        return h

    def step(self, u: Tensor, state: State, w: Tensor, dt: Tensor) -> State:
        """Take a step of the equation above, with h in place of dt."""
        y, z = state
        z = z - dt * (torch.tanh(w * y + u) + self.frequency * y)
        return State(y + dt * z, z)

    def alone(
        self, layer: int, levels: Sequence[Tensor], w: UnICORNNWeights
    ) -> tuple[UnICORNNEquation, Tensor, UnICORNNWeights]:
        """Join a layer's skip input to its input, and Λ to V."""
        own = self.of_layer(layer)
        if own.skipped_layers is None or w.weight_skip is None:
            return replace(own, dt=(own.dt,)), levels[-1], w
        joined = torch.cat([w.weight_ih, w.weight_skip], dim=1)
        source = torch.cat(own.source(levels), dim=-1)
        alone = replace(own, dt=(own.dt,), skipped_layers=None)
        return alone, source, w._replace(weight_ih=joined, weight_skip=None)

    def compiled(self) -> Compiled:
        """Return the arguments of csrc/unicornn.h."""
        numbers = (1.0, self.frequency, 0.0, 0.0, *self.dt)
        return Compiled("unicornn", numbers, self.skipped_layers or 0)

    def on_grid(self, weights: Sequence[Any]) -> tuple[UnICORNNEquation, Sequence[Any]]:
        """Return the equation on the grid, which is this one, and its weights."""
        return self, weights

    def to_grid(self, state: State) -> State:
        """Return the state on the grid."""
        return State(*map(rounded, state))

    def step_on_grid(self, u: Tensor, state: State, f_y: Tensor, w: Tensor, dt: Tensor) -> State:
        """Take a step on the grid."""
        y, z = state
        z = z - rounded(dt * (torch.tanh(w * f_y + u) + self.frequency * f_y))
        return State(y + rounded(dt * z.to(f_y.dtype)), z)

    def step_back_on_grid(self, u: Tensor, state: State, w: Tensor, dt: Tensor) -> State:
        """Undo a step, bit for bit."""
        y, z = state
        y = y - rounded(dt * z.to(u.dtype))
        f_y = y.to(u.dtype)
        return State(y, z + rounded(dt * (torch.tanh(w * f_y + u) + self.frequency * f_y)))

    def check_on_grid(self, states: Sequence[State]) -> None:
        """Raise an ``OverflowError`` if a state left the grid and values can be read."""
        if not states[0].y.numel():  # an empty batch
            return
        most = [torch.maximum(y.detach().abs(), z.detach().abs()).amax() for y, z in states]
        largest = torch.stack(most).amax()
        if not largest.is_meta and not float(largest) < GRID_LIMIT:
            raise off_grid(f"a state of {float(largest):g}, which left the grid")


class _Round(torch.autograd.Function):
    """R: the nearest multiple of the spacing, ties to even, in float64; derivative 1."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        ctx.dtype = value.dtype
        return (value.double() / SPACING).round_() * SPACING

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad.to(ctx.dtype)


def rounded(value: Tensor) -> Tensor:
    """Return R(value): float64, on the grid, contiguous.

    Example:
        >>> rounded(torch.tensor([0.5, 2.0**-41, 3 * 2.0**-41])).mul(2.0**40).tolist()
        [549755813888.0, 0.0, 2.0]
    """
    return _Round.apply(value.contiguous())  # type: ignore[no-untyped-call, no-any-return]


def unicornn(
    x: Tensor,
    weights: Sequence[UnICORNNWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: Sequence[float],
    frequency: float,
    skipped_layers: int | None = None,
    **options: Unpack[SequenceOptions],
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Run a stack of UnICORNN layers over a sequence; ``UnICORNNEquation`` is the equation.

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial positions.
        z0: Initial velocities.
        dt: One step per layer, > 0.
        frequency: α, >= 0.
        skipped_layers: S of the residual stacking, or None for plain stacking.
        options: Directions, lengths, memory and others; see ``SequenceOptions``.
            ``memory="reversible"`` needs one direction and uses a grid.

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H] with D directions. Returns outputs y [T, B, D * H]
        ([B, D * H] for ``output="last"``, None for "none"), final y and final z [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, a shape does not fit, or policy or backend do not support
            this input.
        OverflowError: If states leave the grid of the reversible policy.

    Example:
        >>> import torch
        >>> w = UnICORNNWeights(torch.ones(3, 2), torch.ones(3), None, torch.zeros(3))
        >>> zero = torch.zeros(1, 4, 3)
        >>> out, y, z = unicornn(torch.ones(5, 4, 2), [w], zero, zero, dt=[0.1], frequency=1.0)
        >>> out.shape, torch.equal(out[-1], y[0])
        (torch.Size([5, 4, 3]), True)
    """
    layers = len(weights) // (2 if options.get("bidirectional") else 1)
    require(
        len(dt) == layers, "dt", dt, f"one step per layer, {layers} in all", "give each its own"
    )
    check_numbers(frequency=frequency, **{f"dt[{k}]": step for k, step in enumerate(dt)})
    equation = UnICORNNEquation(tuple(dt), frequency, skipped_layers)
    return run(equation, x, weights, (y0, z0), **options)  # type: ignore[return-value]
