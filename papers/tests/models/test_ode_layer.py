"""Step sizes and gaps that overshoot the leak of an ODE layer are warned of."""

import pytest
import torch

import anharmonic as ah
from anharmonic_papers.models.antisymmetric import AntisymmetricRNN


def make(**options):
    return AntisymmetricRNN(2, 3, dtype=torch.float64, **options)


def test_steps_and_gaps_that_overshoot_the_leak_are_warned_of():
    with pytest.warns(ah.StabilityWarning, match=r"dt \* diffusion.*dt=1, diffusion=2"):
        make(dt=1.0, diffusion=2.0)
    with pytest.warns(ah.StabilityWarning, match=r"dt must be <= 1.*dt=1.5, diffusion=0.1"):
        make(dt=1.5, diffusion=0.1)
    layer = make(dt=0.1, diffusion=3.0)
    x = torch.zeros(2, 1, 2, dtype=torch.float64)
    layer(x, elapsed=torch.full((2, 1), 6.0, dtype=torch.float64))
    with pytest.warns(ah.StabilityWarning, match="elapsed up to 7"):
        layer(x, elapsed=torch.full((2, 1), 7.0, dtype=torch.float64))


@pytest.mark.parametrize("dt, diffusion, name", [(0.0, 1.0, "dt"), (0.1, -1.0, "diffusion")])
def test_refused_step_sizes(dt, diffusion, name):
    with pytest.raises(ValueError, match=f"{name} must be a finite number in"):
        make(dt=dt, diffusion=diffusion)
