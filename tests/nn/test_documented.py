"""Docstrings of models are whole."""

import inspect
import re

import pytest

from anharmonic.nn import GradientGating, GraphCON, StepLayer
from anharmonic.nn.registry import (
    MODEL_KINDS,
    argument_descriptions,
    constructor_arguments,
    list_models,
    model_class,
)
from anharmonic.nn.sequence.cornn import CoRNNCell
from anharmonic.nn.sequence.lem import LEMCell
from anharmonic.nn.sequence.unicornn import UnICORNNCell

MODELS = [model_class(n) for kind in MODEL_KINDS for n in list_models(kind)]
PARTS = [CoRNNCell, UnICORNNCell, LEMCell, GraphCON, GradientGating]


@pytest.mark.parametrize("kind", MODELS + PARTS, ids=lambda kind: kind.__name__)
def test_a_model_describes_every_argument_shape_and_error_once(kind):
    text = inspect.getdoc(kind)
    described = re.findall(r"^    (\w+): ", text.partition("Args:\n")[2].partition("\n\n")[0], re.M)
    assert described == list(constructor_arguments(kind))
    for section in ("Args", "Shape", "Raises", "Example"):
        assert text.count(f"\n{section}:\n") == 1


def test_descriptions_of_a_users_layer_come_from_its_bases_too():
    class Mine(StepLayer):
        """A layer of a user.

        Args:
            leak: How much is new,
                of 1.
            dropout: Its own.

        Note:
            nothing: Is no argument.
        """

        def __init__(self, input_size, hidden_size, *, leak=0.1, dropout=0.0):
            super().__init__(input_size, hidden_size, dropout=dropout)

    described = argument_descriptions(Mine)
    assert described["leak"] == "How much is new, of 1."
    assert described["dropout"] == "Its own."
    assert described["input_size"] == argument_descriptions(StepLayer)["input_size"]
    assert "nothing" not in described
