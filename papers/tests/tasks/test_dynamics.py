"""Trajectories of ordinary differential equations, against those of SciPy."""

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from anharmonic_papers.tasks.dynamics import FitzHughNagumo, Lorenz96, lorenz96
from anharmonic_papers.tasks.integrate import integrate


def solve(field, start, times, method="RK45", rtol=1e-3, atol=1e-6):
    """SciPy's solution at all times, for a field of many trajectories."""
    span = times[0], times[-1]
    options = {"t_eval": times, "method": method, "rtol": rtol, "atol": atol}
    return solve_ivp(lambda t, u: field(u[None])[0], span, start, **options).y.T


@pytest.mark.parametrize(("rtol", "atol"), [(1e-3, 1e-6), (1e-7, 1e-9)])
def test_steps_and_interpolation_are_those_of_scipy(rtol, atol):
    # The van der Pol oscillator has fast and slow phases, so steps are rejected and change size.
    def field(u):
        return np.stack([u[:, 1], 5 * (1 - u[:, 0] ** 2) * u[:, 1] - u[:, 0]], axis=1)

    start = np.array([[2.0, 0.0], [0.1, 0.0], [1.0, -3.0], [0.0, 0.0]])
    times = np.linspace(0, 12, 61)
    ours = integrate(field, start, times, rtol=rtol, atol=atol)
    for row, one in zip(start, ours, strict=True):
        # The same steps up to rounding: far below the error the tolerance allows.
        exact = solve(field, row, times, rtol=rtol, atol=atol)
        np.testing.assert_allclose(one, exact, rtol=0, atol=1e-3 * rtol)


def test_a_trajectory_does_not_depend_on_its_neighbours_and_growth_is_refused():
    start = np.array([[1.0], [50.0]])
    times = np.array([0.0, 0.5, 3.0])
    both = integrate(lambda u: -(u**2), start, times)
    alone = integrate(lambda u: -(u**2), start[1:], times)
    np.testing.assert_allclose(both[1:], alone, rtol=1e-12)
    np.testing.assert_allclose(both[:, :, 0], start / (1 + start * times), rtol=5e-3)
    with pytest.raises(ValueError, match=r"the solution must be finite; got .a step below .* at"):
        integrate(lambda u: u**2, start[:1], times)


def neuron(u):
    v, w = u[:, 0], u[:, 1]
    return np.stack([v - v**3 / 3 - w + 0.5, 0.02 * (v + 0.7 - 0.8 * w)], axis=1)


@pytest.fixture(scope="module")
def published():
    task = FitzHughNagumo()
    task.splits()
    return task


def test_fitzhugh_nagumo_has_the_published_shapes_and_numbers(published):
    splits = published.splits()
    assert [len(part) for part in splits] == [128, 128, 1024]
    batch, test = published.loaders(0, 32).train(0)[0], splits.test
    assert batch.x.shape == batch.y.shape == (32, 1000, 1)
    assert torch.equal(test.x[:, 1:], test.y[:, :-1])
    assert float(test.x.square().mean().sqrt()) == pytest.approx(1.50, abs=0.005)
    assert float((test.y - test.x).square().mean().sqrt()) == pytest.approx(0.079, abs=0.0005)


def test_fitzhugh_nagumo_is_scipys_solution_with_default_tolerances(published):
    # The published code draws c = 2u - 1, one trajectory after another, from seed 1234.
    starts = 2 * np.random.RandomState(1234).random_sample(1280) - 1
    x = torch.cat([part.x for part in published.splits()])[:, :, 0].numpy()
    gaps = []
    for place in (0, 127, 129, 263, 1279):
        solution = solve(neuron, [starts[place], 0.0], np.linspace(0, 400, 1001))
        gap = x[place] - solution[:-1, 0]
        # Rounding is amplified slowly; at first the steps are SciPy's. (The data are float32.)
        assert np.abs(gap[:150]).max() < 1e-6
        gaps.append(gap)
    # SciPy's own answer moves by 6e-4 if a start changes by its last bit; the exact solution is
    # 0.04 away.
    assert np.sqrt(np.mean(np.square(gaps))) < 0.01


@pytest.mark.slow
def test_tight_tolerance_solves_the_equation(published):
    x = FitzHughNagumo(tolerance="tight").splits().test.x
    start = [float(x[5, 0, 0]), 0.0]  # known to float32 only
    solution = solve(neuron, start, np.linspace(0, 400, 1001), "DOP853", 1e-10, 1e-11)
    np.testing.assert_allclose(x[5, :, 0], solution[:-1, 0], atol=1e-5)
    # Derived with SciPy from the published settings: about 0.04.
    gap = float((published.splits().test.x - x).square().mean().sqrt())
    assert gap == pytest.approx(0.04, abs=0.002)


def test_lorenz96_right_hand_side():
    x, F = np.random.default_rng(0).standard_normal(5), 3.0
    expected = [(x[(i + 1) % 5] - x[i - 2]) * x[i - 1] - x[i] + F for i in range(5)]
    np.testing.assert_allclose(lorenz96(x[None], F)[0], expected, rtol=1e-14)


@pytest.mark.parametrize(("forcing", "atol"), [(0.9, 1e-6), (8.0, 1e-4)])
def test_lorenz96_solves_the_equation(forcing, atol):
    x = Lorenz96(forcing=forcing, length=400).splits().train.x[3].double().numpy()
    assert (np.abs(x[0] - forcing) <= 0.5).all()
    # The first states are known to float32, so each stretch of one time unit starts anew.
    for first in (0, 100, 200):
        field, times = (lambda u: lorenz96(u, forcing)), np.arange(0, 1, 0.01)
        solution = solve(field, x[first], times, "DOP853", 1e-12, 1e-12)
        np.testing.assert_allclose(x[first : first + 100], solution, atol=atol)


def test_lorenz96_target_is_the_state_ahead():
    task = Lorenz96(forcing=8.0, length=60, horizon=7)
    for part in task.splits():
        assert part.x.shape == part.y.shape == (128, 60, 5)
        assert torch.equal(part.x[:, 7:], part.y[:, :-7])
    other = Lorenz96(8.0, 60, 7, data_seed=2).splits().test
    assert not torch.equal(other.x, task.splits().test.x)
