"""Prediction of trajectories of ordinary differential equations."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from anharmonic._checks import choice, natural, number, positive_int
from anharmonic.data import SequenceDataset, Splits, Task, seeded_rng
from anharmonic_papers.tasks.integrate import Array, integrate


class FitzHughNagumo(Task):
    r"""FitzHugh-Nagumo: predict the next value of a signal with a slow and a fast scale.

    $$v' = v - v^3/3 - w + I, \qquad w' = \tau (v + a - b w)$$

    with $I = 0.5$, $a = 0.7$, $b = 0.8$, $\tau = 0.02$, from $(c, 0)$ with $c$ uniform in
    (-1, 1), at 1001 equidistant times in [0, 400]. The input is v at the times 0 to 999, the
    target v at the times 1 to 1000; w is not used. Repeating the input gives an error of 0.079.

    Args:
        tolerance: "default" is SciPy's default (rtol 1e-3, atol 1e-6), as published. "tight" is
            rtol 1e-8 and atol 1e-10.
        data_seed: Seed of the starting points. The published one is 1234.

    Shape:
        x `[B, 1000, 1]`, y `[B, 1000, 1]`, no lengths.

    Split: 128 training, 128 validation and 1024 test trajectories. Their starting points are
    drawn in this order from NumPy's legacy generator, as in the published code.

    Metric: root of the mean squared error over all steps and trajectories. Licence: none needed,
    computed here.

    Note:
        The paper states neither signal nor horizon, so both follow the published code. At the
        default tolerance the published trajectories differ from the exact ones by 0.04 (root mean
        square). This is twenty times the reported error, so a model learns the output of the
        solver. The trajectories also depend on rounding and differ between machines. Changing the
        last bit of a starting point changes one trajectory in four by more than 0.001 at late
        times (0.0006 root mean square over all). This holds for SciPy and for the solver here.
        "tight" gives the solution of the equation. The published code keeps only the last batch,
        so its reported error covers the last 128 test trajectories. Here it covers all 1024.

    Example:
        >>> task = FitzHughNagumo()
        >>> task.sizes, task.input_size, task.readout
        ({'train': 128, 'valid': 128, 'test': 1024}, 1, 'all')

    References:
        T. K. Rusch et al.: Long Expressive Memory, https://arxiv.org/abs/2110.04744, Table 4.
    """

    name = "fitzhugh-nagumo"
    target = "value"
    readout = "all"
    metric = "rmse"
    input_size = 1
    output_size = 1
    source = "computed (FitzHugh-Nagumo equations as in the LEM paper and its code)"
    licence = "none needed"

    def __init__(
        self, tolerance: Literal["default", "tight"] = "default", data_seed: int = 1234
    ) -> None:
        self.tolerance = choice("tolerance", tolerance, ("default", "tight"))
        self.data_seed = natural("data_seed", data_seed)
        self.sizes = {"train": 128, "valid": 128, "test": 1024}

    def _build(self) -> Splits[SequenceDataset]:
        tolerances = {"default": (1e-3, 1e-6), "tight": (1e-8, 1e-10)}[self.tolerance]
        rng = np.random.RandomState(self.data_seed)  # the published code's generator
        start = np.zeros((sum(self.sizes.values()), 2))
        start[:, 0] = 2 * rng.random_sample(len(start)) - 1
        times: Array = np.linspace(0.0, 400.0, 1001, dtype=np.float64)
        u = integrate(fitzhugh_nagumo, start, times, rtol=tolerances[0], atol=tolerances[1])
        v = torch.from_numpy(u[:, :, :1].astype(np.float32))
        return _three(v[:, :-1], v[:, 1:], self.sizes)


class Lorenz96(Task):
    r"""Lorenz 96: predict the state of a regular or chaotic system 25 steps ahead.

    $$x_i' = (x_{i+1} - x_{i-2})\, x_{i-1} - x_i + F, \qquad i = 1, \dots, 5 \text{ (cyclic)}$$

    The start is uniform in $[F - 1/2, F + 1/2]^5$, and the state is sampled every 0.01. The input
    is the state at each step, and the target is the state `horizon` steps later.

    Args:
        forcing: $F$, a number in [-20, 20]. 0.9 gives regular motion, and 8 chaotic motion.
        length: Steps `T` of a sequence, at least 1.
        horizon: Steps to look ahead, at least 1.
        data_seed: Seed of the starting points, in `[0, 2**32)`.

    Shape:
        x `[B, T, 5]`, y `[B, T, 5]`, no lengths.

    Split: 128 training, 128 validation and 128 test trajectories.

    Metric: root of the mean squared error over all steps, variables and trajectories, divided by
    the root mean square of the targets. Licence: none needed, computed here.

    Note:
        No code of this experiment was published, and the papers name neither solver, tolerance
        nor seed. This task uses Dormand-Prince 5(4) in float64 with rtol 1e-8 and atol 1e-10.

    Example:
        >>> task = Lorenz96(forcing=8.0, length=10)
        >>> batch = task.loaders(seed=0, batch_size=4).valid[0]
        >>> list(batch.x.shape), list(batch.y.shape)
        ([4, 10, 5], [4, 10, 5])

    References:
        T. K. Rusch: doctoral thesis, ETH Zurich, Tables 2.5 and 3.6.
        T. K. Rusch, S. Mishra: UnICORNN, https://arxiv.org/abs/2103.05487, Table 7.
    """

    name = "lorenz96"
    target = "value"
    readout = "all"
    metric = "nrmse"
    input_size = 5
    output_size = 5
    source = "computed (Lorenz 96 equations as in the UnICORNN paper)"
    licence = "none needed"

    def __init__(
        self,
        forcing: float = 0.9,
        length: int = 2000,
        horizon: int = 25,
        data_seed: int = 1234,
    ) -> None:
        self.forcing = number("forcing", forcing, low=-20.0, high=20.0)
        self.length = positive_int("length", length)
        self._ahead = positive_int("horizon", horizon)
        self.data_seed = natural("data_seed", data_seed)
        self.sizes = {"train": 128, "valid": 128, "test": 128}

    def _build(self) -> Splits[SequenceDataset]:
        rng = seeded_rng("lorenz96", self.data_seed)
        low, high = self.forcing - 0.5, self.forcing + 0.5
        start = rng.uniform(low, high, (sum(self.sizes.values()), 5))
        steps = self.length + self._ahead
        times = np.linspace(0.0, 0.01 * (steps - 1), steps, dtype=np.float64)
        u = integrate(lambda x: lorenz96(x, self.forcing), start, times, rtol=1e-8, atol=1e-10)
        x = torch.from_numpy(u.astype(np.float32))
        return _three(x[:, : self.length], x[:, self._ahead :], self.sizes)


def fitzhugh_nagumo(u: Array) -> Array:
    """Return the right-hand side of the FitzHugh-Nagumo equations, `[M, 2]` (v, w) to `[M, 2]`."""
    v, w = u[:, 0], u[:, 1]
    return np.stack([v - v**3 / 3 - w + 0.5, 0.02 * (v + 0.7 - 0.8 * w)], axis=1)


def lorenz96(x: Array, forcing: float) -> Array:
    """Return the right-hand side of the Lorenz 96 equations, `[M, D]` to `[M, D]`."""
    ahead, behind, further = np.roll(x, -1, 1), np.roll(x, 1, 1), np.roll(x, 2, 1)
    change: Array = (ahead - further) * behind - x + forcing
    return change


def _three(x: Tensor, y: Tensor, sizes: dict[str, int]) -> Splits[SequenceDataset]:
    """Split the sequences into training, validation and test data, in this order."""
    parts = zip(*(torch.split(values, list(sizes.values())) for values in (x, y)), strict=True)
    return Splits(*(SequenceDataset(*part) for part in parts))
