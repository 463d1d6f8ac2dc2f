"""Resonators with a linear model of what they do, as C99 in whole numbers."""

from __future__ import annotations

from string import Template

import numpy as np

from anharmonic.export.c_fixed_text import EXTRA, SHIFTS, TYPES, conversions
from anharmonic.export.c_text import COMMON, FLASH, array, class_table, head, header_of
from anharmonic.export.fixed import HIDDEN, MOST
from anharmonic.export.fixed_resonators import FINE, ONE, FixedResonators

# As in ``c_resonators``: of one of the 2 K responses i its part of the state, what a sample does
# to it, and its features.
_MEMBERS = {
    "share": "int32_t above[2 * MODEL_OSCILLATORS * MODEL_BIASES];",
    "excess": "int64_t excess[2 * MODEL_OSCILLATORS * MODEL_BIASES];",
    "run": "int32_t run[2 * MODEL_OSCILLATORS], longest[2 * MODEL_OSCILLATORS];",
    "position": (
        "int32_t count[2 * MODEL_OSCILLATORS];\n    int64_t position[2 * MODEL_OSCILLATORS];"
    ),
    "largest": "int16_t largest[2 * MODEL_OSCILLATORS];",
    "rms": "int64_t square[2 * MODEL_OSCILLATORS];",
}
_POOL = {
    "share": """\
    for (b = 0; b < MODEL_BIASES; b++)
        s->above[i * MODEL_BIASES + b] += now > level[i * MODEL_BIASES + b];
""",
    "excess": """\
    for (b = 0; b < MODEL_BIASES; b++)
        if (now > level[i * MODEL_BIASES + b])
            s->excess[i * MODEL_BIASES + b] += now - level[i * MODEL_BIASES + b];
""",
    "run": """\
    s->run[i] = now > level[i * MODEL_BIASES] ? s->run[i] + 1 : 0;
    if (s->run[i] > s->longest[i])
        s->longest[i] = s->run[i];
""",
    "position": """\
    if (now > level[i * MODEL_BIASES]) {
        s->count[i]++;
        s->position[i] += s->steps;
    }
""",
    "largest": """\
    if (s->steps == 0 || now > s->largest[i])
        s->largest[i] = (int16_t)now;
""",
    "rms": "    s->square[i] += now * now;\n",
}
_FEATURES = {
    "share": """\
    for (i = 0; i < 2 * MODEL_OSCILLATORS * MODEL_BIASES; i++)
        d = take((int32_t)(s->above[i] * ONE / n), d, sums);
""",
    "excess": """\
    for (i = 0; i < 2 * MODEL_OSCILLATORS * MODEL_BIASES; i++)
        d = take((int32_t)(s->excess[i] * FINE / n), d, sums);
""",
    "run": """\
    for (i = 0; i < 2 * MODEL_OSCILLATORS; i++)
        d = take((int32_t)(s->longest[i] * ONE / n), d, sums);
""",
    "position": """\
    for (i = 0; i < 2 * MODEL_OSCILLATORS; i++)
        if (i % MODEL_OSCILLATORS % 2 == 0)
            d = take(s->count[i] ? (int32_t)(s->position[i] * ONE / (s->count[i] * n))
                                 : (int32_t)-ONE, d, sums);
""",
    "largest": """\
    for (i = 0; i < 2 * MODEL_OSCILLATORS; i++)
        d = take((int32_t)(s->largest[i] * FINE), d, sums);
""",
    "rms": """\
    for (i = 0; i < 2 * MODEL_OSCILLATORS; i++)
        d = take(root(s->square[i] * (FINE * FINE) / n), d, sums);
""",
    "end": """\
    for (i = 0; i < 2; i++) {
        int j;
        for (j = 0; j < $slow; j++)
            d = take(shifted(s->response[i * MODEL_OSCILLATORS + slow[j]], $end), d, sums);
    }
""",
}
_ROOT = f"""\
/* The whole part of a square root below 2^20. */
static int32_t root(int64_t v)
{{
    int32_t found = 0, bit;
    for (bit = {1 << ONE}; bit; bit >>= 1)
        if ((int64_t)(found + bit) * (found + bit) <= v)
            found += bit;
    return found;
}}
"""

