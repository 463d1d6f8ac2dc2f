"""Resonators with a linear model of what they do, as C99."""

from __future__ import annotations

from string import Template

import numpy as np

from anharmonic.export.c_float import FLOAT_TYPES
from anharmonic.export.c_text import COMMON, FLASH, array, class_table, head, header_of
from anharmonic.export.resonators import ResonatorPlan

# Of one of the 2 K responses i (positions, then velocities): its part of the state, what a sample
# does to it, and, at the end, its features, of which every one is taken with its weights.
_MEMBERS = {
    "share": "long above[2 * MODEL_OSCILLATORS * MODEL_BIASES];",
    "excess": "model_real excess[2 * MODEL_OSCILLATORS * MODEL_BIASES];",
    "run": "long run[2 * MODEL_OSCILLATORS], longest[2 * MODEL_OSCILLATORS];",
    "position": (
        "long count[2 * MODEL_OSCILLATORS];\n    model_real position[2 * MODEL_OSCILLATORS];"
    ),
    "largest": "model_real largest[2 * MODEL_OSCILLATORS];",
    "rms": "model_real square[2 * MODEL_OSCILLATORS];",
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
        s->position[i] += (model_real)s->steps;
    }
""",
    "largest": """\
    if (s->steps == 0 || now > s->largest[i])
        s->largest[i] = now;
""",
    "rms": "    s->square[i] += now * now;\n",
}
_FEATURES = {
    "share": """\
    for (i = 0; i < 2 * MODEL_OSCILLATORS * MODEL_BIASES; i++)
        w = take(s->above[i] / n, w, outputs);
""",
    "excess": """\
    for (i = 0; i < 2 * MODEL_OSCILLATORS * MODEL_BIASES; i++)
        w = take(s->excess[i] / n, w, outputs);
""",
    "run": """\
    for (i = 0; i < 2 * MODEL_OSCILLATORS; i++)
        w = take(s->longest[i] / n, w, outputs);
""",
    "position": """\
    for (i = 0; i < 2 * MODEL_OSCILLATORS; i++)
        if (i % MODEL_OSCILLATORS % 2 == 0)
            w = take(s->count[i] ? s->position[i] / (s->count[i] * n) : -1, w, outputs);
""",
    "largest": """\
    for (i = 0; i < 2 * MODEL_OSCILLATORS; i++)
        w = take(s->largest[i], w, outputs);
""",
    "rms": """\
    for (i = 0; i < 2 * MODEL_OSCILLATORS; i++)
        w = take(MODEL_SQRT(s->square[i] / n), w, outputs);
""",
    "end": """\
    for (i = 0; i < 2; i++) {
        int j;
        for (j = 0; j < $slow; j++)
            w = take(s->response[i * MODEL_OSCILLATORS + slow[j]], w, outputs);
    }
""",
}

_CODE = Template("""\
/* One sample of response i. */
static void pool(model_state *s, int i, model_real now)
{
$declared$pool}

static const MODEL_FLASH model_real *take(model_real value, const MODEL_FLASH model_real *w,
                                          model_real *outputs)
{
    int o;
    for (o = 0; o < MODEL_OUTPUTS; o++)
        outputs[o] += value * *w++;
    return w;
}

void model_start(model_state *s)
{
    static const model_state zero;
    *s = zero;
}

void model_step(model_state *s, const model_real x[MODEL_CHANNELS])
{
    model_real read[2 * MODEL_CHANNELS];
    int i, j = 0;
$running    for (i = 0; i < MODEL_CHANNELS; i++) {
$scale        read[MODEL_CHANNELS + i] = s->steps ? read[i] - s->before[i] : 0;
        s->before[i] = read[i];
    }
    for (i = 0; i < MODEL_OSCILLATORS; i++) {
        model_real y = s->response[i], z = s->response[MODEL_OSCILLATORS + i], u = 0, e;
        for (; j < reads_end[i]; j++)
            u += reads[j] < 0 ? -read[-reads[j] - 1] : read[reads[j]];
        e = u - y;
        y += step_a[i] * e + step_b[i] * z;
        z += step_b[i] * e - step_c[i] * z;
        s->response[i] = y;
        s->response[MODEL_OSCILLATORS + i] = z;
        pool(s, i, y);
        pool(s, MODEL_OSCILLATORS + i, z);
    }
    s->steps++;
}

