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


@pytest.fixture
def figure():
    calls = []

    def curves(environment):
        calls.append(environment)
        values = {"plain": [1.0, 0.1, 0.01234567], "gated": [1.0, 1.0, math.inf, 3.0]}
        return Curves(values, {"gated": [0.0, 2.5, 3.0, 4.0]}, "a training")

    made = Figure(
        "a-figure", "A title", "Figure 0", "layer", "Energy", {"plain": "decay"}, curves, (0, 2)
    )
    return made, calls


def test_measured_once_and_read_afterwards(figure, tmp_path):
    made, calls = figure
    first = measure(made, tmp_path / "new")
    assert measure(made, tmp_path / "new") == first
    assert len(calls) == 1
    assert first.curves["plain"] == [1.0, 0.1, 0.0123457]
    assert first.curves["gated"] == [1.0, 1.0]  # up to what is not finite
    assert first.at("gated") == [0.0, 2.5] and first.at("plain") == [0.0, 1.0, 2.0]
    assert json.loads(path_of(made, tmp_path / "new").read_text())["figure"] == "a-figure"


def test_numbers_at_the_marks_beside_the_reported(figure, tmp_path):
    made, _ = figure
    found = measure(made, tmp_path)
    text = terminal(replace(made, note="A note."), found)
    assert "plain  1.0e+00  1.2e-02  decay" in text
    assert "gated  1.0e+00  1.0e+00  -" in text
    assert "* Trained for it: a training." in text
    beyond = terminal(replace(made, marks=(0, 9)), found)
    assert "plain  1.0e+00  -        decay" in beyond
    assert "* A note." in text
    assert "| plain | 1.0e+00 | 1.2e-02 | decay |" in markdown(made, found)


def test_a_damaged_file_is_said(figure, tmp_path):
    made, _ = figure
    path_of(made, tmp_path).write_text('{"figure": "a-figure", "curves": {}')
    with pytest.raises(ValueError, match=r"must hold the curves of a figure.*remove it and run"):
        measure(made, tmp_path)


def test_of_many_curves_those_with_an_outcome_have_a_line(figure, tmp_path):
    made, _ = figure
    found = replace(
        measure(made, tmp_path), curves={"plain": [1.0], **{str(k): [1.0] for k in range(12)}}
    )
    assert [row[0] for row in rows(made, found)] == ["curve", "plain"]


def test_results_of_before_places_were_kept_are_read(figure, tmp_path):
    made, _ = figure
    found = measure(made, tmp_path)
    content = {k: v for k, v in vars(found).items() if k not in ("places", "budget")}
    path_of(made, tmp_path).write_text(json.dumps({"figure": "a-figure", **content}))
    assert measure(made, tmp_path).places == {}


def test_figures_of_the_documents_have_an_outcome_for_every_curve():
    for name in registry.list_figures():
        made = registry.figure(name)
        assert made.id == name
        assert made.outcomes and made.marks and made.x and made.y


def test_outcomes_and_panels_name_curves_that_are_there():
    for made in (*smoothing.FIGURES, *illustrations.FIGURES):
        if made.id.startswith(("cornn", "graphcon-molecule")):
            curves = made.measure(RunEnvironment()).values
            assert set(made.outcomes) <= set(curves)
    for made in trained.FIGURES:
        shown = [name for names in made.panels.values() for name in names]
        assert not shown or set(made.outcomes) <= set(shown)
