import ctypes
import dataclasses
import re

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.export import write_c
from anharmonic.export.fixed import matrix, sigmoid, tanh
from anharmonic.export.fixed_model import FixedModel
from anharmonic.export.integers import prepare
from anharmonic.export.plan import plan

PREPARATION = Preprocessing(
    (1.0, 10.0, 3.0), (2.0, 5.0, 0.1), True, "forward", difference=(1.0, 0.5, 2.0)
)
MASKS = dataclasses.replace(PREPARATION, missing="mask", masked=(1,), difference=())
MEANS = dataclasses.replace(PREPARATION, missing="mean", standardise=False, difference=())
PREPARATIONS = {"GRU, masks": MASKS, "GRU, means, not scaled": MEANS}
"""Of models where it is another one."""
MODELS = {
    "LEM": ("LEM", {"dt": 0.7}),
    "LEM, slow, mean": ("LEM", {"num_layers": 2, "dt": 0.01, "readout": "mean"}),
    "LEM, clipped gates": ("LEM", {"gate_floor": 0.1}),
    "CoRNN": ("CoRNN", {"dt": 0.01, "frequency": 20.0, "damping": 5.0, "readout": "all"}),
    "CoRNN, implicit": ("CoRNN", {"dt": 0.05, "scheme": "implicit", "num_layers": 2}),
    "UnICORNN": ("UnICORNN", {"num_layers": 2, "patch": 3}),
    "UnICORNN, skip": ("UnICORNN", {"num_layers": 3, "skipped_layers": 2}),
    "LSTM": ("LSTM", {"num_layers": 2, "readout": "mean"}),
    "GRU": ("GRU", {"num_layers": 2}),
    "FastGRNN": ("FastGRNN", {"num_layers": 2, "readout": "mean"}),
    **dict.fromkeys(PREPARATIONS, ("GRU", {})),
}
pytestmark = pytest.mark.usefixtures("loops")


def model(name):
    """A model and the preparation of its samples."""
    (layer, options), how = MODELS[name], PREPARATIONS.get(name, PREPARATION)
    torch.manual_seed(0)
    made = ah.SequenceModel(layer, how.size, 4, hidden_size=9, **options).eval()
    return made.requires_grad_(False), how


def sequences(number=8, steps=120):
    rng = np.random.default_rng(3)
    x = rng.normal(PREPARATION.mean, PREPARATION.std, (number, steps, 3))
    return np.where(rng.random(x.shape) < 0.05, np.nan, x).astype(np.float32)


@pytest.mark.covering
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weights", ["int16", "int8"])
def test_c_is_python_bit_for_bit_under_sanitizers(tmp_path, check, name, weights):
    """Beyond the samples of calibration, too: everything is at its limits, nothing overflows."""
    wild = np.random.default_rng(0).choice([np.nan, -1e9, 0, 1e9], size=(400, 3))
    made, how = model(name)
    made.train()
    write_c(
        made, tmp_path, preparation=how, weights=weights, calibration=sequences(),
        examples=[*sequences(2), wild],
    )  # fmt: skip
    assert made.training and made.layer.training
    assert "math.h" not in (tmp_path / "model.c").read_text()
    check(tmp_path, math=False)


@pytest.mark.covering
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("bits", "most"), [(16, 0.01), (8, 0.1)])
def test_whole_numbers_are_near_the_model(name, bits, most):
    (made, how), x = model(name), sequences()
    with torch.no_grad():
        made.linear.bias.zero_()
    prepared = [prepare(how, row) for row in x]
    fixed = FixedModel(plan(made, how), prepared, made, bits)
    found = fixed.values(fixed.outputs(fixed.samples(x)))
    exact = made(torch.from_numpy(np.stack(prepared)))
    exact = (exact[:, -1] if made.readout == "all" else exact).numpy()
    assert np.abs(found - exact).max() <= most * np.abs(exact).max()


