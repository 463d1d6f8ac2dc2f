"""A model as C99 in whole numbers: no floating point but in the scaling of samples."""

from __future__ import annotations

from string import Template

import numpy as np

from anharmonic.export.c_fixed_cells import FIXED_CELLS, constants
from anharmonic.export.c_fixed_text import EXTRA, SHIFTS, TYPES, conversions
from anharmonic.export.c_frame import state_of_readout
from anharmonic.export.c_text import (
    COMMON,
    FLASH,
    array,
    class_table,
    head,
    header_of,
)
from anharmonic.export.fixed import HIDDEN, MOST, TABLE, FixedMatrix
from anharmonic.export.fixed_cells import FixedLayer
from anharmonic.export.fixed_model import FixedModel

_TANH = Template("""\
$table

/* tanh of x / 2^16, times 2^15 */
static int32_t tanh16(int32_t x)
{
    int32_t size = x < 0 ? -x : x, rest = size & 2047, y = $most;
    if (size < 524288) {
        int i = (int)(size >> 11);
        int32_t low = tanh_table[i];
        y = low + (((tanh_table[i + 1] - low) * rest + 1024) >> 11);
    }
    return x < 0 ? -y : y;
}
""")

_SIGMOID = """\
static int32_t sigmoid16(int32_t x)
{
    return (32768 + tanh16(x >> 1)) >> 1;
}
"""

_PRODUCT = Template("""\
typedef struct {
    const MODEL_FLASH int${bits}_t *weight;
    const MODEL_FLASH int8_t *shift; /* of each row */
    int rows, columns;
} matrix;

/* result += m x; the weights are such that no sum overflows */
static void add(const matrix *m, const int16_t *x, int32_t *result)
{
    const MODEL_FLASH int${bits}_t *w = m->weight;
    int i, j;
    for (i = 0; i < m->rows; i++) {
        int32_t sum = 0;
        for (j = 0; j < m->columns; j++)
            sum += (int32_t)*w++ * x[j];
        result[i] += shifted(sum, m->shift[i]);
    }
}

static void set(int32_t *result, const MODEL_FLASH int16_t *x, int count, int shift)
{
    int i;
    for (i = 0; i < count; i++)
        result[i] = x[i] * ((int32_t)1 << shift);
}
""")


def fixed_sources(model: FixedModel) -> dict[str, str]:
    """``model.h`` and ``model.c``.

    Args:
        model: The model in whole numbers.
    """
    plan = model.plan
    _, defined = class_table(plan.class_names)
    notes = f" *\n * Whole numbers, weights of {model.bits} bits; see model_quantise for samples.\n"
    header = header_of(
        plan,
        notes=notes,
        types=TYPES,
        state=_state(model),
        sample="int16_t",
        value="int32_t",
        extra=EXTRA,
    )
    table = array("int16_t", "tanh_table", TABLE)
    gated = any(layer.kind not in ("CoRNN", "UnICORNN") for layer in plan.layers)
    parts = [
        head(plan),
        '#include "model.h"\n',
        FLASH,
        defined,
        SHIFTS,
        _TANH.substitute(most=MOST, table=table),
        _SIGMOID if gated else "",
        _PRODUCT.substitute(bits=model.bits),
        *(_layer(layer, k, model.bits) for k, layer in enumerate(model.layers)),
        _matrix("readout", model.readout, model.bits),
        array("int16_t", "readout_bias", model.readout_bias >> model.readout_bias_shift),
        _prepare(model),
        _steps(model),
        _output(model),
        COMMON.substitute(sample="int16_t", value="int32_t"),
        conversions(model.offset, model.gain, plan.shift, plan.scale),
    ]
    return {"model.h": header, "model.c": "\n".join(part for part in parts if part)}


