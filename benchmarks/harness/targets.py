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

import numpy as np

AVR_CHIP = "atmega1284p"
# What a microcontroller runs: sequences, whose outputs it says as 8 hexadecimal digits each, and
# then what its clock counted.
MAIN = """
#include <stdint.h>
#include <string.h>
#include "model.h"
static model_state state;
static const SAMPLE samples[] = {VALUES};
static void say(uint32_t word) {
    char text[10];
    int i;
    for (i = 0; i < 8; i++)
        text[i] = "0123456789abcdef"[word >> (28 - 4 * i) & 15];
    text[8] = '\\n';
    text[9] = 0;
    put(text);
}
static void all(void) {
    const SAMPLE *x = samples;
    uint32_t counted = 0, word;
    VALUE outputs[MODEL_OUTPUTS];
    int n, i;
    for (n = 0; n < SEQUENCES; n++) {
        model_start(&state);
        start_clock();
        for (i = 0; i < STEPS; i++, x += MODEL_CHANNELS)
            model_step(&state, x);
        counted += read_clock();
        model_output(&state, outputs);
        for (i = 0; i < MODEL_OUTPUTS; i++) {
            memcpy(&word, outputs + i, 4);
            say(word);
        }
    }
    say(counted);
}
"""
AVR = """
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
static void put(const char *text) {
    for (; *text; text++) {
        while (!(UCSR0A & (1 << UDRE0)));
        UDR0 = *text;
    }
}
static void start_clock(void) { TCCR1B = 5; TCNT1 = 0; } /* one count in 1024 cycles */
static unsigned read_clock(void) { return TCNT1; }
MAIN
int main(void) {
    all();
    cli();
    sleep_mode();
    return 0;
}
"""
CORTEX = """
#include <stdint.h>
#define REGISTER(address) (*(volatile uint32_t *)(address))
static void call(int what, const void *with) { /* the emulator */
    register int r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = with;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}
static void put(const char *text) { call(4, text); }
static void start_clock(void) {
    REGISTER(0xe000e014) = 0xffffff;
    REGISTER(0xe000e018) = 0;
    REGISTER(0xe000e010) = 5;
}
static uint32_t read_clock(void) { return 0xffffff - REGISTER(0xe000e018); }
MAIN
void reset(void) {
    REGISTER(0xe000ed88) |= 0xf << 20; /* floating point on */
    all();
    call(0x18, (void *)0x20026);
    for (;;);
}
extern char stack_end;
__attribute__((section(".vectors"), used)) const void *vectors[16] = {&stack_end, (void *)reset};
"""
CORTEX_LINK = """
SECTIONS {
    . = 0;
    .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) }
    .ARM.exidx : { *(.ARM.exidx*) }
    . = 0x20000000;
    .data : { *(.data*) }
    .bss : { *(.bss*) *(COMMON) }
    stack_end = 0x20100000;
}
"""
# One instruction takes a nanosecond there, and the clock counts at 25 MHz.
CORTEX_INSTRUCTIONS = 40
WASM = """
#include "model.h"
static SAMPLE samples[MOST * MODEL_CHANNELS];
static VALUE outputs[MODEL_OUTPUTS];
SAMPLE *place(void) { return samples; }
VALUE *sequence(int steps) { model_sequence(samples, steps, outputs); return outputs; }
"""
NODE = """
const [file, kind, channels, steps, count] = process.argv.slice(2);
const given = JSON.parse(require("fs").readFileSync(0));
const nothing = new Proxy({}, {get: () => () => 0});
const program = new WebAssembly.Module(require("fs").readFileSync(file));
const made = new WebAssembly.Instance(program, {wasi_snapshot_preview1: nothing, env: nothing});
const {memory, place, sequence} = made.exports;
const [Sample, Value] = kind == "float" ? [Float32Array, Float32Array] : [Int16Array, Int32Array];
const samples = new Sample(memory.buffer, place(), steps * channels);
const outputs = given.map(x => {
    samples.set(x);
    return [...new Value(memory.buffer, sequence(x.length / channels), +count)];
});
samples.set(Array.from({length: steps}, (_, n) => given[0].slice(0, channels)).flat());
const times = [];
for (let n = 0; n < 9; n++) {
    const before = process.cpuUsage();
    sequence(+steps);
    const used = process.cpuUsage(before);
    times.push((used.user + used.system) * 1000 / steps);
}
times.sort((a, b) => a - b);
console.log(JSON.stringify({outputs, ns: times[4]}));
"""


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
    def sample(self) -> type:
        """What a sample is."""
        return np.int16 if self.whole else np.float64 if self.double else np.float32

    @property
    def value(self) -> type:
        """What an output is."""
        return np.int32 if self.whole else np.float64 if self.double else np.float32

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
        self.run(
            "gcc", "-std=c99", *self.flags, "model.c", "model_test.c", "-lm", "-o", "check"
        )  # fmt: skip
        self.run("./check")

    @property
    def flags(self) -> tuple[str, ...]:
        """What the compiler is told of the precision."""
        return ("-DMODEL_DOUBLE",) if self.double else ()


