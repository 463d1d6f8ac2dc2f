"""The fixed-step solver has the order it says."""

import math

import torch

from anharmonic.theory.flows import runge_kutta


def test_halving_the_step_divides_the_error_by_sixteen():
    def oscillator(state):
        return torch.stack([state[1], -state[0]])

    start = torch.tensor([1.0, 0.0], dtype=torch.float64)
    exact = torch.tensor([math.cos(2.0), -math.sin(2.0)], dtype=torch.float64)
    coarse, fine = (runge_kutta(oscillator, start, 2.0, n) - exact for n in (20, 40))
    assert 15 < float(coarse.norm() / fine.norm()) < 17
