"""Exported C on what it is for: this machine, two simulated microcontrollers, WebAssembly.

Every target says the size of a program, the time of a step and the outputs for some sequences;
nothing where its tools are missing.
"""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

AVR_CHIP = "atmega1284p"
PROGRAMS = Path(__file__).with_name("programs")
"""What a target runs: sequences, whose outputs it says as 8 hexadecimal digits each, and then what
its clock counted."""
CORTEX_FLAGS = (
    "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-std=gnu99"
)  # fmt: skip
# One instruction takes a nanosecond there, and the clock counts at 25 MHz.
CORTEX_INSTRUCTIONS = 40


@dataclass(frozen=True)
class Sources:
    """An exported model: where it lies, what its samples are, and their sizes."""

    folder: Path
    weights: str
    channels: int
    outputs: int
    double: bool = False

    @property
    def whole(self) -> bool:
        """Whether it computes in whole numbers."""
        return self.weights != "float"

    @property
    def value(self) -> type:
        """What an output is, and a sample where numbers are not whole."""
        return np.int32 if self.whole else np.float64 if self.double else np.float32

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler's flags for the precision."""
        return ("-DMODEL_DOUBLE",) if self.double else ()

    def run(self, *words: object, given: str | None = None) -> str:
        """Runs a command in the folder; what it says."""
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self.folder, capture_output=True, text=True, input=given, timeout=600,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{words[0]} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout + done.stderr

    def flash(self, compiler: str, size: str, *flags: str) -> int:
        """Bytes of code and constants, without the library's functions."""
        self.run(compiler, "-Os", *flags, "-c", "model.c", "-o", "model.o")
        text, data, *_ = self.run(size, "model.o").splitlines()[1].split()
        return int(text) + int(data)

    def state(self) -> int:
        """Bytes of the state."""
        (self.folder / "ram.c").write_text(
            '#include <stdio.h>\n#include "model.h"\n'
            'int main(void) { printf("%lu", (unsigned long)sizeof(model_state)); return 0; }\n'
        )
        self.run("gcc", *self.flags, "ram.c", "-o", "ram")
        return int(self.run("./ram"))

    def check(self) -> None:
        """Lets the program check itself."""
        files = ("model.c", "model_test.c")
        self.run("gcc", "-std=c99", *self.flags, *files, "-lm", "-o", "check")
        self.run("./check")

    def copy(self, name: str, **macros: object) -> None:
        """Writes what a target runs into the folder, after its macros."""
        kinds = ("int16_t", "int32_t") if self.whole else ("float", "float")
        macros = {"SAMPLE": kinds[0], "VALUE": kinds[1], **macros}
        text = "".join(f"#define {macro} {content}\n" for macro, content in macros.items())
        text = "#include <stdint.h>\n" + text + (PROGRAMS / name).read_text("utf-8")
        (self.folder / name).write_text(text, "utf-8")


class Here:
    """The program on this machine."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        flags = ("-std=c99", "-O2", "-shared", "-fPIC", *sources.flags)
        sources.run("gcc", *flags, "model.c", "-lm", "-o", "model.so")
        self._library = ctypes.CDLL(str(sources.folder / "model.so"))

    def samples(self, x: np.ndarray) -> np.ndarray:
        """Samples [..., C] as the program takes them."""
        if not self._sources.whole:
            return np.ascontiguousarray(x, self._sources.value)
        x = np.ascontiguousarray(x, np.float32)
        whole = np.empty(x.shape, np.int16)
        for place in np.ndindex(x.shape[:-1]):
            self._library.model_quantise(_pointer(x[place]), _pointer(whole[place]))
        return whole

    def raw(self, samples: np.ndarray) -> np.ndarray:
        """The outputs [O] for samples [T, C] as the program takes them, as it gives them."""
        found = np.empty(self._sources.outputs, self._sources.value)
        steps = ctypes.c_long(len(samples))
        self._library.model_sequence(_pointer(samples), steps, _pointer(found))
        return found

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The outputs [O] for samples [T, C] as they come, as numbers."""
        return values(self._sources, self.raw(self.samples(x)))


def values(sources: Sources, raw: np.ndarray) -> np.ndarray:
    """Outputs as numbers."""
    return raw.astype(np.float64) / (65536 if sources.whole else 1)


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def copy_main(sources: Sources, name: str, samples: np.ndarray, answers: bool = False) -> None:
    """Write a chip's program for samples [N, T, C] into the folder."""
    numbers = ", ".join(repr(v.item()) for v in samples.ravel())
    shutil.copy(PROGRAMS / "main.c", sources.folder)
    sizes = {"SEQUENCES": len(samples), "STEPS": samples.shape[1]}
    sources.copy(name, VALUES=numbers, ANSWERS=int(answers), **sizes)


