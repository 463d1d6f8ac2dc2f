import re
import shutil
import subprocess

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.export import write_c
from anharmonic.export.c import prepare
from anharmonic.export.fixed_model import FixedModel
from anharmonic.export.plan import plan

CHIP = "atmega1284p"
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


@pytest.mark.slow
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("layer", ["LEM", "CoRNN", "UnICORNN", "LSTM", "GRU", "FastGRNN"])
def test_an_8_bit_processor_says_the_same_to_the_bit(tmp_path, layer, layers):
    """Its ints have 16 bits, and its constants lie in another memory."""
    if not (shutil.which("avr-gcc") and shutil.which("simavr")):
        pytest.skip("needs avr-gcc with avr-libc, and simavr")
    x = np.random.default_rng(0).normal(size=(6, 25, 2)).astype(np.float32)
    torch.manual_seed(0)
    options = {"hidden_size": 5, "num_layers": layers, "readout": "mean"}
    model = ah.SequenceModel(layer, 2, 3, **options).requires_grad_(False)
    described = plan(model)
    prepared = [prepare(described.preparation, v) for v in x]
    fixed = FixedModel(described, prepared, model.eval(), 8)
    write_c(model, tmp_path, weights="int8", calibration=list(x))
    samples = fixed.samples(x[0])
    text = MAIN.replace("SAMPLES", ", ".join(str(v) for v in samples.ravel()))
    (tmp_path / "main.c").write_text(text.replace("STEPS", str(len(samples))))
    flags = (f"-mmcu={CHIP}", "-std=gnu99", "-Os", "-Wall", "-Wextra", "-Werror")
    subprocess.run(
        ["avr-gcc", *flags, "main.c", "model.c", "-o", "main.elf"], cwd=tmp_path, check=True
    )
    done = subprocess.run(
        ["simavr", "-m", CHIP, "-f", "16000000", "main.elf"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    said = [int(v) for v in re.findall(r"(-?\d+)\.", done.stdout + done.stderr)]
    assert said == fixed.outputs(samples[None])[0].tolist()
