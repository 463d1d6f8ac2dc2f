"""Resonators and MiniRocket on a Cortex-M4: accuracy, flash, RAM and instructions.

Both classify scikit-learn's digits, which come pixel by pixel. The programs are C in float, for an
emulated Cortex-M4 with floating point (Debian: gcc-arm-none-eabi, libnewlib-arm-none-eabi,
qemu-system-arm). Resonators are exported by ``write_c``. MiniRocket is ours, in
``harness/minirocket.py``: it keeps a window of samples, and computes its features one by one, so
that none is stored.
"""

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anharmonic.estimators import ResonatorClassifier
from anharmonic.export import write_c
from export import digits
from harness.minirocket import MiniRocket
from harness.results import Cases, Options, Result, caption, markdown_table
from harness.targets import CORTEX_FLAGS, Program, cortex

PAGES = {"microcontroller": ("benchmarks/devices.md",)}
SMALL = {"num_biases": 1, "pools": ("share", "largest")}
RESONATORS: dict[str, dict[str, Any]] = {
    "32 resonators, share and largest": {"num_oscillators": 32, **SMALL},
    "100 resonators, share and largest": {"num_oscillators": 100, **SMALL},
    "100 resonators, default pools": {"num_oscillators": 100},
    "1,000 resonators, default pools": {"num_oscillators": 1000},
}
ROCKETS = {"MiniRocket, 588 features": 588, "MiniRocket, 9,996 features": 9996}
STEPS, ON_CHIP = 64, 2
"""Samples of an image, and images that the chip is given."""


def cases(options: Options) -> Cases:
    torch.set_num_threads(1)
    found = {name: (of_resonators, drawn) for name, drawn in RESONATORS.items()}
    return found | {name: (of_rocket, number) for name, number in ROCKETS.items()}


def of_resonators(drawn: dict[str, Any]) -> Result:
    data, x, _ = digits()
    model = ResonatorClassifier(**drawn, random_state=0, n_jobs=1)
    model.fit(data.x.numpy().transpose(0, 2, 1), data.y.numpy())
    predicted = model.predict(x.numpy().transpose(0, 2, 1))
    return costs(functools.partial(write_c, model), predicted)


def of_rocket(features: int) -> Result:
    data, x, _ = digits()
    model = MiniRocket(features).fit(data.x[..., 0].numpy(), data.y.numpy())
    predicted = model.predict(x[..., 0].numpy())
    return costs(functools.partial(model.write_c, steps=STEPS), predicted)


def costs(write: Callable[[Path], object], predicted: np.ndarray) -> Result:
    """What a program that is written into a folder reaches and takes.

    Raises:
        RuntimeError: If it does not answer as the model does.
    """
    folder, (_, x, y) = Path(tempfile.mkdtemp()), digits()
    write(folder)
    program, series = Program(folder, "float", 1, len(np.unique(y))), x.numpy()
    answers = np.stack([program(one) for one in series]).argmax(1)
    if np.mean(answers != predicted) > 0.01:  # a response near a bias may fall on either side
        raise RuntimeError(f"{np.sum(answers != predicted)} answers of the program differ")
    found: Result = {"accuracy": float(np.mean(answers == y))}
    if once := cortex(program, series[:ON_CHIP]):
        always = cortex(program, series[:ON_CHIP], answers=True)
        state = program.state("arm-none-eabi-gcc", "arm-none-eabi-size", CORTEX_FLAGS)
        found |= {"flash": once["size"], "state": state}
        found |= {"step": once["speed"], "answered": always["speed"]}
    return found


def tables(results: list[Result]) -> dict[str, str]:
    """Instructions of a sample where a series is answered once, and after every sample."""
    heads = ["model", "accuracy", "flash, kB", "RAM, bytes"]
    every = "instructions per sample"
    rows = [[*heads, f"{every}, one answer at the end", f"{every}, an answer after each sample"]]
    for one in results:
        cells = [f"{100 * one['accuracy']:.1f} %", "–", "–", "–", "–"]
        if "flash" in one:
            output = one["answered"] - one["step"]
            always = one["step"] * STEPS if "Rocket" in one["case"] else one["answered"]
            cells[1:] = [f"{one['flash'] / 1000:,.1f}", f"{one['state']:,}"]
            cells += [f"{one['step'] + output / STEPS:,.0f}", f"{always:,.0f}"]
        rows.append([one["case"], *cells])
    about = (
        f"A series has {STEPS} samples. Instructions include the readout and were counted on an "
        f"emulated Cortex-M4.\n\nThe emulator ran on {caption(results)}"
    )
    return {"microcontroller": f"{markdown_table(rows)}\n\n{about}"}