def said(sources: Sources, text: str, number: int) -> tuple[np.ndarray, int]:
    """Raw outputs [N, O] and the count of the clock."""
    words = [int(word, 16) for word in re.findall(r"(?<![0-9a-f])([0-9a-f]{8})(?=[.\s])", text)]
    if len(words) != number * sources.outputs + 1:
        raise RuntimeError(f"the simulated processor said {text!r}")
    raw = np.array(words[:-1], np.uint32).view(sources.value)
    return raw.reshape(number, -1), words[-1]


def avr(sources: Sources, samples: np.ndarray) -> dict[str, object]:
    """On a simulated ATmega1284P: bytes, cycles a step and raw outputs for samples [N, T, C]."""
    if not (shutil.which("avr-gcc") and shutil.which("simavr")):
        return {}
    flags = (f"-mmcu={AVR_CHIP}", "-std=gnu99")
    size = sources.flash("avr-gcc", "avr-size", *flags)
    copy_main(sources, "avr.c", samples)
    sources.run("avr-gcc", "-Os", *flags, "avr.c", "model.c", "-lm", "-o", "avr.elf")
    text = sources.run("simavr", "-m", AVR_CHIP, "-f", "16000000", "avr.elf")
    raw, counted = said(sources, text, len(samples))
    return {"size": size, "speed": counted * 1024 // samples[..., 0].size, "raw": raw}


def cortex(sources: Sources, samples: np.ndarray, answers: bool = False) -> dict[str, Any]:
    """On an emulated Cortex-M4: bytes, instructions a step and raw outputs for samples.

    With ``answers``, outputs are computed after each step, and counted.
    """
    if not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")):
        return {}
    size = sources.flash("arm-none-eabi-gcc", "arm-none-eabi-size", *CORTEX_FLAGS)
    copy_main(sources, "cortex.c", samples, answers)
    shutil.copy(PROGRAMS / "cortex.ld", sources.folder)
    flags = ("-O2", *CORTEX_FLAGS, "-nostartfiles", "-T", "cortex.ld")
    sources.run("arm-none-eabi-gcc", *flags, "cortex.c", "model.c", "-lm", "-o", "arm.elf")
    text = sources.run(
        "qemu-system-arm", "-M", "mps2-an386", "-nographic", "-semihosting-config",
        "enable=on,target=native", "-icount", "shift=0", "-kernel", "arm.elf",
    )  # fmt: skip
    raw, counted = said(sources, text, len(samples))
    speed = counted * CORTEX_INSTRUCTIONS // samples[..., 0].size
    return {"size": size, "speed": speed, "raw": raw}


def cortex_state(sources: Sources) -> int:
    """Bytes of the state on a Cortex-M4, where long integers are shorter than here."""
    (sources.folder / "ram.c").write_text('#include "model.h"\nmodel_state state;\n')
    sources.run("arm-none-eabi-gcc", *CORTEX_FLAGS, "-fno-common", "-c", "ram.c", "-o", "ram.o")
    return int(sources.run("arm-none-eabi-size", "ram.o").splitlines()[1].split()[2])


def wasm(sources: Sources, samples: np.ndarray, most: int = 20_000) -> dict[str, object]:
    """In WebAssembly: bytes of the module, nanoseconds a step in Node.js and raw outputs."""
    if not (shutil.which("emcc") and shutil.which("node")):
        return {}
    sources.copy("wasm.c", MOST=most)
    shutil.copy(PROGRAMS / "run.js", sources.folder)
    exported = "-sEXPORTED_FUNCTIONS=_place,_sequence"
    sources.run(
        "emcc", "-O2", "--no-entry", "-sSTANDALONE_WASM", exported, "wasm.c", "model.c", "-o",
        "page.wasm",
    )  # fmt: skip
    arguments = ("page.wasm", "whole" if sources.whole else "float", sources.channels, most)
    given = json.dumps([x.ravel().tolist() for x in samples])
    found = json.loads(sources.run("node", "run.js", *arguments, sources.outputs, given=given))
    size = (sources.folder / "page.wasm").stat().st_size
    raw = np.array(found["outputs"]).astype(sources.value)
    return {"size": size, "speed": found["ns"], "raw": raw}


TARGETS: dict[str, Callable[[Sources, np.ndarray], dict[str, object]]] = {
    "AVR": avr,
    "Cortex-M4": cortex,
    "WebAssembly": wasm,
}
