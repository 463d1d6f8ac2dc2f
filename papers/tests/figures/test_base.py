"""Figures: measured once, kept whole, printed beside what was reported, and drawn."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from anharmonic_papers.figures import registry
from anharmonic_papers.figures.base import (
    Curves,
    Figure,
    Measured,
    measure,
    path_of,
    picture,
    read,
)


def curves(environment):
    values = {"plain": [1.0, 0.1, 0.01234567], "gated": [1.0, 1.0, math.inf, 3.0]}
    return Curves(values, {"gated": [0.0, 2.5, 3.0, 4.0]}, "a training")


FIGURE = Figure(
    "a-figure", "A title", "Figure 0", "layer", "Energy", {"plain": "decay"}, curves, (0, 2)
)


def test_measured_curves_are_kept_up_to_what_is_not_finite(tmp_path):
    found = measure(FIGURE, tmp_path)
    assert found.curves == {"plain": [1.0, 0.1, 0.0123457], "gated": [1.0, 1.0]}
    assert found.at("gated") == [0.0, 2.5] and found.at("plain") == [0.0, 1.0, 2.0]
    # Results of before places were kept are read, and a damaged file is said.
    content = {k: v for k, v in vars(found).items() if k not in ("places", "budget")}
    path = path_of(FIGURE, tmp_path)
    path.write_text(json.dumps({"figure": "a-figure", **content}))
    assert measure(FIGURE, tmp_path).places == {}
    path.write_text('{"figure": "a-figure", "curves": {}')
    with pytest.raises(ValueError, match=r"must hold the curves of a figure.*remove it and run"):
        measure(FIGURE, tmp_path)


def test_outcomes_and_panels_name_curves_that_are_there():
    results = Path(__file__).parents[2] / "results"
    for one in map(registry.figure, registry.list_figures()):
        stored = read(path_of(one, results)).curves.keys()
        shown = {name for names in one.panels.values() for name in names} or stored
        assert one.outcomes and one.outcomes.keys() <= shown <= stored
        assert one.marks and one.x and one.y


def drawn(curves, places=None, budget="", **changes):
    found = Measured(curves, "a processor", {}, None, "2026-01-01", places or {}, budget)
    return picture(replace(FIGURE, **changes), found)


def test_one_panel_has_all_curves_names_and_the_budget():
    made = drawn({"a": [1.0, 2.0], "b": [2.0, 3.0]}, {"b": [5.0, 6.0]}, "much", log="x")
    (axis,) = made.axes
    assert (axis.get_xlabel(), axis.get_ylabel(), axis.get_xscale()) == ("layer", "Energy", "log")
    assert [list(line.get_xdata()) for line in axis.get_lines()] == [[1.0], [5.0, 6.0]]
    assert axis.get_legend() is not None and made.get_suptitle() == "A title"
    assert made.get_supxlabel() == "Trained for this picture: much."
    assert drawn({"a": [1.0]}).get_supxlabel() == ""


def test_panels_of_the_same_curves_share_a_legend():
    curves = {f"{panel}: {name}": [1.0, 2.0] for panel in "pq" for name in "ab"}
    panels = {panel: [f"{panel}: a", f"{panel}: b"] for panel in "pq"}
    made = drawn(curves, panels=panels)
    assert made.get_suptitle() == "A title\n"  # with room for the legend
    assert [axis.get_title() for axis in made.axes] == ["p", "q"]
    assert all(axis.get_legend() is None for axis in made.axes)
    assert [text.get_text() for text in made.legends[0].get_texts()] == ["a", "b"]
    made = drawn(curves, panels={**panels, "q": ["q: a"]})
    assert not made.legends and made.axes[0].get_legend() is not None


def test_a_curve_ends_at_its_first_value_below_a_logarithmic_axis():
    for log, shown in (("y", [1.0, 1e-3, 1e-9]), ("", [1.0, 1e-3, 1e-9, 0.5])):
        (line,) = drawn({"a": [1.0, 1e-3, 1e-9, 0.5]}, log=log, low=1e-6).axes[0].get_lines()
        assert list(line.get_ydata()) == shown
    own = drawn({}, draw=lambda figure, found: found.hardware)
    assert own == "a processor"  # a figure may draw itself