def _matrix(name: str, m: FixedMatrix, bits: int) -> str:
    rows, columns = m.weight.shape
    return "\n".join(
        [
            array(f"int{bits}_t", f"{name}_weight", m.weight),
            array("int8_t", f"{name}_shift", m.shift),
            f"static const matrix {name} = {{{name}_weight, {name}_shift, {rows}, {columns}}};",
        ]
    )


def _below(level: int) -> str:
    return "x" if level == 0 else f"state->output_{level - 1}"


def _state(model: FixedModel) -> list[str]:
    lines = []
    for k, layer in enumerate(model.layers):
        H, kind = layer.layer.width, layer.layer.kind
        lines += [f"int32_t {name}_{k}[{H}];" for name in FIXED_CELLS[kind].variables]
        lines.append(f"int16_t output_{k}[{H}];")
    return lines + state_of_readout(model.plan, "int16_t", "int64_t")


def _layer(layer: FixedLayer, k: int, bits: int) -> str:
    plan, H = layer.layer, layer.layer.width
    cell = FIXED_CELLS[plan.kind]
    parts = [_matrix(f"{name}_{k}", m, bits) for name, m in layer.matrices.items()]
    shifts = layer.bias_shifts
    for name, v in layer.biases.items():
        parts.append(array("int16_t", f"{name}_{k}", v >> shifts[name]))
    for name in ("step", "hh"):
        if name in layer.factors and np.ndim(layer.factors[name].m):
            parts.append(array("int16_t", f"{name}_{k}", layer.factors[name].m))
    if plan.kind == "LEM":
        lines = [f"    int32_t g = shifted({layer.factors['dt'].m} * sigmoid16(a), 15);"]
        if plan.numbers["floor"] is not None:
            low = int(np.rint(plan.numbers["floor"] * 2**HIDDEN))
            lines.append(f"    g = g < {low} ? {low} : g > {2**HIDDEN} ? {2**HIDDEN} : g;")
        body = "\n".join([*lines, "    return g;"])
        parts.append(f"\nstatic int32_t gate_{k}(int32_t a)\n{{\n{body}\n}}")
    skip = "" if plan.skip is None else f"    add(&skip_{k}, {_below(plan.skip)}, A);\n"
    found = constants(layer) | {f"{name}_s": shift for name, shift in shifts.items()}
    once = Template(cell.body.safe_substitute(found, skip=skip, H=H, k=k))
    body = once.substitute(k=k)  # a constant may name the layer
    pointers = ", ".join(f"*{name} = state->{name}_{k}" for name in cell.variables)
    small = f"    int16_t z16[{H}];\n" if "z16" in body else ""
    more = "".join(f", {name}[{H}]" for name in cell.more)
    unused = "    (void)x;\n" if k > 0 and plan.skip != 0 else ""
    parts.append(
        f"\n/* {plan.kind} */\n"
        f"static void layer_{k}(model_state *state, const int16_t *x)\n{{\n"
        f"    const int16_t *u = {_below(k)};\n"
        f"    int16_t *output = state->output_{k};\n{small}"
        f"    int32_t {pointers}, A[{cell.affine * H}]{more};\n"
        f"    int i;\n{unused}{body}}}\n"
    )
    return "\n".join(parts)


