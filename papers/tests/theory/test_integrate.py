"""Solutions against closed forms, and the order of the solver."""

import pytest
import torch

from anharmonic_papers.theory.integrate import linear_flow, rk4


def turning(z, t):
    return torch.stack([z[1], -z[0]])


def test_rk4_is_of_order_four_knows_the_time_and_goes_backwards():
    times, start = torch.linspace(0, 3, 4).double(), torch.tensor([1.0, 0.0]).double()
    exact = torch.stack([times[-1].cos(), -times[-1].sin()])
    coarse, fine = ((rk4(turning, start, times, n)[-1] - exact).norm() for n in (10, 20))
    assert float(coarse / fine) == pytest.approx(16, rel=0.05)
    times = torch.linspace(2, 0, 21, dtype=torch.float64)
    z = rk4(lambda z, t: 3 * t**2 + 0 * z, torch.tensor(8.0).double(), times)
    assert torch.allclose(z, times**3, atol=1e-12)


def test_linear_flow_is_the_exact_solution():
    times = torch.linspace(0, 3, 4, dtype=torch.float64)
    matrix = torch.tensor([[0.0, 1.0], [-1.0, 0.0]]).double()
    z = linear_flow(matrix, torch.tensor([[1.0], [0.0]]).double(), times)
    assert torch.allclose(z[..., 0], torch.stack([times.cos(), -times.sin()], 1), atol=1e-13)


@pytest.mark.parametrize("times", [torch.zeros(()), torch.zeros(0), [0.0, 1.0]])
def test_times_must_be_a_curve_and_steps_positive(times):
    for solve in (
        lambda: rk4(turning, torch.zeros(2), times),
        lambda: linear_flow(torch.eye(2), torch.zeros(2, 1), times),
    ):
        with pytest.raises(ValueError, match=r"times must be a tensor \[K\]"):
            solve()
    with pytest.raises(ValueError, match="steps"):
        rk4(turning, torch.zeros(2), torch.linspace(0, 1, 3), steps=0)
