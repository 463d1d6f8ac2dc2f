import shutil
import subprocess

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.export import write_c
from anharmonic.export.c import expected_outputs
from anharmonic.export.plan import plan

MODELS = {
    "LEM": ("LEM", {"dt": 0.5}),
    "LEM, clipped gates, mean": ("LEM", {"num_layers": 2, "gate_floor": 0.1, "readout": "mean"}),
    "LEM, one scale": ("LEM", {"multiscale": False, "dt": 0.1}),
    "CoRNN": ("CoRNN", {"dt": 0.1, "readout": "mean"}),
    "CoRNN, implicit": ("CoRNN", {"dt": 0.05, "scheme": "implicit", "trainable_dt": True}),
    "UnICORNN": ("UnICORNN", {"num_layers": 2, "patch": 3}),
    "UnICORNN, skip": ("UnICORNN", {"num_layers": 3, "skipped_layers": 2}),
    "LSTM": ("LSTM", {"num_layers": 2}),
    "LSTM, no bias": ("LSTM", {"bias": False, "readout": "all"}),
    "GRU": ("GRU", {"num_layers": 2}),
    "FastGRNN": ("FastGRNN", {"patch": 2, "readout": "mean"}),
    "ResonatorBank": ("ResonatorBank", {"num_layers": 2, "dt": 0.5, "periods": (2.5, 200.0)}),
    # From their code in PyTorch.
    "SkewRNN": ("SkewRNN", {"num_layers": 2, "readout": "mean"}),
    "LinOSS": (ah.LinOSS, {"num_layers": 2}),
    "velocity Verlet": ("NeuralOscillator", {"scheme": "velocity-verlet", "activation": "sin"}),
    "neural oscillator": ("MultiLayerNeuralOscillator", {"num_layers": 3, "patch": 2}),
}
PLAIN = {"mean": (1.0, 2.0, 3.0), "std": (2.0, 5.0, 1.0), "standardise": True, "missing": "error"}
MASKS = {"missing": "mask", "masked": (1,)}
TIMES = {**MASKS, "difference": (1.0, 0.5, 2.0), "elapsed": "channel", "nominal": 0.25}
# A mean that float does not hold to the last digit, and a channel that varies little.
DIGITS = {"mean": (1.0, 100000.3, 3.0), "std": (2.0, 5.0, 0.1), "difference": (1.0, 0.5, 2.0)}
TARGETS = {"target_shift": (1.0, 2.0, 3.0, 40.0), "target_scale": (10.0, 0.1, 1.0, 1.0)}
FORECAST = {"window": 12, "horizon": 2, "forecast": (2, 0), "target_scale": (0.5, 3.0)}
QUANTILES = {**FORECAST, "quantiles": (0.1, 0.5, 0.9), "missing": "forward"}


def model(name, input_size=3, outputs=4):
    layer, options = MODELS[name]
    torch.manual_seed(0)
    return ah.SequenceModel(layer, input_size, outputs, hidden_size=7, **options).eval()


def preparation(**options):
    return Preprocessing(**PLAIN | options)


@pytest.mark.usefixtures("loops")
@pytest.mark.covering
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("flags", [(), ("-DMODEL_DOUBLE",)], ids=["float", "double"])
def test_the_files_check_themselves_under_sanitizers(tmp_path, check, name, flags):
    write_c(model(name), tmp_path)
    check(tmp_path, *flags)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize(
    ("name", "prepared"),
    [
        pytest.param("LEM", {"missing": "forward", **DIGITS}, id="forward, difference"),
        pytest.param("LSTM, no bias", MASKS, id="masks"),
        pytest.param("UnICORNN", {"standardise": False, "missing": "mean"}, id="means, not scaled"),
        pytest.param("CoRNN", TARGETS, id="targets"),
        pytest.param("GRU", TIMES, id="times in a channel"),
        pytest.param("ResonatorBank", TIMES, id="times in a channel of resonators"),
        pytest.param("GRU", FORECAST, id="forecast"),
        pytest.param("GRU", {**FORECAST, "missing": "mean"}, id="forecast of means"),
        pytest.param("GRU", QUANTILES, id="quantiles"),
    ],
)
def test_samples_are_prepared_as_in_training(tmp_path, check, name, prepared):
    """And what comes out is in the units of the targets, or of the channels of a forecast."""
    how = preparation(**prepared)
    made = model(name, how.size, outputs=12 if how.quantiles else 4)
    with torch.no_grad():
        made.linear.weight.mul_(10)  # so that some quantiles cross
    write_c(made, tmp_path, preparation=how)
    check(tmp_path, "-DMODEL_DOUBLE")
    assert ("MODEL_AIMS 2" in (tmp_path / "model.h").read_text()) == bool(how.horizon)