@pytest.mark.fast("LEM, slow, mean", "CoRNN", "UnICORNN")
@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_those_of_the_program_at_any_length(name):
    (made, how), x = model(name), sequences(4, 31)
    prepared = np.stack([prepare(how, row) for row in x])
    fixed = FixedModel(plan(made, how), [*prepared], made, 16)
    lengths = np.array([31, 30, 8, 1])
    padded = np.where(np.arange(31)[:, None] < lengths[:, None, None], prepared, 0.7)
    found = fixed.predictions(padded, lengths)
    if made.readout == "all":
        found = found[range(4), lengths - 1]
    expected = [
        fixed.outputs(fixed.samples(row[None, :n]))[0] for n, row in zip(lengths, x, strict=True)
    ]
    np.testing.assert_allclose(found, np.array(expected) / 2**16, atol=2e-3)


def test_a_large_value_late_in_a_large_file_counts(tmp_path, trained):
    x = np.random.default_rng(0).normal(size=(1100, 6, 1)).astype("f4")
    x[1090, 3] = 50
    file, folder = trained(
        "gru", {"x": x, "y": np.arange(1100) % 2}, "--streaming", "--no-standardise"
    )
    write_c(folder, tmp_path / "c", weights="int8", calibration=file)
    text = (tmp_path / "c" / "model.c").read_text()
    gain = float(re.search(r"float gain\[1\] = {\s*(.*)f}", text)[1])
    assert gain * 50 == pytest.approx(32767 / 1.25, rel=1e-4)


@pytest.mark.parametrize("mean", [1.0, 100_000.003], ids=["", "beyond a float"])
def test_what_c_makes_of_samples_is_what_python_makes(tmp_path, cc, mean):
    how = dataclasses.replace(PREPARATION, mean=(mean, 10.0, 3.0))
    made, x = model("LSTM")[0], sequences() + np.float32([mean - 1, 0, 0])
    write_c(made, tmp_path, preparation=how, weights="int8", calibration=x)
    cc("-shared", "-fPIC", str(tmp_path / "model.c"), "-o", str(tmp_path / "model.so"))
    function = ctypes.CDLL(str(tmp_path / "model.so")).model_quantise
    fixed = FixedModel(plan(made, how), [prepare(how, v) for v in x], made, 8)
    for row in how.mean + 3 * (x.reshape(-1, 3) - how.mean):
        found, row = np.zeros(3, np.int16), np.float32(row)
        function(row.ctypes.data_as(ctypes.c_void_p), found.ctypes.data_as(ctypes.c_void_p))
        np.testing.assert_array_equal(found, fixed.samples(row))
        exact = np.clip((row - np.float64(how.mean)) * fixed.gain, -32767, 32767)
        known = ~np.isnan(row)
        np.testing.assert_allclose(found[known], exact[known], atol=0.6)


def test_tables_are_near_the_functions():
    x = np.arange(-9 * 2**16, 9 * 2**16, 37)
    assert np.abs(tanh(x) / 2**15 - np.tanh(x / 2**16)).max() < 1.5e-4
    assert np.abs(sigmoid(x) / 2**15 - 1 / (1 + np.exp(-x / 2**16))).max() < 1.5e-4


def test_sums_of_a_matrix_cannot_leave_32_bits():
    real = np.random.default_rng(0).normal(size=(5, 300))
    for bits in (8, 16):
        made = matrix(real, 15, bits, "w")
        assert np.abs(made.weight).max() < 2 ** (bits - 1)
        assert np.abs(made.weight).sum(axis=1).max() * 2**15 < 2**31
    with pytest.raises(ValueError, match=r"weight w must be .*floating-point"):
        matrix(real * 1e6, 15, 8, "weight w")


def test_calibration_on_much_narrower_data_than_those_of_training_is_warned_of(tmp_path):
    mean = np.array(PREPARATION.mean, np.float32)
    narrow = [mean + 0.1 * (row - mean) for row in sequences()]
    with pytest.warns(UserWarning, match=r"vary 0\.\d+ times as much as the training data in cha"):
        write_c(
            model("GRU")[0], tmp_path, preparation=PREPARATION, weights="int8", calibration=narrow
        )