def _prepare(model: FixedModel) -> str:
    p, C = model.plan.preparation, model.plan.channels
    arrays, known, size = [], "x[i]", C
    if p.missing != "error":
        arrays.append(array("int16_t", "middle", model.middle))
    body = ["    int i;", f"    for (i = 0; i < {C}; i++) {{"]
    if p.missing == "forward":
        body += ["        if (x[i] != MODEL_MISSING)", "            state->known[i] = x[i];"]
        known = "state->known[i]"
    elif p.missing != "error":
        known = "x[i] == MODEL_MISSING ? middle[i] : x[i]"
    body += [f"        result[i] = {known};", "    }"]
    for place, channel in enumerate(p.masked):
        body.append(f"    result[{size + place}] = x[{channel}] == MODEL_MISSING ? 16384 : 0;")
    size += len(p.masked)
    if p.difference:
        m, f = np.array(model.changes).T
        arrays += [array("int16_t", "change_factor", m), array("int8_t", "change_shift", f)]
        body += [
            f"    for (i = 0; i < {C}; i++) {{",
            "        int32_t change = (int32_t)result[i] - state->before[i];",
            "        change = shifted(change * change_factor[i], change_shift[i]);",
            f"        change = change > {MOST} ? {MOST} : change < -{MOST} ? -{MOST} : change;",
            f"        result[{size} + i] = state->is_first ? 0 : (int16_t)change;",
            "        state->before[i] = result[i];",
            "    }",
            "    state->is_first = 0;",
        ]
    if not p.difference and p.missing != "forward":
        body.insert(1, "    (void)state;")
    signature = "static void prepare(model_state *state, const int16_t *x, int16_t *result)"
    return "\n".join([*arrays, "", signature, "{", *body, "}", ""])


def _steps(model: FixedModel) -> str:
    plan, size = model.plan, model.plan.preparation.size
    last, H = len(plan.layers) - 1, plan.layers[-1].width
    start = ["    static const model_state zero;", "    *state = zero;"]
    if plan.preparation.missing == "forward":
        start += ["    {", "        int i;", f"        for (i = 0; i < {plan.channels}; i++)"]
        start += ["            state->known[i] = middle[i];", "    }"]
    if plan.preparation.difference:
        start.append("    state->is_first = 1;")
    run = [f"    layer_{k}(state, x);" for k in range(last + 1)]
    if plan.readout == "mean":
        run += ["    {", "        int i;", f"        for (i = 0; i < {H}; i++)"]
        run += [f"            state->sum[i] += state->output_{last}[i];", "    }"]
        run.append("    state->count++;")
    if plan.patch == 1:
        step = [f"    int16_t prepared[{size}];", "    prepare(state, x, prepared);"]
        step.append("    run(state, prepared);")
    else:
        step = [f"    prepare(state, x, state->patch + state->filled * {size});"]
        step += [
            f"    if (++state->filled == {plan.patch}) {{",
            "        run(state, state->patch);",
        ]
        step += ["        state->filled = 0;", "    }"]
    functions = (
        ("void model_start(model_state *state)", start),
        (
            "/* One step of all layers. */\nstatic void run(model_state *state, const int16_t *x)",
            run,
        ),
        ("void model_step(model_state *state, const int16_t x[MODEL_CHANNELS])", step),
    )
    return "\n".join(f"{name}\n{{\n" + "\n".join(body) + "\n}\n" for name, body in functions)


def _output(model: FixedModel) -> str:
    plan, size = model.plan, model.plan.preparation.size
    last, H = len(plan.layers) - 1, plan.layers[-1].width
    declared, lines, source = [], [], f"state->output_{last}"
    if plan.patch > 1:
        declared.append("    model_state rest;")
        lines += [
            "    if (state->filled > 0) { /* a patch that has begun ends with zeros */",
            "        int j;",
            "        rest = *state;",
            f"        for (j = state->filled * {size}; j < {plan.patch * size}; j++)",
            "            rest.patch[j] = 0;",
            "        run(&rest, rest.patch);",
            "        state = &rest;",
            "    }",
        ]
    if plan.readout == "mean":
        declared += [f"    int16_t features[{H}];", "    int i;"]
        lines += [
            f"    for (i = 0; i < {H}; i++)",
            "        features[i] = (int16_t)(state->sum[i] / (state->count ? state->count : 1));",
        ]
        source = "features"
    lines += [
        f"    set(outputs, readout_bias, {len(plan.bias)}, {model.readout_bias_shift});",
        f"    add(&readout, {source}, outputs);",
    ]
    signature = "void model_output(const model_state *state, int32_t outputs[MODEL_OUTPUTS])"
    return "\n".join([signature, "{", *declared, *lines, "}", ""])