def test_a_first_gap_is_the_mean_to_the_last_digit(tmp_path, program):
    """With a mean that float does not hold, and little around it."""
    mean, std = (1.0, 100_000.003, 3.0), (2.0, 0.01, 1.0)
    how = preparation(mean=mean, std=std, missing="forward")
    made = model("LEM")
    write_c(made, tmp_path, preparation=how)
    x = np.full((4, 3), [1.0, np.nan, 3.0], np.float32)
    exact = expected_outputs(made, plan(made, how), x)
    np.testing.assert_allclose(program(tmp_path, 4)(x), exact, rtol=1e-5, atol=1e-6)


@pytest.mark.fast("LEM", "FastGRNN")
@pytest.mark.parametrize("name", ["LEM", "UnICORNN, skip", "GRU", "FastGRNN"])
def test_a_table_stands_for_the_mathematics_library(tmp_path, check, name):
    write_c(model(name), tmp_path, lut=True)
    assert "math.h" not in (tmp_path / "model.c").read_text()
    check(tmp_path, math=False)


def test_the_check_can_fail(tmp_path, check):
    write_c(model("LEM"), tmp_path)
    text = (tmp_path / "model.c").read_text()
    assert "#define DT 0.5" in text
    (tmp_path / "model.c").write_text(text.replace("#define DT 0.5", "#define DT 0.4"))
    with pytest.raises(AssertionError, match="DIFFERS"):
        check(tmp_path)


@pytest.mark.fast("LEM, clipped gates, mean", "CoRNN, implicit", "UnICORNN, skip", "LSTM", "GRU")
@pytest.mark.parametrize("name", MODELS)
def test_ten_thousand_steps_agree_with_pytorch(tmp_path, program, name):
    made = model(name)
    write_c(made, tmp_path)
    x = np.random.default_rng(1).normal(size=(10_000, 3)).astype(np.float32)
    described = plan(made)
    exact = expected_outputs(made, described, x)
    double = program(tmp_path, 4, double=True)(x)
    np.testing.assert_allclose(double, exact, rtol=1e-9, atol=1e-9)
    # Rounding may be worse than PyTorch's by luck: one unit in the last place of 1 counts, too.
    torchs = np.abs(expected_outputs(made, described, x, torch.float32) - exact).max()
    single = np.abs(program(tmp_path, 4)(x) - exact).max()
    assert single <= 10 * max(torchs, 2**-23)


@pytest.mark.usefixtures("loops")
@pytest.mark.fast(
    "ResonatorBank-error", "LEM-forward", "CoRNN, implicit-mean", "UnICORNN, skip-mask",
    "SkewRNN-mean",
)  # fmt: skip
@pytest.mark.parametrize("missing", ["error", "forward", "mean", "mask"])
@pytest.mark.parametrize(
    "name", ["ResonatorBank", "LEM", "LEM, one scale", "CoRNN", "CoRNN, implicit", "UnICORNN, skip",
             "SkewRNN", "velocity Verlet"],
)  # fmt: skip
def test_uneven_times_lengthen_the_step(tmp_path, check, program, name, missing):
    masked = (1,) if missing == "mask" else ()
    how = preparation(missing=missing, masked=masked, elapsed="step", nominal=0.25)
    made = model(name, 3 + len(masked))
    write_c(made, tmp_path, preparation=how)
    check(tmp_path)
    # Far from one another, at once, and at first after a known time.
    x = np.random.default_rng(0).normal(how.mean, how.std, (40, 3))
    times = np.array([0.5, 0.0, 0.25, 2.5, 0.001] * 8)[:, None]
    x = np.hstack([x, times / (1 if name == "ResonatorBank" else 5)]).astype("f4")
    if missing != "error":
        x[::3, 1] = np.nan
    double = program(tmp_path, 4, double=True)(x)
    np.testing.assert_allclose(double, expected_outputs(made, plan(made, how), x), atol=1e-6)


