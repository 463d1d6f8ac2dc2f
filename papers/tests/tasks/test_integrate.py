import numpy as np
import pytest

from anharmonic_papers.tasks.integrate import integrate

scipy_rk = pytest.importorskip("scipy.integrate", reason="scipy is not installed")


@pytest.mark.parametrize(("rtol", "atol"), [(1e-3, 1e-6), (1e-7, 1e-9)])
def test_steps_and_interpolation_are_those_of_scipy(rtol, atol):
    # The van der Pol oscillator has fast and slow phases, so steps are rejected and change size.
    def field(u):
        return np.stack([u[:, 1], 5 * (1 - u[:, 0] ** 2) * u[:, 1] - u[:, 0]], axis=1)

    start = np.array([[2.0, 0.0], [0.1, 0.0], [1.0, -3.0], [0.0, 0.0]])
    times = np.linspace(0, 12, 61)
    ours = integrate(field, start, times, rtol=rtol, atol=atol)
    for row, one in zip(start, ours, strict=True):
        scipy = scipy_rk.solve_ivp(
            lambda t, u: field(u[None])[0], (0, 12), row, t_eval=times, rtol=rtol, atol=atol
        )
        # The same steps up to rounding: far below the error the tolerance allows.
        np.testing.assert_allclose(one, scipy.y.T, rtol=0, atol=1e-3 * rtol)


def test_a_trajectory_does_not_depend_on_its_neighbours():
    start = np.array([[1.0], [50.0]])
    times = np.array([0.0, 0.5, 3.0])
    both = integrate(lambda u: -(u**2), start, times)
    alone = integrate(lambda u: -(u**2), start[1:], times)
    np.testing.assert_allclose(both[1:], alone, rtol=1e-12)
    np.testing.assert_allclose(both[:, :, 0], start / (1 + start * times), rtol=5e-3)


def test_unbounded_growth_is_refused():
    with pytest.raises(ValueError, match=r"the solution must be finite; got .a step below .* at"):
        integrate(lambda u: u**2, np.array([[1.0]]), np.array([0.0, 2.0]))
