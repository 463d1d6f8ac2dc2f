"""Programs on other processors, in emulators."""

import itertools
import re
import shutil
import subprocess

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.estimators import ResonatorClassifier
from anharmonic.export import write_c
from anharmonic.export.fixed_model import FixedModel
from anharmonic.export.integers import prepare
from anharmonic.export.plan import plan

pytestmark = pytest.mark.slow
LAYERS = ["LEM", "CoRNN", "UnICORNN", "LSTM", "GRU"]
ARM = "arm-linux-gnueabihf-gcc"
AVR = "atmega1284p"
MAIN = """
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdio.h>
#include "model.h"
static model_state state;
static const int16_t samples[] = {SAMPLES};
int main(void) {
    char text[16], *c;
    int32_t outputs[MODEL_OUTPUTS];
    int i;
    model_start(&state);
    for (i = 0; i < STEPS; i++)
        model_step(&state, samples + i * MODEL_CHANNELS);
    model_output(&state, outputs);
    for (i = 0; i < MODEL_OUTPUTS; i++) {
        sprintf(text, "%ld\\n", (long)outputs[i]);
        for (c = text; *c; c++) {
            while (!(UCSR0A & (1 << UDRE0)));
            UDR0 = *c;
        }
    }
    cli();
    sleep_mode();
    return 0;
}
"""


def needs(*programs):
    if not all(map(shutil.which, programs)):
        pytest.skip(f"needs {' and '.join(programs)}")


def run(folder, *words):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def examples():
    return np.random.default_rng(0).normal(size=(6, 25, 2)).astype(np.float32)


def network(layer, **options):
    torch.manual_seed(0)
    return ah.SequenceModel(layer, 2, 3, hidden_size=5, **options).eval().requires_grad_(False)


@pytest.mark.parametrize(
    ("layer", "weights"),
    [*itertools.product(LAYERS, ["float", "int16", "int8"]), ("resonators", "float")],
)
def test_the_check_passes_on_arm(tmp_path, layer, weights):
    needs(ARM, "qemu-arm")
    x = examples()
    if layer == "resonators":
        model = ResonatorClassifier(5, random_state=0).fit(x.transpose(0, 2, 1), np.arange(6) % 3)
    else:
        model = network(layer)
    write_c(model, tmp_path, weights=weights, calibration=list(x))
    flags = ("-std=c99", "-Os", "-static", "-Wall", "-Wextra", "-pedantic", "-Werror")
    run(tmp_path, ARM, *flags, "model.c", "model_test.c", "-lm", "-o", "check")
    assert "agrees" in run(tmp_path, "qemu-arm", "./check")


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("layer", [*LAYERS, "FastGRNN"])
def test_an_8_bit_processor_says_the_same_to_the_bit(tmp_path, layer, layers):
    """Its ints have 16 bits, and its constants lie in another memory."""
    needs("avr-gcc", "simavr")
    x, model = examples(), network(layer, num_layers=layers, readout="mean")
    described = plan(model)
    prepared = [prepare(described.preparation, v) for v in x]
    fixed = FixedModel(described, prepared, model, 8)
    write_c(model, tmp_path, weights="int8", calibration=list(x))
    samples = fixed.samples(x[0])
    text = MAIN.replace("SAMPLES", ", ".join(str(v) for v in samples.ravel()))
    (tmp_path / "main.c").write_text(text.replace("STEPS", str(len(samples))))
    flags = (f"-mmcu={AVR}", "-std=gnu99", "-Os", "-Wall", "-Wextra", "-Werror")
    run(tmp_path, "avr-gcc", *flags, "main.c", "model.c", "-o", "main.elf")
    said = run(tmp_path, "simavr", "-m", AVR, "-f", "16000000", "main.elf")
    values = [int(v) for v in re.findall(r"(-?\d+)\.", said)]
    assert values == fixed.outputs(samples[None])[0].tolist()
