"""What programs in whole numbers share: types, shifts, and the way to floating point and back."""

from __future__ import annotations

from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic.export.c_text import array
from anharmonic.export.fixed import HIDDEN, LIMIT, MISSING, MOST

TYPES = f"""\
#include <stdint.h>

#define MODEL_MISSING ({MISSING}) /* a missing value of a sample in whole numbers */
#define MODEL_ONE 65536 /* what an output of 1 is in whole numbers */
"""

EXTRA = """
#ifndef MODEL_NO_FLOAT
/* Samples as they come, in whole numbers: (x - offset) * gain, rounded; NaN is a missing value. */
void model_quantise(const float x[MODEL_CHANNELS], int16_t sample[MODEL_CHANNELS]);

/* Outputs as numbers. */
void model_values(const int32_t outputs[MODEL_OUTPUTS], float values[MODEL_OUTPUTS]);
#endif
"""

_SHIFTS = Template("""\
/* Numbers below 0 are shifted to the right towards minus infinity, as known compilers do. */

/* v / 2^s, rounded; v * 2^-s for s < 0 */
static int32_t shifted(int32_t v, int s)
{
    return s > 0 ? (v >> s) + ((v >> (s - 1)) & 1) : v * ((int32_t)1 << -s);
}

static int32_t limited(int32_t v)
{
    return v > $limit ? $limit : v < -$limit ? -$limit : v;
}

/* What products see of a variable. */
static int16_t upper(int32_t v)
{
    return (int16_t)shifted(v, $hidden);
}
""")

_FLOAT = Template("""\
#ifndef MODEL_NO_FLOAT
$arrays

void model_quantise(const float x[MODEL_CHANNELS], int16_t sample[MODEL_CHANNELS])
{
    int i;
    for (i = 0; i < MODEL_CHANNELS; i++) {
        float v = (x[i] - offset[i]) * gain[i];
        if (v != v)
            sample[i] = MODEL_MISSING;
        else
            sample[i] = (int16_t)(v > $most ? $most : v < -$most ? -$most
                                  : v + (v < 0 ? -0.5f : 0.5f));
    }
}

void model_values(const int32_t outputs[MODEL_OUTPUTS], float values[MODEL_OUTPUTS])
{
    int i;
    for (i = 0; i < MODEL_OUTPUTS; i++)
        values[i] = target_shift[i] + target_scale[i] * ((float)outputs[i] / MODEL_ONE);
}
#endif
""")


SHIFTS = _SHIFTS.substitute(limit=f"(int32_t){LIMIT}", hidden=HIDDEN)


def conversions(
    offset: NDArray[np.float32],
    gain: NDArray[np.float32],
    shift: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> str:
    """``model_quantise`` and ``model_values``.

    Args:
        offset: What is taken from a sample first.
        gain: What the rest is multiplied with.
        shift: What an output of 0 stands for.
        scale: What an output of 1 adds to that.
    """
    named: dict[str, NDArray[Any]] = {
        "offset": offset,
        "gain": gain,
        "target_shift": shift,
        "target_scale": scale,
    }
    arrays = "\n".join(array("float", name, values) for name, values in named.items())
    return _FLOAT.substitute(most=MOST, arrays=arrays)
