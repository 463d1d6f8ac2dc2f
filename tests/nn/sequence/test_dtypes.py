"""A weight of another dtype than its layer is refused, and not computed with in part."""

import pytest
import torch

from anharmonic.nn.registry import SEQUENCE_LAYERS, model_class


@pytest.mark.parametrize("name", SEQUENCE_LAYERS)
def test_one_weight_in_float64_is_refused(name):
    layer = model_class(name)(2, 4)
    for weight in layer.parameters():
        weight.data = weight.data.double()
        with pytest.raises((TypeError, ValueError, RuntimeError), match=r"dtype|float64|Double"):
            layer(torch.randn(7, 3, 2))
        weight.data = weight.data.float()
    layer(torch.randn(7, 3, 2))
