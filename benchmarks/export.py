"""What exported C costs and how well it agrees: size, memory, time, accuracy.

    python benchmarks/export.py [--out RUNS] [--update]

Trains one model of each kind on scikit-learn's digits, which come pixel by pixel (finished runs are
taken as they are), exports it in floating point, int16 and int8, and measures every program. With
avr-gcc and simavr it is also run on a simulated ATmega1284P, and its cycles are counted. Writes
export.json beside this file; --update also puts the table into docs/export.md.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from anharmonic.data import make_task
from anharmonic.export import write_c
from anharmonic.train import Run, RunEnvironment, fit, run_folder, trained

HERE = Path(__file__).parent
MODELS = {
    "CoRNN": {"dt": 0.2},
    "UnICORNN": {"num_layers": 2, "dt": 0.5},
    "LEM": {},
    "LSTM": {},
    "GRU": {},
}
WEIGHTS = ("float", "int16", "int8")
CHIP = "atmega1284p"
AVR_STEPS = 8
AVR_MAIN = """
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdio.h>
#include "model.h"
static model_state state;
int main(void) {
    SAMPLE x[MODEL_CHANNELS] = {1};
    char text[16], *c;
    int i;
    model_start(&state);
    TCCR1B = 5; /* one count in 1024 cycles */
    TCNT1 = 0;
    for (i = 0; i < STEPS; i++)
        model_step(&state, x);
    sprintf(text, "%u\\n", TCNT1);
    for (c = text; *c; c++) {
        while (!(UCSR0A & (1 << UDRE0)));
        UDR0 = *c;
    }
    cli();
    sleep_mode();
    return 0;
}
"""


def compiled(folder: Path, *arguments: str) -> None:
    subprocess.run([*arguments], cwd=folder, check=True)


def flash(folder: Path, size: str, compiler: str, *flags: str) -> int:
    """Bytes of code and constants."""
    compiled(folder, compiler, "-Os", *flags, "-c", "model.c", "-o", "model.o")
    said = subprocess.run([size, "model.o"], cwd=folder, check=True, capture_output=True, text=True)
    text, data, *_ = said.stdout.splitlines()[1].split()
    return int(text) + int(data)


def ram(folder: Path) -> int:
    """Bytes of the state."""
    (folder / "ram.c").write_text(
        '#include <stdio.h>\n#include "model.h"\n'
        'int main(void) { printf("%lu", (unsigned long)sizeof(model_state)); return 0; }\n'
    )
    compiled(folder, "gcc", "ram.c", "-o", "ram")
    return int(subprocess.run([folder / "ram"], capture_output=True, check=True).stdout)


def loaded(folder: Path, weights: str, channels: int = 1, outputs: int = 10):
    """The program as a function from samples [T, C] to outputs [O]."""
    compiled(
        folder, "gcc", "-std=c99", "-O2", "-shared", "-fPIC", "model.c", "-lm", "-o", "model.so"
    )
    library = ctypes.CDLL(str(folder / "model.so"))
    value = np.float32 if weights == "float" else np.int32

    def pointer(array):
        return array.ctypes.data_as(ctypes.c_void_p)

    def call(x):
        if weights != "float":
            whole = np.empty(x.shape, np.int16)
            for row, place in zip(x, whole, strict=True):
                library.model_quantise(pointer(row), pointer(place))
            x = whole
        return run(x)

    def run(x):
        found = np.empty(outputs, value)
        library.model_sequence(pointer(x), ctypes.c_long(len(x)), pointer(found))
        return found / (1 if weights == "float" else 65536)

    sample = np.float32 if weights == "float" else np.int16
    long = np.ones((20_000, channels), sample)
    times = []
    for _ in range(7):
        start = time.perf_counter()
        run(long)
        times.append((time.perf_counter() - start) / len(long))
    return call, min(times) * 1e9


def avr(folder: Path, weights: str) -> dict[str, int]:
    """Flash and cycles a step on a simulated microcontroller; nothing without its tools."""
    if not (shutil.which("avr-gcc") and shutil.which("simavr")):
        return {}
    flags = [f"-mmcu={CHIP}", "-std=gnu99"]
    found = {"avr_flash": flash(folder, "avr-size", "avr-gcc", *flags)}
    (folder / "avr.c").write_text(AVR_MAIN)
    sample = "float" if weights == "float" else "int16_t"
    compiled(
        folder, "avr-gcc", "-Os", *flags, f"-DSAMPLE={sample}", f"-DSTEPS={AVR_STEPS}",
        "avr.c", "model.c", "-lm", "-o", "avr.elf",
    )  # fmt: skip
    done = subprocess.run(
        ["simavr", "-m", CHIP, "-f", "16000000", "avr.elf"],
        cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    digits = re.search(r"(\d+)\.", done.stdout + done.stderr)
    if digits is None:
        raise RuntimeError(f"simavr said {done.stdout!r} {done.stderr!r}")
    found["avr_cycles"] = int(digits[1]) * 1024 // AVR_STEPS
    return found


def measure(out: Path) -> list[dict[str, object]]:
    splits = make_task("digits").splits()
    (x, y), calibration = (splits.test.x, splits.test.y), splits.train.x[:256]
    samples = np.ascontiguousarray(x.numpy(), np.float32)
    rows: list[dict[str, object]] = []
    for name, options in MODELS.items():
        options = {"hidden_size": 16, **options}
        run = Run(task="digits", model=name, model_options=options, epochs=15, lr=0.01)
        environment = RunEnvironment(out=out, progress=False)
        fit(run, environment)
        folder = run_folder(run, environment)
        model = trained(folder).model
        with torch.no_grad():
            single = model(x).double().numpy()
            exact = model.double()(x.double()).numpy()
        accuracy = float((exact.argmax(1) == y.numpy()).mean() * 100)
        for weights in WEIGHTS:
            with tempfile.TemporaryDirectory() as place:
                here = Path(place)
                write_c(folder, here, weights=weights, calibration=list(calibration.numpy()))
                compiled(here, "gcc", "-std=c99", "model.c", "model_test.c", "-lm", "-o", "check")
                compiled(here, "./check")
                program, ns = loaded(here, weights)
                outputs = np.stack([program(row) for row in samples])
                rows.append(
                    {
                        "model": name,
                        "weights": weights,
                        "flash": flash(here, "size", "gcc", "-std=c99"),
                        "ram": ram(here),
                        "ns": round(ns, 1),
                        "error": float(np.abs(outputs - exact).max()),
                        "torch_error": float(np.abs(single - exact).max()),
                        "accuracy": float((outputs.argmax(1) == y.numpy()).mean() * 100),
                        "torch_accuracy": accuracy,
                        **avr(here, weights),
                    }
                )
                print(rows[-1], flush=True)
    return rows


def table(rows: list[dict[str, object]]) -> str:
    """The rows as Markdown."""
    lines = [
        "| model | weights | flash, x86-64 | flash, AVR | state | ns a step | cycles a step, AVR"
        " | largest error | accuracy |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for r in rows:
        lines.append(
            f"| {r['model']} | {r['weights']} | {r['flash']:,} | {r.get('avr_flash', '–'):,} "
            f"| {r['ram']:,} | {r['ns']:,.0f} | {r.get('avr_cycles', '–'):,} "
            f"| {r['error']:.1e} | {r['accuracy']:.1f} (PyTorch {r['torch_accuracy']:.1f}) |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--update", action="store_true")
    chosen = parser.parse_args()
    rows = measure(chosen.out)
    (HERE / "export.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))
    if chosen.update:
        page = HERE.parent / "docs" / "export.md"
        before, rest = page.read_text().split("<!-- export -->\n")
        after = rest.split("<!-- /export -->")[1]
        text = f"{before}<!-- export -->\n{table(rows)}\n<!-- /export -->{after}"
        page.write_text(text)


if __name__ == "__main__":
    main()
