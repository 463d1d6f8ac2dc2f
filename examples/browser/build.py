"""A page that says how you move the mouse: a LEM, exported to C and compiled for the browser.

    python examples/browser/build.py [--out movements.html]

Trains on made-up movements (a minute), writes the model as C, compiles it with emscripten (`emcc`)
to WebAssembly and puts all into one file, which a browser opens from the disk: it plays a recording
that the model has not seen, or follows your pointer. Nothing leaves the page.
"""

from __future__ import annotations

import argparse
import base64
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch

import anharmonic as ah
from anharmonic.export import write_c

HERE = Path(__file__).parent
NAMES = ("still", "left and right", "up and down", "clockwise", "anticlockwise")
RATE, STEPS = 30, 90  # samples a second, samples of a sequence
GLUE = """
#include "model.h"
static model_state state;
static model_real outputs[MODEL_OUTPUTS];
void start(void) { model_start(&state); }
void step(float dx, float dy) {
    model_real x[MODEL_CHANNELS];
    x[0] = dx; x[1] = dy;
    model_step(&state, x);
    model_output(&state, outputs);
}
float score(int k) { return outputs[k]; }
"""


def movement(rng: np.random.Generator, kind: int, steps: int) -> np.ndarray:
    """Velocities of one movement [steps, 2], in page heights a second; y points down."""
    t = np.arange(steps) / RATE
    phase = 2 * np.pi * (rng.uniform() + rng.uniform(0.6, 2.2) * t)
    size = np.exp(rng.uniform(np.log(0.6), np.log(5.0)))
    found = np.zeros((steps, 2))
    if kind in (1, 2):
        found[:, kind - 1] = np.cos(phase)
        found[:, 2 - kind] = rng.uniform(-0.25, 0.25) * np.cos(phase)
    elif kind > 2:
        found[:, 0] = np.cos(phase)
        found[:, 1] = rng.uniform(0.7, 1.4) * np.sin(phase) * (1 if kind == 3 else -1)
    noise = rng.normal(size=(steps, 2)) * (0.08 * size if kind else 0.05 * rng.uniform())
    return size * found + noise


def movements(rng: np.random.Generator, number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sequences [number, STEPS, 2] of one movement and then another, whose class counts."""
    x, y = np.zeros((number, STEPS, 2), np.float32), rng.integers(len(NAMES), size=number)
    for n in range(number):
        first = rng.integers(STEPS - 25)
        x[n, :first] = movement(rng, rng.integers(len(NAMES)), first)
        x[n, first:] = movement(rng, y[n], STEPS - first)
    return torch.from_numpy(x), torch.from_numpy(y)


def trained(updates: int) -> ah.SequenceModel:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    model = ah.SequenceModel("LEM", 2, len(NAMES), hidden_size=16, dt=0.5)
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=updates)
    for _ in range(updates):
        x, y = movements(rng, 64)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval().requires_grad_(False)


def recording() -> tuple[np.ndarray, list[int]]:
    """Velocities that the model has not seen, two seconds of each movement, and their classes."""
    rng = np.random.default_rng(1)
    kinds = [3, 1, 0, 4, 2, 3, 0, 2, 4, 1]
    parts = [movement(rng, kind, 2 * RATE) for kind in kinds]
    return np.concatenate(parts).astype(np.float32), [k for k in kinds for _ in range(2 * RATE)]


def build(out: Path, updates: int = 400) -> ah.SequenceModel:
    """Writes the page; the model, for whoever wants to compare."""
    model = trained(updates)
    x, classes = recording()
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        write_c(model, here, class_names=NAMES, lut=True)
        (here / "glue.c").write_text(GLUE)
        exports = "-sEXPORTED_FUNCTIONS=_start,_step,_score"
        flags = ("-O2", "--no-entry", "-sSTANDALONE_WASM", exports)
        subprocess.run(
            ["emcc", *flags, "model.c", "glue.c", "-o", "model.wasm"], cwd=here, check=True
        )
        program = (here / "model.wasm").read_bytes()
    values = {
        "names": NAMES,
        "rate": RATE,
        "recording": x.round(3).tolist(),
        "classes": classes,
        "program": base64.b64encode(program).decode(),
    }
    page = (HERE / "page.html").read_text().replace("/*VALUES*/", json.dumps(values))
    out.write_text(page)
    print(f"wrote {out}: {len(page):,} bytes, of which the program has {len(program):,}")
    return model


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("movements.html"))
    build(parser.parse_args().out)
