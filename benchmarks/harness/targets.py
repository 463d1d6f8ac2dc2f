"""Exported C on what it is for: this machine, two simulated microcontrollers, WebAssembly.

Every target says the size of a program, the time of a step and the outputs for some sequences;
nothing where its tools are missing.
"""

import ctypes
import functools
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.results import Result

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
class Program:
    """An exported model: where it lies, what its weights are, and its sizes."""

    folder: Path
    weights: str
    channels: int
    outputs: int
    double: bool = False

    @property
    def whole(self) -> bool:
        return self.weights != "float"

    @property
    def value(self) -> type:
        """What an output is, and a sample where numbers are not whole."""
        return np.int32 if self.whole else np.float64 if self.double else np.float32

    @property
    def flags(self) -> tuple[str, ...]:
        return ("-DMODEL_DOUBLE",) if self.double else ()

    def run(self, *words: object, given: str | None = None) -> str:
        """Run a command in the folder; what it says."""
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

    def state(self, compiler: str = "gcc", size: str = "size", flags: tuple[str, ...] = ()) -> int:
        """Bytes of the state."""
        (self.folder / "ram.c").write_text('#include "model.h"\nmodel_state state;\n')
        flags = (*flags, *self.flags, "-fno-common")
        self.run(compiler, *flags, "-c", "ram.c", "-o", "ram.o")
        return int(self.run(size, "ram.o").splitlines()[1].split()[2])

    def write(self, name: str, **macros: object) -> None:
        """Write what a target runs into the folder, after its macros."""
        kinds = ("int16_t", "int32_t") if self.whole else ("float", "float")
        macros = {"SAMPLE": kinds[0], "VALUE": kinds[1], **macros}
        lines = ["#include <stdint.h>", *(f"#define {macro} {of}" for macro, of in macros.items())]
        text = "\n".join([*lines, (PROGRAMS / name).read_text("utf-8")])
        (self.folder / name).write_text(text, "utf-8")

    @functools.cached_property
    def _here(self) -> ctypes.CDLL:
        flags = ("-std=c99", "-O2", "-shared", "-fPIC", *self.flags)
        self.run("gcc", *flags, "model.c", "-lm", "-o", "model.so")
        return ctypes.CDLL(str(self.folder / "model.so"))

    def samples(self, x: np.ndarray) -> np.ndarray:
        """Samples [..., C] as the program takes them."""
        if not self.whole:
            return np.ascontiguousarray(x, self.value)
        x = np.ascontiguousarray(x, np.float32)
        whole = np.empty(x.shape, np.int16)
        for place in np.ndindex(x.shape[:-1]):
            self._here.model_quantise(_pointer(x[place]), _pointer(whole[place]))
        return whole

    def raw(self, samples: np.ndarray) -> np.ndarray:
        """The outputs [O] on this machine for samples [T, C] as the program takes them."""
        found = np.empty(self.outputs, self.value)
        steps = ctypes.c_long(len(samples))
        self._here.model_sequence(_pointer(samples), steps, _pointer(found))
        return found

    def numbers(self, raw: np.ndarray) -> np.ndarray:
        return raw.astype(np.float64) / (65536 if self.whole else 1)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The outputs [O] on this machine for samples [T, C] as they come, as numbers."""
        return self.numbers(self.raw(self.samples(x)))


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def write_main(program: Program, name: str, samples: np.ndarray, answers: bool = False) -> None:
    """Write a chip's program for samples [N, T, C] into the folder."""
    numbers = ", ".join(repr(v.item()) for v in samples.ravel())
    shutil.copy(PROGRAMS / "main.c", program.folder)
    sizes = {"SEQUENCES": len(samples), "STEPS": samples.shape[1]}
    program.write(name, VALUES=numbers, ANSWERS=int(answers), **sizes)


def said(program: Program, text: str, number: int) -> tuple[np.ndarray, int]:
    """Raw outputs [N, O] and the count of the clock."""
    words = [int(word, 16) for word in re.findall(r"(?<![0-9a-f])([0-9a-f]{8})(?=[.\s])", text)]
    if len(words) != number * program.outputs + 1:
        raise RuntimeError(f"the simulated processor said {text!r}")
    raw = np.array(words[:-1], np.uint32).view(program.value)
    return raw.reshape(number, -1), words[-1]


def has(*tools: str) -> bool:
    return all(map(shutil.which, tools))


def avr(program: Program, samples: np.ndarray) -> Result:
    """On a simulated ATmega1284P: bytes, cycles a step and raw outputs for samples [N, T, C]."""
    if not has("avr-gcc", "simavr"):
        return {}
    flags = (f"-mmcu={AVR_CHIP}", "-std=gnu99")
    size = program.flash("avr-gcc", "avr-size", *flags)
    write_main(program, "avr.c", samples)
    program.run("avr-gcc", "-Os", *flags, "avr.c", "model.c", "-lm", "-o", "avr.elf")
    text = program.run("simavr", "-m", AVR_CHIP, "-f", "16000000", "avr.elf")
    raw, counted = said(program, text, len(samples))
    return {"size": size, "speed": counted * 1024 // samples[..., 0].size, "raw": raw}


def cortex(program: Program, samples: np.ndarray, answers: bool = False) -> Result:
    """On an emulated Cortex-M4: bytes, instructions a step and raw outputs for samples.

    With ``answers``, outputs are computed after each step, and counted.
    """
    if not has("arm-none-eabi-gcc", "qemu-system-arm"):
        return {}
    size = program.flash("arm-none-eabi-gcc", "arm-none-eabi-size", *CORTEX_FLAGS)
    write_main(program, "cortex.c", samples, answers)
    shutil.copy(PROGRAMS / "cortex.ld", program.folder)
    flags = ("-O2", *CORTEX_FLAGS, "-nostartfiles", "-T", "cortex.ld")
    program.run("arm-none-eabi-gcc", *flags, "cortex.c", "model.c", "-lm", "-o", "arm.elf")
    text = program.run(
        "qemu-system-arm", "-M", "mps2-an386", "-nographic", "-semihosting-config",
        "enable=on,target=native", "-icount", "shift=0", "-kernel", "arm.elf",
    )  # fmt: skip
    raw, counted = said(program, text, len(samples))
    speed = counted * CORTEX_INSTRUCTIONS // samples[..., 0].size
    return {"size": size, "speed": speed, "raw": raw}


def wasm(program: Program, samples: np.ndarray) -> Result:
    """In WebAssembly: bytes of the module, nanoseconds a step in Node.js and raw outputs."""
    if not has("emcc", "node"):
        return {}
    most = 20_000
    program.write("wasm.c", MOST=most)
    shutil.copy(PROGRAMS / "run.js", program.folder)
    exported = "-sEXPORTED_FUNCTIONS=_place,_sequence"
    files = ("wasm.c", "model.c", "-o", "page.wasm")
    program.run("emcc", "-O2", "--no-entry", "-sSTANDALONE_WASM", exported, *files)
    arguments = ("page.wasm", "whole" if program.whole else "float", program.channels, most)
    given = json.dumps([x.ravel().tolist() for x in samples])
    found = json.loads(program.run("node", "run.js", *arguments, program.outputs, given=given))
    size = (program.folder / "page.wasm").stat().st_size
    raw = np.array(found["outputs"]).astype(program.value)
    return {"size": size, "speed": found["ns"], "raw": raw}


TARGETS: dict[str, Callable[[Program, np.ndarray], Result]] = {
    "AVR": avr,
    "Cortex-M4": cortex,
    "WebAssembly": wasm,
}
