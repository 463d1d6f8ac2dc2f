"""Docstrings of models are whole, wherever their parts stand."""

import inspect
import re

import pytest

from anharmonic.nn import GradientGating, GraphCON, StepLayer
from anharmonic.nn.arguments import constructor_arguments
from anharmonic.nn.documented import complete
from anharmonic.nn.registry import list_models, model_class
from anharmonic.nn.sequence.cornn import CoRNNCell
from anharmonic.nn.sequence.lem import LEMCell
from anharmonic.nn.sequence.unicornn import UnICORNNCell

MODELS = [model_class(n) for kind in ("sequence", "graph", "tabular") for n in list_models(kind)]
PARTS = [CoRNNCell, UnICORNNCell, LEMCell, GraphCON, GradientGating]


@pytest.mark.parametrize("kind", MODELS + PARTS, ids=lambda kind: kind.__name__)
def test_a_model_describes_every_argument_shape_and_error_once(kind):
    text = inspect.getdoc(kind)
    described = re.findall(r"^    (\w+): ", text.partition("Args:\n")[2].partition("\n\n")[0], re.M)
    assert described == list(constructor_arguments(kind))
    for section in ("Args", "Shape", "Raises", "Example"):
        assert text.count(f"\n{section}:\n") == 1


class Base:
    """A layer.

    Args:
        size: Neurons,
            at least one.
        steps: How many.

    Shape:
        x [B, F].

    Raises:
        ValueError: If it is too small.
    """


def test_what_a_class_says_itself_goes_before_what_its_base_says():
    class Layer(Base):
        """Another one.

        Args:
            size: Its own.

        Raises:
            TypeError: If it is none.
        """

    complete(Layer, ["steps", "size"])
    assert Layer.__doc__ == (
        "Another one.\n\nArgs:\n    steps: How many.\n    size: Its own.\n\n"
        "Shape:\n    x [B, F].\n\nRaises:\n    TypeError: If it is none."
    )


def test_a_class_without_a_docstring_has_none():
    class Layer(Base):
        pass

    complete(Layer, ["size"])
    assert Layer.__doc__ is None


def test_arguments_that_a_constructor_does_not_take_are_left_out():
    class Layer(Base):
        """Another one."""

    complete(Layer, ["size"])
    assert "at least one" in Layer.__doc__
    assert "steps" not in Layer.__doc__


def test_a_layer_of_a_user_is_completed():
    class Mine(StepLayer):
        """A layer of a user.

        Args:
            leak: How much is new.
        """

        def __init__(self, input_size, hidden_size, *, leak=0.1, dropout=0.0):
            super().__init__(input_size, hidden_size, dropout=dropout)

    assert re.findall(r"^    (\w+): ", Mine.__doc__, re.M)[:4] == [
        "input_size", "hidden_size", "leak", "dropout",
    ]  # fmt: skip
