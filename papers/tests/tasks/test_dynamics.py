import numpy as np
import pytest
import torch

from anharmonic.train import Run, RunEnvironment, fit, read_report
from anharmonic_papers.tasks.dynamics import FitzHughNagumo, Lorenz96, lorenz96

solve_ivp = pytest.importorskip("scipy.integrate", reason="scipy is not installed").solve_ivp


@pytest.fixture(scope="module")
def published():
    task = FitzHughNagumo()
    task.splits()
    return task


def test_fitzhugh_nagumo_has_the_published_shapes_and_numbers(published):
    splits = published.splits()
    assert [len(part) for part in splits if part is not None] == [128, 128, 1024]
    batch, test = published.loaders(0, 32).train(0)[0], splits.test
    assert batch.x.shape == batch.y.shape == (32, 1000, 1)
    assert torch.equal(test.x[:, 1:], test.y[:, :-1])
    assert float(test.x.square().mean().sqrt()) == pytest.approx(1.50, abs=0.005)
    assert float((test.y - test.x).square().mean().sqrt()) == pytest.approx(0.079, abs=0.0005)


def solve(c, method="RK45", rtol=1e-3, atol=1e-6):
    def field(t, u):
        v, w = float(u[0]), float(u[1])
        return [v - v**3 / 3 - w + 0.5, 0.02 * (v + 0.7 - 0.8 * w)]

    times = np.linspace(0, 400, 1001)
    options = {"method": method, "rtol": rtol, "atol": atol}
    return solve_ivp(field, (0, 400), [c, 0.0], t_eval=times, **options).y[0]


def test_fitzhugh_nagumo_is_scipys_solution_with_default_tolerances(published):
    # The published code draws c = 2u - 1, one trajectory after another, from seed 1234.
    starts = 2 * np.random.RandomState(1234).random_sample(1280) - 1
    splits = published.splits()
    gaps = []
    for part, row, place in (
        (splits.train, 0, 0),
        (splits.train, 127, 127),
        (splits.valid, 1, 129),
        (splits.test, 7, 263),
        (splits.test, 1023, 1279),
    ):
        gap = part.x[row, :, 0].numpy() - solve(starts[place])[:-1]
        # Rounding is amplified slowly; at first the steps are SciPy's. (The data are float32.)
        assert np.abs(gap[:150]).max() < 1e-6
        gaps.append(gap)
    # SciPy's own answer moves by 6e-4 if a start changes by its last bit; the exact solution is
    # 0.04 away.
    assert np.sqrt(np.mean(np.square(gaps))) < 0.01


@pytest.mark.slow
def test_tight_tolerance_solves_the_equation(published):
    x = FitzHughNagumo(tolerance="tight").splits().test.x
    solution = solve(float(x[5, 0, 0]), "DOP853", 1e-10, 1e-11)
    # The start is known to float32 only.
    np.testing.assert_allclose(x[5, :, 0], solution[:-1], atol=1e-5)
    # Derived with SciPy from the published settings: about 0.04.
    gap = float((published.splits().test.x - x).square().mean().sqrt())
    assert gap == pytest.approx(0.04, abs=0.002)


def test_lorenz96_right_hand_side():
    rng = np.random.default_rng(0)
    x, forcing = rng.standard_normal(5), 3.0
    expected = [(x[(i + 1) % 5] - x[i - 2]) * x[i - 1] - x[i] + forcing for i in range(5)]
    np.testing.assert_allclose(lorenz96(x[None], forcing)[0], expected, rtol=1e-14)


@pytest.mark.parametrize(("forcing", "atol"), [(0.9, 1e-6), (8.0, 1e-4)])
def test_lorenz96_solves_the_equation(forcing, atol):
    task = Lorenz96(forcing=forcing, length=400, horizon=25)
    train = task.splits().train
    x = train.x[3].double().numpy()
    assert (np.abs(x[0] - forcing) <= 0.5).all()
    # The first states are known to float32, so each stretch of one time unit starts anew.
    for first in (0, 100, 200):
        solution = solve_ivp(
            lambda t, u: lorenz96(u[None], forcing)[0],
            (0, 1),
            x[first],
            t_eval=np.arange(0, 1, 0.01),
            method="DOP853",
            rtol=1e-12,
            atol=1e-12,
        )
        np.testing.assert_allclose(x[first : first + 100], solution.y.T, atol=atol)


def test_a_run_on_lorenz96_is_scored_at_every_step(tmp_path):
    run = Run("lorenz96", "CoRNN", {"length": 5}, {"hidden_size": 2}, epochs=1, batch_size=128)
    fit(run, RunEnvironment(out=tmp_path, progress=False))
    report = read_report(tmp_path / run.folder_name)
    assert report.count == 128 * 5 and len(report.outputs) == 5


def test_lorenz96_target_is_the_state_ahead():
    task = Lorenz96(forcing=8.0, length=60, horizon=7)
    train, valid, test = task.splits()
    for part in (train, valid, test):
        assert part.x.shape == part.y.shape == (128, 60, 5)
        assert torch.equal(part.x[:, 7:], part.y[:, :-7])
    assert not torch.equal(train.x, valid.x) and not torch.equal(valid.x, test.x)
    same, other = (Lorenz96(8.0, 60, 7, data_seed=seed).splits().test for seed in (1234, 2))
    assert torch.equal(same.x, test.x) and not torch.equal(other.x, test.x)
