import shutil
import subprocess

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.export import write_c

COMPILER = "arm-linux-gnueabihf-gcc"


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["float", "int16", "int8"])
@pytest.mark.parametrize("layer", ["LEM", "CoRNN", "UnICORNN", "LSTM", "GRU"])
def test_the_check_passes_on_arm(tmp_path, layer, weights):
    if not (shutil.which(COMPILER) and shutil.which("qemu-arm")):
        pytest.skip(f"needs {COMPILER} and qemu-arm")
    torch.manual_seed(0)
    model = ah.SequenceModel(layer, 2, 3, hidden_size=5).requires_grad_(False)
    x = np.random.default_rng(0).normal(size=(4, 25, 2)).astype(np.float32)
    write_c(model, tmp_path, weights=weights, calibration=list(x))
    flags = ("-std=c99", "-Os", "-static", "-Wall", "-Wextra", "-pedantic", "-Werror")
    files = ("model.c", "model_test.c", "-lm", "-o", "check")
    subprocess.run([COMPILER, *flags, *files], cwd=tmp_path, check=True)
    done = subprocess.run(
        ["qemu-arm", "./check"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and "agrees" in done.stdout, done.stdout
