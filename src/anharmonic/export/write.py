"""Writing of C: arrays and ``#define``s, and the files of ``runtime`` around them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from anharmonic import __version__, _checks
from anharmonic.train import write_atomically

RUNTIME = Path(__file__).parent / "runtime"
MARKER = "Written by anharmonic"
"""Marker in the first line of every file, which a later export may then replace."""


@dataclass
class Program:
    """A model as C, without the code in ``runtime``.

    Attributes:
        description: The model in one line.
        numbers: Sizes for users and code, MODEL_NAME in ``model.h``.
        flags: Names that count as 1 in the runtime's ``#if`` lines.
        constants: Numbers for the code only.
        arrays: Definitions of arrays.
        table: Definition of the table of tanh, or empty.
        steps: Functions of the layers' steps; empty if the runtime has them.
        inputs: Comment lines on the values of a sample.
        outputs: Comment lines on the outputs.
    """

    description: str
    numbers: dict[str, int]
    flags: set[str]
    constants: dict[str, Any] = field(default_factory=dict)
    arrays: list[str] = field(default_factory=list)
    table: str = ""
    steps: str = ""
    inputs: str = ""
    outputs: str = ""

    def name_classes(self, names: Sequence[str]) -> None:
        """Add the names of the classes."""
        self.numbers["CLASSES"] = len(names)
        if names:
            self.flags.add("NAMED_CLASSES")
            words = ",\n    ".join(quoted(name) for name in names)
            self.arrays.append(
                f"const char *const model_classes[MODEL_CLASSES] = {{\n    {words}}};"
            )

    def sources(self, check: Program, name: str = "model") -> dict[str, str]:
        """Return the texts of ``model.h``, ``model.c`` and ``model_test.c`` by name.

        Args:
            check: The data of the check, as constants and arrays.
            name: Replaces ``model`` in the names of files, functions and constants.
        """
        head = f"/* {MARKER} {__version__}: {self.description}. */\n"
        config = defines({f"MODEL_{name}": value for name, value in self.numbers.items()})
        generated = {
            "config.h": config,
            "inputs.txt": self.inputs,
            "outputs.txt": self.outputs,
            "table.h": self.table,
            "steps.h": self.steps,
            "weights.h": "\n".join([defines(self.constants, "model_real"), *self.arrays]),
            "samples.h": "\n".join([defines(check.constants), *check.arrays]),
        }
        files = {"model.h": "model.h", "model.c": "model.c", "model_test.c": "check.c"}
        return {
            renamed(file, name): head
            + renamed(resolved(runtime, self.flags, generated).lstrip("\n"), name)
            for file, runtime in files.items()
        }


def resolved(name: str, flags: set[str], generated: Mapping[str, str]) -> str:
    """Return a file of the runtime for one model, with its conditions resolved.

    The flags decide ``#if NAME`` and ``#if !NAME``; all other conditions stay. Our own includes are
    replaced by their text, except ``model.h``, which is a separate file.
    """
    if name in generated:
        return generated[name]
    lines: list[str] = []
    nested: list[bool | None] = []  # whether each open condition holds; None: it stays
    for line in (RUNTIME / name).read_text().splitlines():
        ours = re.fullmatch(r"#if (!?)([A-Z]\w*)", line)
        if ours:
            nested.append((ours[2] in flags) != bool(ours[1]))
            continue
        if line.startswith("#if"):
            nested.append(None)
        elif line in ("#else", "#endif") and nested[-1] is not None:
            held = nested.pop()
            if line == "#else":
                nested.append(not held)
            continue
        if False not in nested:
            included = re.fullmatch(r'#include "(.+)"', line)
            if included and included[1] != "model.h":
                lines += filter(None, [resolved(included[1], flags, generated)])
            else:
                lines.append(line)
        if line == "#endif":
            nested.pop()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def renamed(text: str, name: str) -> str:
    """Replace ``model`` and ``MODEL`` in C code, except in strings.

    Example:
        >>> renamed('const char *model_classes[MODEL_CLASSES] = {"model_t"}; /* model.h */', "gait")
        'const char *gait_classes[GAIT_CLASSES] = {"model_t"}; /* gait.h */'
    """
    words = re.compile(
        r'(?<!#include )"(?:\\.|[^"\\\n])*"|(?:(?<=-D)|\b)(model|MODEL)(?=_|\.[ch]\b)'
    )

    def replaced(found: re.Match[str]) -> str:
        return {"model": name, "MODEL": name.upper()}.get(found[1], found[0])  # otherwise a string

    return words.sub(replaced, text)


def write_sources(sources: Mapping[str, str], folder: str | Path) -> list[Path]:
    """Write files by name, each atomically."""
    folder = Path(folder)
    free = folder.is_dir() or not folder.exists()
    advice = "name another one"
    _checks.require(free, "folder", str(folder), "no file", advice, FileExistsError)
    for name in sources:
        path = folder / name
        ours = not path.exists() or (path.is_file() and MARKER.encode() in _head(path))
        _checks.require(
            ours, name, str(path), "absent, or a file that anharmonic wrote",
            "name another folder, or move your file", FileExistsError,
        )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in sources.items():
        write_atomically(folder / name, text.rstrip("\n") + "\n")
    return [folder / name for name in sources]


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(2000)


def literal(value: float, kind: str = "double") -> str:
    """Return a number as a C constant, exact in double and rounded in float.

    Constants of type "model_real" that float cannot hold are written ``D(value)``, a macro of
    ``runtime/float.h``.

    Example:
        >>> literal(0.1), literal(2), literal(1e30), literal(float("nan"))
        ('0.1', '2.0', '1e+30', 'NAN')
        >>> literal(0.1, "float"), literal(0.5, "model_real"), literal(0.1, "model_real")
        ('0.1f', '0.5f', 'D(0.1)')
    """
    if value != value:
        return "NAN"
    value, limits = float(value), np.finfo(np.float32)
    if kind == "double":
        return repr(value)
    if not (value == 0 or limits.tiny <= abs(value) <= limits.max):
        return f"({kind}){value}"  # with a suffix a compiler warns of underflow or overflow
    single = np.float32(value)
    if kind == "float" or float(single) == value:
        return f"{single!s}f"
    # Halfway between two floats all digits are needed to round as NumPy does.
    is_halfway = math.frexp(value)[0] * 2**24 % 1 == 0.5
    return f"D({Decimal(value) if is_halfway else value})"


def defines(values: Mapping[str, Any], kind: str = "double") -> str:
    """Return constants as ``#define`` lines.

    Example:
        >>> print(defines({"WIDTH": 3, "DT": 0.5}))
        #define WIDTH 3
        #define DT 0.5
    """
    words = {k: str(v) if isinstance(v, int) else literal(v, kind) for k, v in values.items()}
    return "\n".join(f"#define {name} {word}" for name, word in words.items())


def array(kind: str, name: str, values: Any, flash: bool = True) -> str:
    """Return a constant array, in flash memory on targets where that has its own addresses.

    Example:
        >>> print(array("int8_t", "w", np.array([[1, -2]])))
        static const MODEL_FLASH int8_t w[2] = {
            1, -2};
    """
    flat = np.asarray(values).ravel()
    integer = np.issubdtype(flat.dtype, np.integer)
    words = [str(int(v)) if integer else literal(v, kind) for v in flat]
    lines, line = [], "   "
    for word in words:
        if len(line) + len(word) > 96:
            lines.append(line)
            line = "   "
        line += f" {word},"
    lines.append(line.removesuffix(","))
    place = "MODEL_FLASH " if flash else ""
    return f"static const {place}{kind} {name}[{len(words)}] = {{\n" + "\n".join(lines) + "};"


def matrices(kind: str, name: str, weights: Sequence[Any], shifts: Sequence[Any] = ()) -> list[str]:
    """Return the integer matrices of one name over all layers, with a shift per row."""
    found, members = [], []
    for k, weight in enumerate(weights):
        found.append(array(kind, f"{name}_weight_{k}", weight))
        if shifts:
            found.append(array("int8_t", f"{name}_shift_{k}", shifts[k]))
        shift = f"{name}_shift_{k}, " if shifts else ""
        rows, columns = weight.shape
        members.append(f"{{{name}_weight_{k}, {shift}{rows}, {columns}}}")
    return [*found, f"static const matrix {name}[] = {{{', '.join(members)}}};"]


def quoted(text: str) -> str:
    r"""Return a string as a C literal, with octal escapes for bytes beyond ASCII.

    Example:
        >>> quoted('a"b')
        '"a\\"b"'
    """
    codes = (
        f"\\{chr(b)}" if b in b'"\\?' else chr(b) if 32 <= b < 127 else f"\\{b:03o}"
        for b in text.encode()
    )
    return f'"{"".join(codes)}"'


def commented(name: str) -> str:
    r"""Return a name between quotes, as text that cannot end a comment or a line.

    Example:
        >>> commented('a"b\n*/')
        '"a\'b * /"'
    """
    words = " ".join(name.split()).replace('"', "'").replace("\\", "/")
    return '"' + words.replace("*/", "* /").replace("/*", "/ *") + '"'
