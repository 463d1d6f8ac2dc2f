import itertools
import shutil
import subprocess

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.estimators import ResonatorClassifier
from anharmonic.export import write_c

COMPILER = "arm-linux-gnueabihf-gcc"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "weights"),
    [
        *itertools.product(["LEM", "CoRNN", "UnICORNN", "LSTM", "GRU"], ["float", "int16", "int8"]),
        ("resonators", "float"),
    ],
)
def test_the_check_passes_on_arm(tmp_path, layer, weights):
    if not (shutil.which(COMPILER) and shutil.which("qemu-arm")):
        pytest.skip(f"needs {COMPILER} and qemu-arm")
    x = np.random.default_rng(0).normal(size=(6, 25, 2)).astype(np.float32)
    if layer == "resonators":
        model = ResonatorClassifier(5, random_state=0).fit(x.transpose(0, 2, 1), np.arange(6) % 3)
    else:
        torch.manual_seed(0)
        model = ah.SequenceModel(layer, 2, 3, hidden_size=5).requires_grad_(False)
    write_c(model, tmp_path, weights=weights, calibration=list(x))
    flags = ("-std=c99", "-Os", "-static", "-Wall", "-Wextra", "-pedantic", "-Werror")
    files = ("model.c", "model_test.c", "-lm", "-o", "check")
    subprocess.run([COMPILER, *flags, *files], cwd=tmp_path, check=True)
    done = subprocess.run(
        ["qemu-arm", "./check"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and "agrees" in done.stdout, done.stdout
