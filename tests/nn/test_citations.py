import pytest

import anharmonic as ah
from anharmonic.nn.registry import MODEL_KINDS, canonical_name

NAMES = [name for kind in MODEL_KINDS for name in ah.list_models(kind)]


@pytest.mark.parametrize("name", NAMES)
def test_every_model_has_a_name_in_any_case_and_a_paper(name):
    assert canonical_name(name.upper()) == name == canonical_name(name.lower())
    text = ah.cite(name)
    assert text.startswith("@") and "title = {" in text and "year = {" in text
    assert text.count("{") == text.count("}")


def test_models_classes_and_names_agree():
    entry = ah.cite("lem")
    assert "Long Expressive Memory" in entry
    assert entry == ah.cite(ah.LEM) == ah.cite(ah.LEM(1, 1)) == ah.cite(ah.LEMCell(1, 1))
    assert entry == ah.cite(ah.SequenceModel("LEM", 1, 1, hidden_size=1))
    assert entry == ah.cite(type("MyModel", (ah.LEM,), {}))
    assert canonical_name("G2", "graph") == "GradientGating"
    assert ah.cite("g2") == ah.cite(ah.GradientGating)


def test_a_class_of_ones_own_has_no_citation():
    with pytest.raises(ValueError, match="got 'Mine'; cite the source of your own"):
        ah.cite(type("Mine", (ah.nn.SequenceLayer,), {}))


def test_chrono_initialisation_cites_its_paper():
    assert "warp time" in ah.cite(ah.LEM(1, 1, chrono_length=10))
    assert "warp time" in ah.cite(ah.ChronoLSTM(1, 1)) and "Hochreiter" in ah.cite("ChronoLSTM")
    assert "warp time" not in ah.cite(ah.LEM(1, 1))