@pytest.mark.usefixtures("loops")
def test_the_exact_step_of_a_resonator_is_that_of_python_whatever_its_damping(tmp_path, program):
    made = ah.SequenceModel("ResonatorBank", 1, 9, hidden_size=9, dt=0.5).eval()
    quality = torch.tensor([0.01, 0.1, 0.4999, 0.5, 0.5001, 0.6, 2, 50, 1])
    with torch.no_grad():
        made.layer.log_q_l0.copy_(quality.log())
        made.layer.log_frequency_l0.copy_(torch.linspace(-7, 1, 9))
        made.linear.weight.copy_(torch.eye(9))
    how = Preprocessing((0.0,), (1.0,), False, "error", elapsed="step")
    write_c(made, tmp_path, preparation=how)
    run = program(tmp_path, 9, double=True)
    for gap in (1e-6, 0.01, 1.0, 30.0, 1000.0):
        x = np.column_stack([np.ones(5), np.full(5, gap)]).astype("f4")
        exact = expected_outputs(made, plan(made, how), x)
        np.testing.assert_allclose(run(x), exact, rtol=1e-6, atol=1e-12)


def test_a_program_in_cpp_holds_several_models_and_the_names_of_classes(tmp_path, cc):
    """Each has names of its own; those of classes are kept byte for byte."""
    classes = ("model_up", 'b"?\\', "schön", "*/")
    calibration = [np.random.default_rng(0).normal(size=(50, 3))]
    kinds = {
        "gait": {"class_names": classes},
        "tremor": {"weights": "int8", "calibration": calibration},
    }
    objects = [str(tmp_path / f"{name}.o") for name in kinds]
    for compiled, (name, options) in zip(objects, kinds.items(), strict=True):
        written = write_c(model("LEM"), tmp_path, name=name, **options)
        assert [path.name for path in written] == [f"{name}.h", f"{name}.c", f"{name}_test.c"]
        cc("-c", str(written[1]), "-o", compiled)
        cc(str(written[2]), compiled, "-lm", "-o", str(tmp_path / name))
        subprocess.run([tmp_path / name], check=True)
    main = tmp_path / ("main.cpp" if shutil.which("g++") else "main.c")
    main.write_text(
        """
#include <stdio.h>
#include "gait.h"
#include "tremor.h"
int main(void) {
    gait_state a;
    tremor_state b;
    float x[GAIT_CHANNELS] = {0.5f, -0.5f};
    tremor_sample z[TREMOR_CHANNELS] = {0, 0};
    gait_start(&a); tremor_start(&b);
    gait_step(&a, x); tremor_step(&b, z);
    for (int k = 0; k < GAIT_CLASSES; k++) puts(gait_classes[k]);
    return 0;
}
"""
    )
    command = [shutil.which("g++") or "cc", main, *objects, "-lm", "-o", tmp_path / "both"]
    subprocess.run(command, check=True)
    said = subprocess.run([tmp_path / "both"], capture_output=True, check=True).stdout.decode()
    assert tuple(said.splitlines()) == classes


@pytest.mark.parametrize("weights", ["float", "int8"])
def test_gaps_are_not_compiled_where_nan_is_unknown(tmp_path, cc, weights):
    """-ffast-math takes every comparison of a number with itself for true."""
    words = ("-ffast-math", "-c", str(tmp_path / "model.c"), "-o", str(tmp_path / "model.o"))
    options = {"weights": weights, "calibration": [np.zeros((50, 3)), np.full((50, 3), 10.0)]}
    write_c(model("GRU"), tmp_path, preparation=preparation(), **options)
    cc(*words)
    write_c(model("GRU"), tmp_path, preparation=preparation(missing="mean"), **options)
    with pytest.raises(AssertionError, match="without -ffast-math"):
        cc(*words)
