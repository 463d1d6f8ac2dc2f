"""The recurrent layers in C, in whole numbers: the twins of ``fixed_cells``, to the last bit.

``$k`` is the number of the layer, ``$H`` its width; ``$NAME_s`` are shifts and ``$NAME_m`` factors.
"""

from __future__ import annotations

from string import Template

from anharmonic.export.c_cells import Cell
from anharmonic.export.fixed import ARGUMENT, HIDDEN, VALUE
from anharmonic.export.fixed_cells import FixedLayer

_LEM = """\
    set(A, bias_$k, 3 * $H, $bias_s);
    add(&ih_$k, u, A);
    add(&hh_$k, output, A);
    for (i = 0; i < $H; i++) {
        int32_t away = shifted(tanh16(A[2 * $H + i]), $target_z) - upper(z[i]);
        z[i] = limited(z[i] + shifted(gate_$k(A[i]) * away, $spare));
        z16[i] = upper(z[i]);
    }
    set(B, bias_y_$k, $H, $bias_y_s);
    add(&ih_y_$k, u, B);
    add(&zh_$k, z16, B);
    for (i = 0; i < $H; i++) {
        int32_t away = shifted(tanh16(B[i]), $target_y) - output[i];
        y[i] = limited(y[i] + shifted(gate_$k(A[$H + i]) * away, $spare));
        output[i] = upper(y[i]);
    }
"""

_FORCE = """\
        int32_t force = shifted(tanh16($argument), $target) \
$sign shifted((int32_t)$pull_m * output[i], $pull_s);
        force = force > 32767 ? 32767 : force < -32767 ? -32767 : force;
"""

_CORNN = (
    """\
    set(A, bias_$k, $H, $bias_s);
    add(&ih_$k, u, A);
    for (i = 0; i < $H; i++)
        z16[i] = upper(z[i]);
    add(&hy_$k, output, A);
    add(&hz_$k, z16, A);
    for (i = 0; i < $H; i++) {
"""
    + _FORCE
    + """\
        z[i] = limited(z[i] + shifted($step_m * force, $step_s)
                       - shifted((int32_t)$leak_m * z16[i], $leak_s));
        y[i] = limited(y[i] + shifted((int32_t)$dt_m * upper(z[i]), $dt_s));
        output[i] = upper(y[i]);
    }
"""
)

_UNICORNN = (
    """\
    set(A, bias_$k, $H, $bias_s);
    add(&ih_$k, u, A);
$skip    for (i = 0; i < $H; i++) {
"""
    + _FORCE
    + """\
        z[i] = limited(z[i] - shifted(step_$k[i] * force, $step_s));
        y[i] = limited(y[i] + shifted((int32_t)step_$k[i] * upper(z[i]), $move_s));
        output[i] = upper(y[i]);
    }
"""
)

_LSTM = """\
    set(A, bias_$k, 4 * $H, $bias_s);
    add(&ih_$k, u, A);
    add(&hh_$k, output, A);
    for (i = 0; i < $H; i++) {
        int32_t fresh = shifted(sigmoid16(A[i]) * tanh16(A[2 * $H + i]), $fresh);
        int32_t lost = shifted((32768 - sigmoid16(A[$H + i])) * upper(c[i]), 1);
        c[i] = limited(c[i] - lost + fresh);
        output[i] = (int16_t)shifted(sigmoid16(A[3 * $H + i]) * tanh16(shifted(c[i], $inside)), 15);
    }
"""

_GRU = """\
    set(A, bias_$k, 3 * $H, $bias_s);
    add(&ih_$k, u, A);
    add(&hh_$k, output, A);
    set(B, bias_n_$k, $H, $bias_n_s);
    add(&hn_$k, output, B);
    for (i = 0; i < $H; i++) {
        int32_t reset = (int32_t)(((int64_t)sigmoid16(A[i]) * B[i] + 16384) >> 15);
        int32_t away = shifted(tanh16(A[2 * $H + i] + reset), 1) - output[i];
        h[i] = limited(h[i] + shifted((32768 - sigmoid16(A[$H + i])) * away, 1));
    }
    for (i = 0; i < $H; i++)
        output[i] = upper(h[i]);
"""

_FASTGRNN = """\
    for (i = 0; i < $H; i++)
        A[i] = 0;
    add(&ih_$k, u, A);
    add(&hh_$k, output, A);
    for (i = 0; i < $H; i++) {
        int32_t open = 32768 - sigmoid16(A[i] + bias_$k[i] * ((int32_t)1 << $bias_s));
        int32_t share = shifted($zeta_m * open, 15) + $nu_m;
        int32_t fresh = tanh16(A[i] + bias_h_$k[i] * ((int32_t)1 << $bias_h_s));
        h[i] = limited(h[i] - shifted(open * output[i], 1) + shifted(share * fresh, $fresh));
        output[i] = upper(h[i]);
    }
"""

FIXED_CELLS = {
    "LEM": Cell(("y", "z"), 3, Template(_LEM), ("B",)),
    "CoRNN": Cell(("y", "z"), 1, Template(_CORNN)),
    "UnICORNN": Cell(("y", "z"), 1, Template(_UNICORNN)),
    "LSTM": Cell(("c",), 4, Template(_LSTM)),
    "GRU": Cell(("h",), 3, Template(_GRU), ("B",)),
    "FastGRNN": Cell(("h",), 1, Template(_FASTGRNN)),
}
"""``variables`` are those of 32 bits; the output has 16 bits and a place of its own."""


def constants(layer: FixedLayer) -> dict[str, object]:
    """What stands for the names in a cell's body: shifts and factors."""
    f, c, kind = layer.formats, layer.factors, layer.layer.kind
    if kind == "LEM":
        spare = c["dt"].f - HIDDEN
        return {"target_z": VALUE - f["z"], "target_y": VALUE - f["y"], "spare": spare}
    if kind == "LSTM":
        return {"fresh": 16 - f["c"], "inside": f["c"] + HIDDEN - ARGUMENT}
    if kind == "GRU":
        return {}
    if kind == "FastGRNN":
        return {"fresh": 15 - f["h"], "zeta_m": c["zeta"].m, "nu_m": c["nu"].m}

    def shift(name: str, v_format: int, to: int) -> int:
        return min(31, c[name].f + v_format - to)

    found: dict[str, object] = {
        "target": VALUE - layer.force,
        "pull_m": c["frequency"].m,
        "pull_s": shift("frequency", f["y"], layer.force),
        "step_s": shift("step", layer.force, f["z"] + HIDDEN),
    }
    if kind == "CoRNN":
        found |= {"argument": "A[i]", "sign": "-", "step_m": c["step"].m}
        found |= {"leak_m": c["leak"].m, "leak_s": shift("leak", f["z"], f["z"] + HIDDEN)}
        found |= {"dt_m": c["dt"].m, "dt_s": shift("dt", f["z"], f["y"] + HIDDEN)}
    else:
        k_shift = shift("hh", f["y"], ARGUMENT)
        argument = f"A[i] + shifted((int32_t)hh_$k[i] * output[i], {k_shift})"
        found |= {"argument": argument, "sign": "+"}
        found["move_s"] = shift("step", f["z"], f["y"] + HIDDEN)
    return found