void model_output(const model_state *s, model_real outputs[MODEL_OUTPUTS])
{
    const MODEL_FLASH model_real *w = readout;
$number    int i;
    for (i = 0; i < MODEL_OUTPUTS; i++)
        outputs[i] = readout_bias[i];
$features}
""")

_SCALE = "        read[i] = (x[i] - mean[i]$rest) * scale[i];\n"
_RUNNING = """\
        model_real before = x[i] - s->mean[i], size = s->mean[i], deviation;
        s->mean[i] += before / (model_real)(s->steps + 1);
        s->square_sum[i] += before * (x[i] - s->mean[i]);
        size = s->mean[i] < 0 ? -s->mean[i] : s->mean[i];
        deviation = MODEL_SQRT(s->square_sum[i] / (model_real)(s->steps + 1));
        if (!(deviation > R(1e-8) * (size > 1 ? size : 1)))
            deviation = 1;
        read[i] = (x[i] - s->mean[i]) / deviation;
"""

_SQRT = """\
#include <math.h>
#ifdef MODEL_DOUBLE
#define MODEL_SQRT sqrt
#else
#define MODEL_SQRT sqrtf
#endif
"""


def resonator_sources(plan: ResonatorPlan) -> dict[str, str]:
    """``model.h`` and ``model.c``.

    Args:
        plan: The model.
    """
    bank, pools, running = plan.bank, plan.pools, plan.constants is None
    K, biases = len(bank.frequency), bank.biases.numpy()
    _, B, _ = biases.shape
    state = [
        "long steps;",
        "model_real before[MODEL_CHANNELS];",
        "model_real response[2 * MODEL_OSCILLATORS];",
        *(_MEMBERS[name] for name in pools if name in _MEMBERS),
    ]
    if running:
        state += ["model_real mean[MODEL_CHANNELS], square_sum[MODEL_CHANNELS];"]
    notes = " *\n * It begins anew with each series: what it pools is of all samples so far.\n"
    header = header_of(
        plan,
        notes=notes,
        types=f"{FLOAT_TYPES}\n#define MODEL_OSCILLATORS {K}\n#define MODEL_BIASES {B}\n",
        state=state,
        sample="model_real",
        value="model_real",
    )
    levels = any(name in pools for name in ("share", "excess", "run", "position"))
    counted = any(name in pools for name in ("share", "excess"))
    averaged = any(name in pools for name in ("share", "excess", "run", "position", "rms"))
    arrays, scale = _scaling(plan)
    reads, ends = plan.reads
    arrays += [array("short", "reads", reads), array("short", "reads_end", ends)]
    for name, values in zip("abc", plan.coefficients, strict=True):
        arrays.append(array("model_real", f"step_{name}", values))
    if levels:
        arrays.append(array("model_real", "level", biases.transpose(0, 2, 1)))
    if "end" in pools and len(bank.slow):
        arrays.append(array("short", "slow", bank.slow.numpy()))
    arrays.append(array("model_real", "readout", plan.weights_in_order.T))
    arrays.append(array("model_real", "readout_bias", plan.bias))
    features = [
        Template(_FEATURES[name]).substitute(slow=len(bank.slow))
        for name in pools
        if name != "end" or len(bank.slow)
    ]
    pooled = [_POOL[name] for name in pools if name in _POOL]
    code = _CODE.substitute(
        declared="    int b;\n" if counted else "",
        pool="".join(pooled) or "    (void)s;\n    (void)i;\n    (void)now;\n",
        running="",
        scale=scale,
        number="    model_real n = (model_real)(s->steps ? s->steps : 1);\n" if averaged else "",
        features="".join(features),
    )
    _, defined = class_table(plan.class_names)
    parts = [
        head(plan),
        '#include "model.h"\n\n#define R(x) ((model_real)(x))\n',
        FLASH,
        defined,
        _SQRT if running or "rms" in pools else "",
        *arrays,
        "",
        code,
        COMMON.substitute(sample="model_real", value="model_real"),
    ]
    return {"model.h": header, "model.c": "\n".join(part for part in parts if part)}


def _scaling(plan: ResonatorPlan) -> tuple[list[str], str]:
    """Arrays of the scaling, and what it does to channel i."""
    if plan.constants is None:
        return [], _RUNNING
    mean, deviation = plan.constants
    high = mean.astype(np.float32).astype(np.float64)
    arrays = [array("model_real", "mean", high), array("model_real", "scale", 1 / deviation)]
    rest = ""
    # What float cannot hold of a mean counts where a channel varies little around it.
    if np.any(np.abs(mean - high) / deviation > 1e-7):
        arrays.append(array("model_real", "mean_rest", mean - high))
        rest = " - mean_rest[i]"
    return arrays, Template(_SCALE).substitute(rest=rest)
