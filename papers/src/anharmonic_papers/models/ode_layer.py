"""Recurrences as explicit steps of an equation with a leak rate."""

from __future__ import annotations

from anharmonic import _checks
from anharmonic.nn import StepLayer, warn_unstable


class ODELayer(StepLayer):
    """Steps of size dt of an equation whose state leaks at the rate ``diffusion``."""

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
