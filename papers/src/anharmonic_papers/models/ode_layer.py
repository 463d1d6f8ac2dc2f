"""Recurrences as explicit steps of an equation with a leak rate."""

from __future__ import annotations

from anharmonic import _checks
from anharmonic.nn import StepLayer, warn_unstable


class ODELayer(StepLayer):
    """Steps of size dt of an equation whose state leaks at the rate ``diffusion``.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also reads the sequence backwards.
        memory: What to keep for the backward pass. "stored" keeps all states, "chunked" keeps some
            and recomputes the rest, "auto" chooses by size.

    Shape:
        x [T, B, F], [B, T, F] with ``batch_first``, [T, F] unbatched, or a ``PackedSequence``.
        output [T, B, D * H] in the same layout; state: a named tuple of [L * D, B, H] each.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.
    """

    has_step_size = True

    def set_step(self, dt: float, diffusion: float) -> None:
        """Check and store the step size and the rate, and warn if states would grow."""
        self.dt = _checks.number("dt", dt, low=0.0, low_open=True)
        self.diffusion = _checks.number("diffusion", diffusion, low=0.0)
        self._warn_unstable()

    def _warn_unstable(self, longest: float = 1.0) -> bool:
        values = f"dt={self.dt:g}, diffusion={self.diffusion:g}"
        if self.dt * longest * self.diffusion >= 2:
            advice = "choose a smaller dt or less diffusion"
            return warn_unstable("dt * diffusion must be < 2", values, advice, longest)
        if self.dt * longest > 1:  # explicit steps lengthen vectors that a skew matrix only rotates
            return warn_unstable("dt must be <= 1", values, "choose a smaller dt", longest)
        return False
