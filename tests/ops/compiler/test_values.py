"""Values of a step, and what a compiled one is compared with the loop by; nothing is compiled."""

import math

import pytest
import torch

from anharmonic.ops.compiler.cache import _agree
from anharmonic.ops.compiler.trace import Unsupported
from anharmonic.ops.compiler.values import Values


def test_numbers_are_told_apart_by_their_sign_and_nan_is_itself():
    values = Values()
    assert values.number(0.0, 3) is values.number(0.0, 3)
    assert values.number(-0.0, 3) is not values.number(0.0, 3)
    assert values.number(math.nan, 3) is values.number(math.nan, 3)


@pytest.mark.parametrize(
    "wrong", [(math.nan, math.nan), (math.inf, math.nan), (2, math.nan), (1, 1)]
)
def test_a_result_that_differs_does_not_agree(wrong):
    right = torch.tensor([1.0, 1.0, math.nan])
    assert _agree([right], [right], 1e-9)
    with pytest.raises(Unsupported, match="does not agree with the loop"):
        _agree([torch.tensor([1.0, *wrong])], [right], 1e-9)


def test_results_of_which_none_is_finite_say_nothing():
    nothing = torch.full((2,), math.nan)
    assert not _agree([nothing], [nothing], 1e-9)
