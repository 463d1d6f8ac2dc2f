"""Docstrings, names and citations of models."""

import inspect
import re

import pytest

import anharmonic as ah
from anharmonic.nn import GradientGating, GraphCON, StepLayer
from anharmonic.nn.registry import (
    MODEL_KINDS,
    argument_descriptions,
    canonical_name,
    constructor_arguments,
    list_models,
    model_class,
)
from anharmonic.nn.sequence.cornn import CoRNNCell
from anharmonic.nn.sequence.lem import LEMCell
from anharmonic.nn.sequence.unicornn import UnICORNNCell

NAMES = [name for kind in MODEL_KINDS for name in list_models(kind)]
MODELS = [model_class(name) for name in NAMES]
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
    assert described["leak"] == "How much is new, of 1." and described["dropout"] == "Its own."
    assert described["input_size"] == argument_descriptions(StepLayer)["input_size"]
    assert "nothing" not in described


@pytest.mark.parametrize("name", NAMES)
def test_every_model_has_a_name_in_any_case_and_a_paper(name):
    assert canonical_name(name.upper()) == name == canonical_name(name.lower())
    text = ah.cite(name)
    assert text.startswith("@") and "title = {" in text and "year = {" in text
    assert text.count("{") == text.count("}")


def test_models_classes_and_names_agree():
    layer, model = ah.LEM(1, 1), ah.SequenceModel("LEM", 1, 1, hidden_size=1)
    entry = ah.cite("lem")
    assert "Long Expressive Memory" in entry
    for same in (ah.LEM, layer, ah.LEMCell(1, 1), model, type("MyModel", (ah.LEM,), {})):
        assert ah.cite(same) == entry
    assert canonical_name("G2", "graph") == "GradientGating"
    assert ah.cite("g2") == ah.cite(ah.GradientGating)
    assert "warp time" in ah.cite(ah.LEM(1, 1, chrono_length=10))
    assert "warp time" in ah.cite(ah.ChronoLSTM(1, 1)) and "Hochreiter" in ah.cite("ChronoLSTM")
    assert "warp time" not in ah.cite(ah.LEM(1, 1))
