"""What the rivals share: steps of an equation with a leak rate, and skew-symmetric matrices."""

import torch
from torch import Tensor

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


def free_entries(size: int) -> int:
    """How many numbers a skew-symmetric matrix has."""
    return size * (size - 1) // 2


def skew_matrix(entries: Tensor, size: int) -> Tensor:
    """The skew-symmetric matrix L - L^T of a strictly lower triangle L, given row by row."""
    rows, columns = torch.tril_indices(size, size, -1, device=entries.device)
    lower = entries.new_zeros(size, size).index_put((rows, columns), entries)
    return lower - lower.t()
