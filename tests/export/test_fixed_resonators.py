import numpy as np
import pytest

from anharmonic.estimators import ResonatorClassifier, ResonatorRegressor
from anharmonic.export import write_c
from anharmonic.export.fixed_resonators import FixedResonators
from anharmonic.export.resonators import resonator_outputs, resonator_plan

ALL = ("share", "excess", "run", "position", "largest", "rms", "end")
MODELS = {
    "default": {},
    "all pools": {"pools": ALL, "num_biases": 3},
    "rms": {"pools": ("rms",)},
    "largest": {"pools": ("largest",)},
    "end": {"pools": ("end",)},
}


def series(number=60, steps=80):
    """Three classes of oscillation, with channels of different sizes and a far mean."""
    rng = np.random.default_rng(2)
    y = rng.integers(3, size=number)
    phase = rng.uniform(0, 6, (number, 3, 1)) + (0.2 + 0.25 * y[:, None, None]) * np.arange(steps)
    x = np.sin(phase) + 0.3 * rng.normal(size=phase.shape)
    return x * [[1.0], [0.01], [30.0]] + np.array([[0.0], [10.3], [-2.0]]), y


def fitted(name, kind=ResonatorClassifier):
    x, y = series()
    return kind(11, random_state=0, **MODELS[name]).fit(x, y)


def sequences(x):
    return [row.T.astype(np.float32) for row in x]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weights", ["int16", "int8"])
def test_c_is_python_bit_for_bit_under_sanitizers(tmp_path, check, name, weights):
    write_c(fitted(name), tmp_path, weights=weights, calibration=sequences(series()[0]))
    assert "math.h" not in (tmp_path / "model.c").read_text()
    done = check(tmp_path, math=False)
    assert done.returncode == 0 and "agrees" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", MODELS)
def test_wild_samples_are_bit_for_bit(tmp_path, program, name):
    """Samples far beyond those of calibration: everything is at its limits, nothing overflows."""
    model, calibration = fitted(name), sequences(series()[0])
    write_c(model, tmp_path, weights="int8", calibration=calibration)
    fixed = FixedResonators(resonator_plan(model), calibration, 8)
    samples = np.random.default_rng(0).choice([-32768, -32767, 0, 32767], size=(2_000, 3))
    samples = samples.astype(np.int16)
    run = program(
        tmp_path, 3, "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error",
        sample=np.int16, value=np.int32,
    )  # fmt: skip
    np.testing.assert_array_equal(run(samples), fixed.outputs(samples[None])[0])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("bits", "mean"), [(16, 0.003), (8, 0.02)])
def test_whole_numbers_are_near_the_model(name, bits, mean):
    model, (x, y) = fitted(name), series()
    described = resonator_plan(model)
    fixed = FixedResonators(described, sequences(x), bits)
    found = fixed.values(fixed.outputs(fixed.samples(np.stack(sequences(x)))))
    exact = np.stack([resonator_outputs(described, row) for row in sequences(x)])
    apart = np.abs(found - exact) / np.abs(exact).max()
    # A response near a bias counts as above it or not.
    assert apart.mean() <= mean and apart.max() <= 0.1
    rates = [(scores.argmax(1) == y).mean() for scores in (found, exact)]
    assert rates[0] >= rates[1] - 0.05


def test_small_responses_keep_their_digits():
    """Slow oscillators hardly move, and have formats of their own."""
    x, y = series(steps=600)
    model = ResonatorClassifier(40, pools=("end", "rms"), random_state=0).fit(x, y)
    described = resonator_plan(model)
    fixed = FixedResonators(described, sequences(x), 16)
    samples = fixed.samples(np.stack(sequences(x)))
    *_, last = fixed.responses(samples)
    y_end, z_end = np.zeros((2, len(x), 40))
    mean, deviation = described.constants
    now = (np.stack(sequences(x)) - mean) / deviation
    read = np.concatenate([now, np.diff(now, axis=1, prepend=now[:, :1])], axis=2)
    a, b, c = described.coefficients
    for u in (read @ described.bank.weight.numpy()).transpose(1, 0, 2):
        e = u - y_end
        y_end, z_end = y_end + a * e + b * z_end, z_end + b * e - c * z_end
    exact = np.concatenate([y_end, z_end], axis=1)
    unit = np.abs(exact).max(axis=0) / np.abs(last).max(axis=0)
    apart = np.abs(last * unit - exact).max(axis=0) / np.abs(exact).max(axis=0)
    assert described.bank.frequency.min() < 0.02 and apart.max() < 0.01


def test_weights_that_cancel_are_not_rounded_away(tmp_path):
    """Hardly penalised weights of responses that are alike are huge, and of both signs."""
    x, y = series(number=300, steps=12)
    model = ResonatorClassifier(30, pools=("rms", "end"), alphas=[1e-6], random_state=0).fit(x, y)
    with pytest.raises(ValueError, match=r"weights .*int8, whose rounding .*%.*alphas.*int16"):
        write_c(model, tmp_path, weights="int8", calibration=sequences(x))
    assert not list(tmp_path.iterdir())
    model = ResonatorClassifier(30, pools=("rms", "end"), alphas=[1.0], random_state=0).fit(x, y)
    assert write_c(model, tmp_path, weights="int8", calibration=sequences(x))


def test_values_are_those_of_the_regressor():
    model, (x, _) = fitted("rms", ResonatorRegressor), series()
    fixed = FixedResonators(resonator_plan(model), sequences(x), 16)
    found = fixed.values(fixed.outputs(fixed.samples(np.stack(sequences(x)))))
    np.testing.assert_allclose(found[:, 0], model.predict(x), atol=0.02)


def test_what_has_no_form_is_refused(tmp_path):
    x, y = series()
    running = ResonatorClassifier(5, scaling="running", random_state=0).fit(x, y)
    with pytest.raises(ValueError, match=r"scaling .*'train' for whole.*running.*floating-point"):
        write_c(running, tmp_path, weights="int8", calibration=sequences(x))
    with pytest.raises(ValueError, match=r"calibration .*at least one"):
        write_c(fitted("rms"), tmp_path, weights="int8", calibration=[])
    with pytest.raises(ValueError, match=r"lut .*False for resonators"):
        write_c(fitted("rms"), tmp_path, lut=True)
    with pytest.raises(ValueError, match=r"calibration .*\[T, 3\]"):
        write_c(fitted("rms"), tmp_path, weights="int8", calibration=[x[0]])
    with pytest.raises(ValueError, match=r"calibration .*arrays .*mine.csv"):
        write_c(fitted("rms"), tmp_path, weights="int8", calibration="mine.csv")
    with pytest.raises(ValueError, match=r"calibration .*finite.*gaps"):
        write_c(fitted("rms"), tmp_path, weights="int8", calibration=[np.full((9, 3), np.nan)])
    assert not list(tmp_path.iterdir())