class Here:
    """The program on this machine."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        flags = ("-std=c99", "-O2", "-shared", "-fPIC", *sources.flags)
        sources.run("gcc", *flags, "model.c", "-lm", "-o", "model.so")
        self._library = ctypes.CDLL(str(sources.folder / "model.so"))

    def samples(self, x: np.ndarray) -> np.ndarray:
        """Samples [..., C] as the program takes them."""
        source = self._sources
        if not source.whole:
            return np.ascontiguousarray(x, source.sample)
        x = np.ascontiguousarray(x, np.float32)
        whole = np.empty(x.shape, np.int16)
        for row, place in zip(x.reshape(-1, x.shape[-1]), whole.reshape(-1, x.shape[-1])):  # noqa: B905
            self._library.model_quantise(_pointer(row), _pointer(place))
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


def _main(platform: str, sources: Sources, samples: np.ndarray) -> str:
    kind, value = ("int16_t", "int32_t") if sources.whole else ("float", "float")
    words = [repr(v.item()) for v in samples.ravel()]
    defined = f"#define SAMPLE {kind}\n#define VALUE {value}\n"
    defined += f"#define SEQUENCES {len(samples)}\n#define STEPS {samples.shape[1]}\n"
    return defined + platform.replace("MAIN", MAIN.replace("VALUES", ", ".join(words)))


def _said(sources: Sources, text: str, number: int) -> tuple[np.ndarray, int]:
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
    (sources.folder / "avr.c").write_text(_main(AVR, sources, samples))
    sources.run("avr-gcc", "-Os", *flags, "avr.c", "model.c", "-lm", "-o", "avr.elf")
    said = sources.run("simavr", "-m", AVR_CHIP, "-f", "16000000", "avr.elf")
    raw, counted = _said(sources, said, len(samples))
    return {"size": size, "speed": counted * 1024 // samples[..., 0].size, "raw": raw}


def cortex(sources: Sources, samples: np.ndarray) -> dict[str, object]:
    """On an emulated Cortex-M4: bytes, instructions a step and raw outputs for samples."""
    if not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")):
        return {}
    flags = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-std=gnu99")
    size = sources.flash("arm-none-eabi-gcc", "arm-none-eabi-size", *flags)
    (sources.folder / "arm.c").write_text(_main(CORTEX, sources, samples))
    (sources.folder / "arm.ld").write_text(CORTEX_LINK)
    sources.run(
        "arm-none-eabi-gcc", "-O2", *flags, "-nostartfiles", "-T", "arm.ld", "arm.c", "model.c",
        "-lm", "-o", "arm.elf",
    )  # fmt: skip
    said = sources.run(
        "qemu-system-arm", "-M", "mps2-an386", "-nographic", "-semihosting-config",
        "enable=on,target=native", "-icount", "shift=0", "-kernel", "arm.elf",
    )  # fmt: skip
    raw, counted = _said(sources, said, len(samples))
    return {
        "size": size,
        "speed": counted * CORTEX_INSTRUCTIONS // samples[..., 0].size,
        "raw": raw,
    }


def wasm(sources: Sources, samples: np.ndarray, most: int = 20_000) -> dict[str, object]:
    """In WebAssembly: bytes of the module, nanoseconds a step in Node.js and raw outputs."""
    if not (shutil.which("emcc") and shutil.which("node")):
        return {}
    kind, value = ("short", "int32_t") if sources.whole else ("float", "float")
    text = WASM.replace("SAMPLE", kind).replace("VALUE", value).replace("MOST", str(most))
    (sources.folder / "page.c").write_text(text)
    (sources.folder / "run.js").write_text(NODE)
    exported = "-sEXPORTED_FUNCTIONS=_place,_sequence"
    sources.run(
        "emcc", "-O2", "--no-entry", "-sSTANDALONE_WASM", exported, "page.c", "model.c", "-o",
        "page.wasm",
    )  # fmt: skip
    arguments = ("page.wasm", "whole" if sources.whole else "float", sources.channels, most)
    given = json.dumps([x.ravel().tolist() for x in samples])
    said = json.loads(sources.run("node", "run.js", *arguments, sources.outputs, given=given))
    size = (sources.folder / "page.wasm").stat().st_size
    raw = np.array(said["outputs"]).astype(sources.value)
    return {"size": size, "speed": said["ns"], "raw": raw}


TARGETS: dict[str, Callable[..., dict[str, object]]] = {
    "AVR": avr,
    "Cortex-M4": cortex,
    "WebAssembly": wasm,
}
