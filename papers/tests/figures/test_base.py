"""Figures: measured once, kept whole, printed beside what was reported."""

import json
import math
from dataclasses import replace

import pytest

from anharmonic.train.run import RunEnvironment
from anharmonic_papers.figures import illustrations, registry, smoothing, trained
from anharmonic_papers.figures.base import (
    Curves,
    Figure,
    markdown,
    measure,
    path_of,
    rows,
    terminal,
)


def curves(environment):
    values = {"plain": [1.0, 0.1, 0.01234567], "gated": [1.0, 1.0, math.inf, 3.0]}
    return Curves(values, {"gated": [0.0, 2.5, 3.0, 4.0]}, "a training")


FIGURE = Figure(
    "a-figure", "A title", "Figure 0", "layer", "Energy", {"plain": "decay"}, curves, (0, 2)
)


def test_measured_once_and_read_afterwards(tmp_path):
    found = measure(FIGURE, tmp_path / "new")
    assert measure(replace(FIGURE, measure=None), tmp_path / "new") == found
    assert found.curves["plain"] == [1.0, 0.1, 0.0123457]
    assert found.curves["gated"] == [1.0, 1.0]  # up to what is not finite
    assert found.at("gated") == [0.0, 2.5] and found.at("plain") == [0.0, 1.0, 2.0]
    # Results of before places were kept are read, and a damaged file is said.
    content = {k: v for k, v in vars(found).items() if k not in ("places", "budget")}
    path = path_of(FIGURE, tmp_path)
    path.write_text(json.dumps({"figure": "a-figure", **content}))
    assert measure(FIGURE, tmp_path).places == {}
    path.write_text('{"figure": "a-figure", "curves": {}')
    with pytest.raises(ValueError, match=r"must hold the curves of a figure.*remove it and run"):
        measure(FIGURE, tmp_path)


def test_numbers_at_the_marks_beside_the_reported(tmp_path):
    found = measure(FIGURE, tmp_path)
    text = terminal(replace(FIGURE, note="A note."), found)
    assert "plain  1.0e+00  1.2e-02  decay" in text
    assert "gated  1.0e+00  1.0e+00  -" in text
    assert "* Trained for it: a training." in text and "* A note." in text
    assert "plain  1.0e+00  -        decay" in terminal(replace(FIGURE, marks=(0, 9)), found)
    assert "| plain | 1.0e+00 | 1.2e-02 | decay |" in markdown(FIGURE, found)
    # Of many curves those with an outcome have a line.
    many = replace(found, curves={"plain": [1.0], **{str(k): [1.0] for k in range(12)}})
    assert [row[0] for row in rows(FIGURE, many)] == ["curve", "plain"]


def test_figures_of_the_documents_have_an_outcome_for_every_curve():
    made = [registry.figure(name) for name in registry.list_figures()]
    assert [one.id for one in made] == registry.list_figures()
    assert all(one.outcomes and one.marks and one.x and one.y for one in made)


def test_outcomes_and_panels_name_curves_that_are_there():
    for made in (*smoothing.FIGURES, *illustrations.FIGURES):
        if made.id.startswith(("cornn", "graphcon-molecule")):
            curves = made.measure(RunEnvironment()).values
            assert set(made.outcomes) <= set(curves)
    for made in trained.FIGURES:
        shown = [name for names in made.panels.values() for name in names]
        assert not shown or set(made.outcomes) <= set(shown)