_CODE = Template("""\
#define ONE ((int64_t)$one) /* what a share of 1 is */
#define FINE ((int64_t)$fine) /* what one of a response is in features */

static int32_t clipped(int32_t v)
{
    return v > $most ? $most : v < -$most ? -$most : v;
}

/* One sample of response i. */
static void pool(model_state *s, int i, int32_t now)
{
$declared$pool}

/* Adds feature d with its weights. */
static int take(int32_t value, int d, int32_t *sums)
{
    const MODEL_FLASH int${bits}_t *w = readout_weight + (long)d * MODEL_OUTPUTS;
    int o;
    value = clipped(shifted(value - centre[d] * (int32_t)FINE, feature_shift[d]));
    for (o = 0; o < MODEL_OUTPUTS; o++)
        sums[o] += *w++ * value;
    return d + 1;
}

void model_start(model_state *s)
{
    static const model_state zero;
    *s = zero;
}

void model_step(model_state *s, const int16_t x[MODEL_CHANNELS])
{
    int32_t read[2 * MODEL_CHANNELS];
    int i, j = 0;
    for (i = 0; i < MODEL_CHANNELS; i++) {
        read[i] = x[i];
        read[MODEL_CHANNELS + i] = s->steps ? read[i] - s->before[i] : 0;
        s->before[i] = x[i];
    }
    for (i = 0; i < MODEL_OSCILLATORS; i++) {
        int32_t y = s->response[i], z = s->response[MODEL_OSCILLATORS + i], u = 0, e;
        int32_t fast = upper(z);
        for (; j < reads_end[i]; j++)
            u += reads[j] < 0 ? -read[-reads[j] - 1] : read[reads[j]];
        e = clipped(shifted(u, e_from_u[i]) - shifted(y, e_from_y[i]));
        y = limited(y + shifted(step_a[i] * e, y_from_e[i])
                    + shifted(step_b[i] * fast, y_from_z[i]));
        z = limited(z + shifted(step_b[i] * e, z_from_e[i])
                    - shifted(step_c[i] * fast, z_from_z[i]));
        s->response[i] = y;
        s->response[MODEL_OSCILLATORS + i] = z;
        pool(s, i, upper(y));
        pool(s, MODEL_OSCILLATORS + i, upper(z));
    }
    s->steps++;
}

void model_output(const model_state *s, int32_t outputs[MODEL_OUTPUTS])
{
    int32_t sums[MODEL_OUTPUTS];
$number    int i, d = 0;
    for (i = 0; i < MODEL_OUTPUTS; i++)
        sums[i] = 0;
$features    for (i = 0; i < MODEL_OUTPUTS; i++)
        outputs[i] = readout_bias[i] * ((int32_t)1 << $bias) + shifted(sums[i], readout_shift[i]);
}
""")


def fixed_resonator_sources(model: FixedResonators) -> dict[str, str]:
    """``model.h`` and ``model.c``.

    Args:
        model: The model in whole numbers.
    """
    plan, pools = model.plan, model.plan.pools
    K, B, slow = len(plan.bank.frequency), model.level.shape[1], plan.bank.slow.numpy()
    header = header_of(
        plan,
        notes=" *\n * It begins anew with each series: what it pools is of all samples so far.\n"
        f" * Whole numbers, weights of {model.bits} bits; see model_quantise for samples.\n",
        types=f"{TYPES}\n#define MODEL_OSCILLATORS {K}\n#define MODEL_BIASES {B}\n",
        state=[
            "int32_t steps;",
            "int16_t before[MODEL_CHANNELS];",
            "int32_t response[2 * MODEL_OSCILLATORS];",
            *(_MEMBERS[name] for name in pools if name in _MEMBERS),
        ],
        sample="int16_t",
        value="int32_t",
        extra=EXTRA,
    )
    reads, ends = plan.reads
    small = "int8_t" if max(np.abs(reads).max(), ends.max()) < 128 else "int16_t"
    arrays = [array(small, "reads", reads), array(small, "reads_end", ends)]
    for name, values in zip("abc", model.factors, strict=True):
        arrays.append(array("int16_t", f"step_{name}", values))
    arrays += [array("int8_t", name, values) for name, values in model.shifts.items()]
    if any(name in pools for name in ("share", "excess", "run", "position")):
        arrays.append(array("int16_t", "level", model.level))
    if "end" in pools and len(slow):
        arrays.append(array("int16_t", "slow", slow))
    readout = model.readout
    arrays += [
        array("int16_t", "centre", model.centre),
        array("int8_t", "feature_shift", model.feature_shift),
        array(f"int{model.bits}_t", "readout_weight", readout.weight.T),
        array("int8_t", "readout_shift", readout.shift),
        array("int16_t", "readout_bias", model.readout_bias >> model.readout_bias_shift),
    ]
    made = [name for name in pools if name != "end" or len(slow)]
    divided = any(name not in ("largest", "end") for name in made)
    code = _CODE.substitute(
        one=1 << ONE,
        fine=1 << FINE,
        most=MOST,
        bits=model.bits,
        bias=model.readout_bias_shift,
        declared="    int b;\n" if "share" in pools or "excess" in pools else "",
        pool="".join(_POOL[name] for name in pools if name in _POOL)
        or "    (void)s;\n    (void)i;\n    (void)now;\n",
        number="    int64_t n = s->steps ? s->steps : 1;\n" if divided else "",
        features="".join(
            Template(_FEATURES[name]).substitute(slow=len(slow), end=HIDDEN - FINE) for name in made
        ),
    )
    _, defined = class_table(plan.class_names)
    outputs = len(plan.bias)
    parts = [
        head(plan),
        '#include "model.h"\n',
        FLASH,
        defined,
        SHIFTS,
        _ROOT if "rms" in pools else "",
        *arrays,
        "",
        code,
        COMMON.substitute(sample="int16_t", value="int32_t"),
        conversions(model.offset, model.gain, np.zeros(outputs), np.ones(outputs)),
    ]
    return {"model.h": header, "model.c": "\n".join(part for part in parts if part)}
