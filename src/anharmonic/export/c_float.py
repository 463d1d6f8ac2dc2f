"""A model as C99 with floating-point weights."""

from __future__ import annotations

from string import Template

import numpy as np

from anharmonic.export.c_cells import CELLS
from anharmonic.export.c_frame import output, prepare, state_of_readout, steps
from anharmonic.export.c_text import (
    COMMON,
    FLASH,
    array,
    class_table,
    head,
    header_of,
    literal,
)
from anharmonic.export.plan import Array, LayerPlan, Plan

# Entries of the table of tanh, between 0 and the end of its argument.
TABLE, TABLE_END = 256, 8.0

FLOAT_TYPES = """\
/* Compile model.c and what includes this file with -DMODEL_DOUBLE for double precision. */
#ifdef MODEL_DOUBLE
typedef double model_real;
#else
typedef float model_real;
#endif
"""

_MATH = """\
#include <math.h>
#ifdef MODEL_DOUBLE
#define MODEL_TANH tanh
#define MODEL_EXP exp
#else
#define MODEL_TANH tanhf
#define MODEL_EXP expf
#endif

static model_real sigmoid(model_real x)
{
    return 1 / (1 + MODEL_EXP(-x));
}
"""

_TABLE = Template("""\
$table

/* tanh by a table over [0, $end], with straight lines in between. */
static model_real MODEL_TANH(model_real x)
{
    model_real size = x < 0 ? -x : x, at = size * R($per_one), y;
    int i;
    if (!(size < R($end)))
        return x > 0 ? R(1) : x < 0 ? R(-1) : x;
    i = (int)at;
    y = tanh_table[i] + (at - (model_real)i) * (tanh_table[i + 1] - tanh_table[i]);
    return x < 0 ? -y : y;
}

static model_real sigmoid(model_real x)
{
    return R(0.5) + R(0.5) * MODEL_TANH(R(0.5) * x);
}
""")

_PRODUCT = """\
typedef struct {
    const MODEL_FLASH model_real *weight;
    int rows, columns;
} matrix;

/* result += m x */
static void add(const matrix *m, const model_real *x, model_real *result)
{
    const MODEL_FLASH model_real *w = m->weight;
    int i, j;
    for (i = 0; i < m->rows; i++) {
        model_real sum = 0;
        for (j = 0; j < m->columns; j++)
            sum += *w++ * x[j];
        result[i] += sum;
    }
}

static void set(model_real *result, const MODEL_FLASH model_real *x, int count)
{
    int i;
    for (i = 0; i < count; i++)
        result[i] = x[i];
}
"""


def float_sources(plan: Plan, lut: bool = False) -> dict[str, str]:
    """``model.h`` and ``model.c``.

    Args:
        plan: The model.
        lut: Whether tanh and the sigmoid come from a table of 256 entries, without ``math.h``.
    """
    _, defined = class_table(plan.class_names)
    p, notes = plan.preparation, ""
    if p.missing != "error":
        notes += " *\n * A missing value is NaN.\n"
    if p.window:
        notes += f" *\n * It learnt from windows of {p.window} samples: start again for each.\n"
    header = header_of(
        plan,
        notes=notes,
        types=FLOAT_TYPES,
        state=_state(plan),
        sample="model_real",
        value="model_real",
    )
    functions = _table() if lut else _MATH
    if all(
        layer.kind in ("CoRNN", "UnICORNN", "LEM-one-scale", "ResonatorBank")
        for layer in plan.layers
    ):
        functions = functions[: functions.index("static model_real sigmoid")].rstrip() + "\n"
    parts = [
        head(plan),
        '#include "model.h"\n\n#define R(x) ((model_real)(x))\n',
        FLASH,
        defined,
        functions,
        _PRODUCT,
        *(_layer(layer, k) for k, layer in enumerate(plan.layers)),
        _matrix("readout", plan.weight),
        array("model_real", "readout_bias", plan.bias),
        prepare(plan),
        steps(plan),
        output(plan),
        COMMON.substitute(sample="model_real", value="model_real"),
    ]
    return {"model.h": header, "model.c": "\n".join(part for part in parts if part)}


def _table() -> str:
    step = TABLE_END / TABLE
    values = np.tanh(np.arange(TABLE + 1) * step)
    return _TABLE.substitute(
        table=array("model_real", "tanh_table", values),
        end=literal(TABLE_END),
        per_one=literal(1 / step),
    )


def _matrix(name: str, weight: Array) -> str:
    rows, columns = weight.shape
    return (
        array("model_real", f"{name}_weight", weight)
        + f"\nstatic const matrix {name} = {{{name}_weight, {rows}, {columns}}};"
    )


def below(level: int) -> str:
    """Where the output of a level stands: 0 is the prepared input."""
    return "x" if level == 0 else f"state->output_{level - 1}"


def _state(plan: Plan) -> list[str]:
    """The fields of the state."""
    lines = []
    for k, layer in enumerate(plan.layers):
        others = CELLS[layer.kind].variables[1:]
        names = [f"output_{k}", *(f"{name}_{k}" for name in others)]
        lines += [f"model_real {name}[{layer.width}];" for name in names]
    return lines + state_of_readout(plan, "model_real", "model_real")


def _layer(layer: LayerPlan, k: int) -> str:
    cell, H, n = CELLS[layer.kind], layer.width, layer.numbers
    parts = [_matrix(f"{name}_{k}", weight) for name, weight in layer.matrices.items()]
    parts += [array("model_real", f"{name}_{k}", v) for name, v in layer.vectors.items()]
    values = {name: literal(v) for name, v in n.items() if isinstance(v, int | float)}
    skip = "" if layer.skip is None else f"    add(&skip_{k}, {below(layer.skip)}, A);\n"
    if layer.kind == "LEM":
        gate = f"R({literal(n['dt'])}) * sigmoid(a)"
        lines = [f"    model_real g = {gate};"]
        if n["floor"] is not None:
            low = literal(n["floor"])
            lines.append(f"    g = g < R({low}) ? R({low}) : g > 1 ? 1 : g;")
        body = "\n".join([*lines, "    return g;"])
        parts.append(f"\nstatic model_real gate_{k}(model_real a)\n{{\n{body}\n}}")
    new_z = ""
    if layer.kind == "CoRNN":
        force = "MODEL_TANH(A[i]) - R($frequency) * y[i]"
        one = f"z[i] + R($dt) * ({force} - R($damping) * z[i])"
        if n["scheme"] == "implicit":
            one = f"(z[i] + R($dt) * ({force})) / (1 + R($dt) * R($damping))"
        new_z = Template(one).substitute(values)
    body = cell.body.substitute(values, k=k, H=H, skip=skip, new_z=new_z)
    first, *others = cell.variables
    pointers = [f"*{first} = state->output_{k}", *(f"*{v} = state->{v}_{k}" for v in others)]
    parts.append(
        f"\n/* {layer.kind} */\n"
        f"static void layer_{k}(model_state *state, const model_real *x)\n{{\n"
        f"    const model_real *u = {below(k)};\n"
        f"    model_real {', '.join(pointers)};\n"
        f"    model_real A[{cell.affine * H}]{''.join(f', {m}[{H}]' for m in cell.more)};\n"
        f"    int i;\n" + ("    (void)x;\n" if k > 0 and layer.skip != 0 else "") + f"{body}}}\n"
    )
    return "\n".join(parts)
