"""The recurrent layers in C, in floating point: one step each.

``$k`` is the number of the layer, ``$H`` its width; ``weight_NAME_$k`` and ``bias_$k`` are its
arrays. ``A`` holds affine maps; gates read what the state was before the step.
"""

from __future__ import annotations

from string import Template
from typing import NamedTuple


class Cell(NamedTuple):
    """One step of a layer.

    Attributes:
        variables: Arrays of the state; the first one is the output.
        affine: Length of ``A`` in widths.
        body: What a step does, with ``u`` the input.
        more: Further arrays of a step, as ``A``.
    """

    variables: tuple[str, ...]
    affine: int
    body: Template
    more: tuple[str, ...] = ()


_LEM = """\
    set(A, bias_$k, 3 * $H);
    add(&ih_$k, u, A);
    add(&hh_$k, y, A);
    for (i = 0; i < $H; i++)
        z[i] += gate_$k(A[i]) * (MODEL_TANH(A[2 * $H + i]) - z[i]);
    set(B, bias_y_$k, $H);
    add(&ih_y_$k, u, B);
    add(&zh_$k, z, B);
    for (i = 0; i < $H; i++)
        y[i] += gate_$k(A[$H + i]) * (MODEL_TANH(B[i]) - y[i]);
"""

_LEM_ONE_SCALE = """\
    set(A, bias_$k, $H);
    add(&ih_$k, u, A);
    add(&hh_$k, y, A);
    for (i = 0; i < $H; i++)
        z[i] += R($dt) * (MODEL_TANH(A[i]) - z[i]);
    set(A, bias_y_$k, $H);
    add(&ih_y_$k, u, A);
    add(&zh_$k, z, A);
    for (i = 0; i < $H; i++)
        y[i] += R($dt) * (MODEL_TANH(A[i]) - y[i]);
"""

_CORNN = """\
    set(A, bias_$k, $H);
    add(&ih_$k, u, A);
    add(&hy_$k, y, A);
    add(&hz_$k, z, A);
    for (i = 0; i < $H; i++) {
        z[i] = $new_z;
        y[i] += R($dt) * z[i];
    }
"""

_UNICORNN = """\
    set(A, bias_$k, $H);
    add(&ih_$k, u, A);
$skip    for (i = 0; i < $H; i++) {
        z[i] -= step_$k[i] * (MODEL_TANH(hh_$k[i] * y[i] + A[i]) + R($frequency) * y[i]);
        y[i] += step_$k[i] * z[i];
    }
"""

_LSTM = """\
    set(A, bias_$k, 4 * $H);
    add(&ih_$k, u, A);
    add(&hh_$k, h, A);
    for (i = 0; i < $H; i++) {
        c[i] = sigmoid(A[$H + i]) * c[i] + sigmoid(A[i]) * MODEL_TANH(A[2 * $H + i]);
        h[i] = sigmoid(A[3 * $H + i]) * MODEL_TANH(c[i]);
    }
"""

_GRU = """\
    set(A, bias_$k, 3 * $H);
    add(&ih_$k, u, A);
    add(&hh_$k, h, A);
    set(B, bias_n_$k, $H);
    add(&hn_$k, h, B);
    for (i = 0; i < $H; i++) {
        model_real n = MODEL_TANH(A[2 * $H + i] + sigmoid(A[i]) * B[i]);
        h[i] = n + sigmoid(A[$H + i]) * (h[i] - n);
    }
"""

_FASTGRNN = """\
    for (i = 0; i < $H; i++)
        A[i] = 0;
    add(&ih_$k, u, A);
    add(&hh_$k, h, A);
    for (i = 0; i < $H; i++) {
        model_real g = sigmoid(A[i] + bias_$k[i]);
        h[i] = (R($zeta) * (1 - g) + R($nu)) * MODEL_TANH(A[i] + bias_h_$k[i]) + g * h[i];
    }
"""

_RESONATOR = """\
    set(A, bias_$k, $H);
    add(&ih_$k, u, A);
    for (i = 0; i < $H; i++) {
        model_real e = A[i] - y[i];
        y[i] += a_$k[i] * e + b_$k[i] * z[i];
        z[i] += b_$k[i] * e - c_$k[i] * z[i];
    }
"""

CELLS = {
    "LEM": Cell(("y", "z"), 3, Template(_LEM), ("B",)),
    "LEM-one-scale": Cell(("y", "z"), 1, Template(_LEM_ONE_SCALE)),
    "CoRNN": Cell(("y", "z"), 1, Template(_CORNN)),
    "UnICORNN": Cell(("y", "z"), 1, Template(_UNICORNN)),
    "LSTM": Cell(("h", "c"), 4, Template(_LSTM)),
    "GRU": Cell(("h",), 3, Template(_GRU), ("B",)),
    "FastGRNN": Cell(("h",), 1, Template(_FASTGRNN)),
    "ResonatorBank": Cell(("y", "z"), 1, Template(_RESONATOR)),
}
