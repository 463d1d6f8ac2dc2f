"""The program that checks an exported model against what Python says."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anharmonic.export.c_text import Described, array, head
from anharmonic.export.fixed_model import FixedModel

if TYPE_CHECKING:
    from anharmonic.export.fixed_resonators import FixedResonators

_FLOAT = Template("""\
$head
/* cc -std=c99 model.c model_test.c -lm && ./a.out: 0 if the model does what PyTorch says. */
#include <stdio.h>
#include "model.h"

#define MODEL_FLASH
#ifdef MODEL_DOUBLE
#define TOLERANCE $double
#else
#define TOLERANCE $single
#endif
#define MISSING $missing
$arrays

int main(void)
{
    int n, i, failed = 0;
    long first = 0;
    double worst = 0;
    for (n = 0; n < $number; n++) {
        model_real outputs[MODEL_OUTPUTS];
        model_sequence(samples + first * MODEL_CHANNELS, lengths[n], outputs);
        first += lengths[n];
        for (i = 0; i < MODEL_OUTPUTS; i++) {
            double wanted = expected[n * MODEL_OUTPUTS + i];
            double size = wanted < 0 ? -wanted : wanted;
            double error = (double)outputs[i] - wanted;
            error = (error < 0 ? -error : error) / (size > 1 ? size : 1);
            if (error > worst)
                worst = error;
            if (!(error <= TOLERANCE)) {
                printf("sequence %d, output %d: %g, expected %g\\n", n, i, (double)outputs[i],
                       wanted);
                failed = 1;
            }
        }
    }
    printf("%s: $number sequences, largest error %.3g\\n", failed ? "DIFFERS" : "agrees", worst);
    return failed;
}
""")


def check_source(
    plan: Described,
    examples: Sequence[NDArray[Any]],
    expected: Sequence[NDArray[Any]],
    single: Sequence[NDArray[Any]],
    lut: bool,
) -> str:
    """``model_test.c`` for a model in floating point.

    Args:
        plan: The model.
        examples: Sequences.
        expected: What each one's outputs are.
        single: The same in float32, whose distance, ten times, the program may have in float.
        lut: Whether the model uses a table.

    Shape:
        examples [T, C] each; expected and single [O] each.
    """
    exact = np.stack(expected)
    apart = np.abs(np.stack(single) - exact) / np.maximum(np.abs(exact), 1)
    return _FLOAT.substitute(
        head=head(plan),
        double="2e-2" if lut else "1e-6",
        single="2e-2" if lut else f"{max(1e-3, 10 * float(apart.max())):.1e}",
        missing="(0.0f / 0.0f)",
        number=len(examples),
        arrays="\n".join(
            [
                array("long", "lengths", np.array([len(x) for x in examples])),
                array("model_real", "samples", np.concatenate(examples).astype(np.float32)),
                array("double", "expected", exact),
            ]
        ).replace(" nan", " MISSING"),
    )


_FIXED = Template("""\
$head
/* cc -std=c99 model.c model_test.c && ./a.out: 0 if the model does what Python does, to the bit. */
#include <stdio.h>
#include "model.h"

#define MODEL_FLASH
$arrays

int main(void)
{
    int n, i, failed = 0;
    long first = 0;
    for (n = 0; n < $number; n++) {
        int32_t outputs[MODEL_OUTPUTS];
        model_sequence(samples + first * MODEL_CHANNELS, lengths[n], outputs);
        first += lengths[n];
        for (i = 0; i < MODEL_OUTPUTS; i++) {
            int32_t wanted = expected[n * MODEL_OUTPUTS + i];
            if (outputs[i] != wanted) {
                printf("sequence %d, output %d: %ld, expected %ld\\n", n, i, (long)outputs[i],
                       (long)wanted);
                failed = 1;
            }
        }
    }
    printf("%s: $number sequences, bit for bit\\n", failed ? "DIFFERS" : "agrees");
    return failed;
}
""")


def fixed_check_source(
    model: FixedModel | FixedResonators, examples: Sequence[NDArray[Any]]
) -> str:
    """``model_test.c`` for a model in whole numbers.

    Args:
        model: The model.
        examples: Sequences, as they come.

    Shape:
        examples [T, C] each.
    """
    samples = [model.samples(x) for x in examples]
    expected = np.concatenate([model.outputs(x[None]) for x in samples])
    return _FIXED.substitute(
        head=head(model.plan),
        number=len(examples),
        arrays="\n".join(
            [
                array("long", "lengths", np.array([len(x) for x in examples])),
                array("int16_t", "samples", np.concatenate(samples)),
                array("int32_t", "expected", expected),
            ]
        ),
    )
