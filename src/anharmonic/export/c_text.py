"""Pieces of C: arrays, matrices, and the frame of every exported program."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anharmonic import __version__


def literal(value: float) -> str:
    """A number as C reads it: the nearest double, and so every float, to the last bit.

    Example:
        >>> literal(0.1), literal(2), literal(1e30)
        ('0.1', '2.0', '1e+30')
    """
    return repr(float(value))


def array(kind: str, name: str, values: NDArray[Any]) -> str:
    """A constant array.

    Example:
        >>> print(array("int8_t", "w", np.array([[1, -2]])))
        static const MODEL_FLASH int8_t w[2] = {
            1, -2};
    """
    flat = values.ravel()
    integer = np.issubdtype(flat.dtype, np.integer)
    words = [str(int(v)) if integer else literal(v) for v in flat]
    lines, line = [], "   "
    for word in words:
        if len(line) + len(word) > 96:
            lines.append(line)
            line = "   "
        line += f" {word},"
    lines.append(line.removesuffix(","))
    return f"static const MODEL_FLASH {kind} {name}[{len(words)}] = {{\n" + "\n".join(lines) + "};"


def quoted(text: str) -> str:
    r"""A string as C reads it: bytes beyond ASCII as octal numbers.

    Example:
        >>> quoted('a"b')
        '"a\\"b"'
    """
    safe = [
        chr(b)
        if 32 <= b < 127 and b not in b'"\\?'
        else f"\\{chr(b)}"
        if b in b'"\\?'
        else f"\\{b:03o}"
        for b in text.encode()
    ]
    return '"' + "".join(safe) + '"'


def commented(text: str) -> str:
    """Text that cannot end a comment.

    Example:
        >>> commented("a */ b")
        'a * / b'
    """
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\n", " ")


class Described(Protocol):
    """What the frame of a program says of its model, see ``Plan``."""

    @property
    def description(self) -> str:
        """The model in one line."""

    @property
    def channels(self) -> int:
        """Channels of a sample."""

    @property
    def bias(self) -> NDArray[np.float64]:
        """One number for each output."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, or nothing."""


HEADER = Template("""\
/* $description
 * Written by anharmonic $version. Standard C99; the caller holds all memory.
 *
 *   model_state state;
 *   model_start(&state);
 *   for every sample:  model_step(&state, sample);
 *   at any time:       model_output(&state, outputs);
$notes */
#ifndef MODEL_H
#define MODEL_H

$types
#define MODEL_CHANNELS $channels
#define MODEL_OUTPUTS $outputs
#define MODEL_CLASSES $classes /* 0: the outputs are values */

typedef struct {
$state
} model_state;

$names/* Begins a sequence. */
void model_start(model_state *state);

/* Takes one sample. */
void model_step(model_state *state, const $sample x[MODEL_CHANNELS]);

/* The outputs for the samples so far, at least one: a score for each class, or values. */
void model_output(const model_state *state, $value outputs[MODEL_OUTPUTS]);

/* The number of the largest output: the likeliest class. */
int model_largest(const $value outputs[MODEL_OUTPUTS]);

/* A whole sequence, samples one after another: start, all steps, output. */
void model_sequence(const $sample *x, long steps, $value outputs[MODEL_OUTPUTS]);
$extra
#endif
""")

COMMON = Template("""\
int model_largest(const $value outputs[MODEL_OUTPUTS])
{
    int i, best = 0;
    for (i = 1; i < MODEL_OUTPUTS; i++)
        if (outputs[i] > outputs[best])
            best = i;
    return best;
}

void model_sequence(const $sample *x, long steps, $value outputs[MODEL_OUTPUTS])
{
    model_state state;
    model_start(&state);
    while (steps-- > 0) {
        model_step(&state, x);
        x += MODEL_CHANNELS;
    }
    model_output(&state, outputs);
}
""")


FLASH = """\
/* Constants stay in flash memory where it has addresses of its own (AVR, with -std=gnu99). */
#if defined(__AVR__) && !defined(__STRICT_ANSI__)
#define MODEL_FLASH __flash
#else
#define MODEL_FLASH
#endif
"""


def header_of(
    plan: Described,
    *,
    notes: str,
    types: str,
    state: Sequence[str],
    sample: str,
    value: str,
    extra: str = "",
) -> str:
    """``model.h``.

    Args:
        plan: The model.
        notes: What else its comment says.
        types: What it includes and defines first.
        state: The members of its state, a line each.
        sample: The type of a sample.
        value: The type of an output.
        extra: What it declares besides.
    """
    return HEADER.substitute(
        description=commented(plan.description),
        version=__version__,
        notes=notes,
        types=types,
        channels=plan.channels,
        outputs=len(plan.bias),
        classes=len(plan.class_names),
        state="\n".join(f"    {line}" for line in state),
        names=class_table(plan.class_names)[0],
        sample=sample,
        value=value,
        extra=extra,
    )


def class_table(names: tuple[str, ...]) -> tuple[str, str]:
    """The declaration for the header and the definition of the classes' names."""
    if not names:
        return "", ""
    declared = "extern const char *const model_classes[MODEL_CLASSES];\n\n"
    words = ",\n    ".join(quoted(name) for name in names)
    return declared, f"const char *const model_classes[MODEL_CLASSES] = {{\n    {words}}};\n"


def head(plan: Described) -> str:
    """The first line of every file."""
    return f"/* {commented(plan.description)}. Written by anharmonic {__version__}. */"
