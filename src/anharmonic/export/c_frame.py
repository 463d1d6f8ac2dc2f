"""What is around the layers in floating point: preparation, patches, readout."""

from __future__ import annotations

import numpy as np

from anharmonic.export.c_text import array
from anharmonic.export.plan import Plan


def state_of_readout(plan: Plan, real: str, total: str) -> list[str]:
    """The fields that preparation, patches and the mean need."""
    p, lines = plan.preparation, []
    if p.missing == "forward":
        lines.append(f"{real} known[{plan.channels}]; /* the last known values */")
    if p.difference:
        lines.append(f"{real} before[{plan.channels}];")
        lines.append("int is_first;")
    if plan.patch > 1:
        lines.append(f"{real} patch[{plan.patch * p.size}];")
        lines.append("int filled;")
    if plan.readout == "mean":
        lines.append(f"{total} sum[{plan.layers[-1].width}];")
        lines.append("long count;")
    return lines


def _has_rest(plan: Plan) -> bool:
    """Whether what float cannot hold of a mean counts: a channel varies little around it."""
    p, mean = plan.preparation, np.array(plan.preparation.mean)
    lost = np.abs(mean - mean.astype(np.float32)) / np.array(p.std)
    return p.standardise and bool(np.any(lost > 1e-7))


def prepare(plan: Plan) -> str:
    """From a sample to what the first layer reads."""
    p, C = plan.preparation, plan.channels
    mean = np.array(p.mean)
    high = mean.astype(np.float32).astype(np.float64)
    scale = 1 / np.array(p.std) if p.standardise else np.ones(C)
    arrays, lines, sizes = [], [], C
    known = "x[i]"
    uses_mean = p.standardise or p.missing != "error"
    if uses_mean:
        arrays.append(array("model_real", "mean", high))
    if p.standardise:
        if _has_rest(plan):
            arrays.append(array("model_real", "mean_rest", mean - high))
        arrays.append(array("model_real", "scale", scale))
    if p.missing == "forward":
        lines += [
            "        if (x[i] == x[i])",
            "            state->known[i] = x[i];",
        ]
        known = "state->known[i]"
    middle = "0" if p.standardise else "mean[i]"
    scaled = known
    if p.standardise:
        scaled = f"({known} - mean[i]{' - mean_rest[i]' if _has_rest(plan) else ''}) * scale[i]"
    if p.missing != "error":
        scaled = f"{known} == {known} ? {scaled} : {middle}"
    lines.append(f"        result[i] = {scaled};")
    body = ["    int i;", f"    for (i = 0; i < {C}; i++) {{", *lines, "    }"]
    for place, channel in enumerate(p.masked):
        body.append(f"    result[{sizes + place}] = x[{channel}] == x[{channel}] ? 0 : 1;")
    sizes += len(p.masked)
    if p.difference:
        arrays.append(array("model_real", "change_scale", 1 / np.array(p.difference)))
        body += [
            f"    for (i = 0; i < {C}; i++) {{",
            f"        result[{sizes} + i] = state->is_first ? 0"
            " : (result[i] - state->before[i]) * change_scale[i];",
            "        state->before[i] = result[i];",
            "    }",
            "    state->is_first = 0;",
        ]
    unused = "" if p.difference or p.missing == "forward" else "    (void)state;\n"
    text = "\n".join(body).replace("    int i;", f"    int i;\n{unused}".rstrip("\n"), 1)
    return (
        "\n".join(arrays)
        + "\n\nstatic void prepare("
        + "model_state *state, const model_real *x, model_real *result)\n{\n"
        + text
        + "\n}\n"
    )


def steps(plan: Plan) -> str:
    """Beginning, one step of all layers, and taking a sample."""
    p, patch = plan.preparation, plan.patch
    last, H = len(plan.layers) - 1, plan.layers[-1].width
    start = "    static const model_state zero;\n    *state = zero;\n"
    if p.missing == "forward":
        start += (
            "    {\n        int i;\n"
            f"        for (i = 0; i < {plan.channels}; i++)\n"
            "            state->known[i] = mean[i]"
            + (" + mean_rest[i]" if _has_rest(plan) else "")
            + ";\n    }\n"
        )
    if p.difference:
        start += "    state->is_first = 1;\n"
    run = [f"    layer_{k}(state, x);" for k in range(last + 1)]
    if plan.readout == "mean":
        run += [
            "    {",
            "        int i;",
            f"        for (i = 0; i < {H}; i++)",
            f"            state->sum[i] += state->output_{last}[i];",
            "    }",
            "    state->count++;",
        ]
    size = p.size
    if patch == 1:
        step = (
            f"    model_real prepared[{size}];\n"
            "    prepare(state, x, prepared);\n"
            "    run(state, prepared);\n"
        )
    else:
        step = (
            f"    prepare(state, x, state->patch + state->filled * {size});\n"
            f"    if (++state->filled == {patch}) {{\n"
            "        run(state, state->patch);\n"
            "        state->filled = 0;\n"
            "    }\n"
        )
    return (
        f"void model_start(model_state *state)\n{{\n{start}}}\n\n"
        "/* One step of all layers. */\n"
        "static void run(model_state *state, const model_real *x)\n{\n" + "\n".join(run) + "\n}\n\n"
        "void model_step(model_state *state, const model_real x[MODEL_CHANNELS])\n{\n"
        + step
        + "}\n"
    )


def output(plan: Plan) -> str:
    """The readout."""
    last, H = len(plan.layers) - 1, plan.layers[-1].width
    lines = []
    if plan.patch > 1:
        size = plan.preparation.size
        lines += [
            "    model_state rest;",
            "    if (state->filled > 0) { /* a patch that has begun ends with zeros */",
            "        int j;",
            "        rest = *state;",
            f"        for (j = state->filled * {size}; j < {plan.patch * size}; j++)",
            "            rest.patch[j] = 0;",
            "        run(&rest, rest.patch);",
            "        state = &rest;",
            "    }",
        ]
    source = f"state->output_{last}"
    if plan.readout == "mean":
        lines += [
            f"    for (i = 0; i < {H}; i++)",
            "        features[i] = state->sum[i] / (model_real)(state->count ? state->count : 1);",
        ]
        source = "features"
        lines.insert(0, f"    model_real features[{H}];")
    if plan.readout == "mean" or _scaled(plan):
        lines.insert(0, "    int i;")
    lines += [
        f"    set(outputs, readout_bias, {len(plan.bias)});",
        f"    add(&readout, {source}, outputs);",
    ]
    arrays = ""
    if _scaled(plan):
        arrays = array("model_real", "target_shift", plan.shift) + "\n"
        arrays += array("model_real", "target_scale", plan.scale) + "\n\n"
        lines += [
            f"    for (i = 0; i < {len(plan.bias)}; i++)",
            "        outputs[i] = target_shift[i] + target_scale[i] * outputs[i];",
        ]
    return (
        arrays
        + "void model_output(const model_state *state, model_real outputs[MODEL_OUTPUTS])\n{\n"
        + "\n".join(lines)
        + "\n}\n"
    )


def _scaled(plan: Plan) -> bool:
    return bool(np.any(plan.shift != 0) or np.any(plan.scale != 1))
