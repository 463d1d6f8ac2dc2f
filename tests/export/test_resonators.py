import numpy as np
import pytest
import torch

from anharmonic.estimators import ResonatorClassifier, ResonatorRegressor
from anharmonic.export import write_c
from anharmonic.export.resonators import resonator_outputs, resonator_plan
from anharmonic.nn.resonators.draw import POOLS

MODELS = {
    "default": {},
    "running": {"scaling": "running", "pools": ("rms", "largest", "end")},
    "all pools": {"pools": POOLS, "num_biases": 3},
    "excess": {"pools": ("excess",), "num_biases": 1},
    "rms": {"pools": ("rms",)},
    "largest": {"pools": ("largest",)},
    "run": {"pools": ("run",)},
    "crossings": {"pools": ("crossings", "smallest")},
    "stretches": {"pools": ("stretches",), "num_biases": 1},
    "competition": {"pools": ("competition",)},
    "length": {"pools": ("length", "rms")},
    "in another order": {"pools": ("largest", "excess", "end", "rms")},
}


def series(number=30, steps=60):
    rng = np.random.default_rng(2)
    # A mean that float does not hold to the last digit, and a channel that varies little.
    x = rng.normal(size=(number, 3, steps)).cumsum(axis=2) * [[1.0], [0.01], [3.0]]
    return x + np.array([[0.0], [10.3], [-2.0]]), rng.integers(3, size=number)


def fitted(name, kind=ResonatorClassifier, classes=3):
    x, y = series()
    x = [row[:, : 40 + i % 21] for i, row in enumerate(x)]
    return kind(11, random_state=0, **MODELS[name]).fit(x, y % classes)


@pytest.mark.covering
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_a_program_is_its_estimator(tmp_path, check, program, name, classes):
    model, (x, _) = fitted(name, classes=classes), series()
    write_c(model, tmp_path)
    for flags in ((), ("-DMODEL_DOUBLE",)):
        check(tmp_path, *flags)
    single, double = program(tmp_path, classes), program(tmp_path, classes, double=True)
    shares = np.stack([np.exp(double(row.T)) for row in x[:5]])
    shares /= shares.sum(axis=1, keepdims=True)
    # The estimator computes in float32; a response at a bias counts as above it or not.
    np.testing.assert_allclose(shares, model.predict_proba(x[:5]), atol=2e-2)
    long = np.random.default_rng(1).normal(size=(10_000, 3)) * [10.0, 0.1, 3.0] + [0.0, 10.3, -2.0]
    long, described = long.astype(np.float32), resonator_plan(model)
    exact = resonator_outputs(described, long)
    size = max(1, np.abs(exact).max())
    assert np.abs(double(long) - exact).max() <= 1e-6 * size
    torchs = np.abs(resonator_outputs(described, long, torch.float32) - exact).max()
    assert np.abs(single(long) - exact).max() <= 10 * max(torchs, 2**-20 * size)
    # Python refuses a missing value; the program answers NaN, also after further samples.
    gap = x[0].T.copy()
    gap[20, 1] = np.nan
    assert np.isnan(single(gap)).all()
    assert "Replace NaN" in (tmp_path / "model.h").read_text()


def test_values_are_those_of_the_regressor(tmp_path, program):
    model, (x, _) = fitted("rms", ResonatorRegressor), series()
    write_c(model, tmp_path)
    np.testing.assert_allclose(program(tmp_path, 1)(x[0].T), model.predict(x[:1]), atol=1e-3)


@pytest.mark.filterwarnings("ignore:channel .* of x is kept in float32")
@pytest.mark.parametrize(
    ("samples", "count", "options"),
    [
        pytest.param(1e5 + series()[0], 11, {}, id="digits that float does not hold"),
        pytest.param(
            1e5 + np.random.default_rng(0).normal(0, 0.5, (20, 1, 2000)), 11,
            {"scaling": "running"}, id="a running scale far from zero",
        ),
        pytest.param(
            np.random.default_rng(0).normal(size=(6, 1, 8)), 33_000,
            {"num_biases": 1, "pools": ("largest",)}, id="more reads than a short counts",
        ),
    ],
)  # fmt: skip
def test_examples_at_the_limits_of_numbers(tmp_path, check, samples, count, options):
    model = ResonatorClassifier(count, **{"pools": ("rms",)} | options, random_state=0)
    model.fit(samples, np.arange(len(samples)) % 2)
    write_c(model, tmp_path, examples=[samples[0].T, samples[1].T])
    check(tmp_path)
    check(tmp_path, "-DMODEL_DOUBLE")
    with pytest.raises(ValueError, match="examples must be at least one sequence"):
        write_c(model, tmp_path, examples=[])
