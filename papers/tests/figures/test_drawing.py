"""Pictures of figures: every panel has its curves, axes have names, the budget is said."""

import pytest

from anharmonic_papers.figures.base import Curves, Figure, Measured, picture

pytest.importorskip("matplotlib", reason="pictures are drawn with it")


def measured(curves, **more):
    return Measured(curves, "a processor", {}, None, "2026-01-01", **more)


def a_figure(**more):
    return Figure(
        "id", "A title", "", "step", "size", {}, lambda environment: Curves({}), (0,), **more
    )


def test_one_panel_of_all_curves():
    found = measured({"a": [1.0, 2.0], "b": [2.0, 3.0]}, places={"b": [5.0, 6.0]}, budget="much")
    drawn = picture(a_figure(log="x"), found)
    (axis,) = drawn.axes
    assert (axis.get_xlabel(), axis.get_ylabel(), axis.get_xscale()) == ("step", "size", "log")
    assert [list(line.get_xdata()) for line in axis.get_lines()] == [[1.0], [5.0, 6.0]]
    assert axis.get_legend() is not None and drawn.get_suptitle() == "A title"
    assert drawn.get_supxlabel() == "Trained for this picture: much."
    assert picture(a_figure(), measured({"a": [1.0]})).get_supxlabel() == ""


def test_panels_of_the_same_curves_share_a_legend():
    curves = {f"{panel}: {name}": [1.0, 2.0] for panel in "pq" for name in "ab"}
    panels = {panel: [f"{panel}: a", f"{panel}: b"] for panel in "pq"}
    drawn = picture(a_figure(panels=panels), measured(curves))
    assert drawn.get_suptitle() == "A title\n"  # with room for the legend
    assert [axis.get_title() for axis in drawn.axes] == ["p", "q"]
    assert all(axis.get_legend() is None for axis in drawn.axes)
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["a", "b"]
    panels["q"] = ["q: a"]
    drawn = picture(a_figure(panels=panels), measured(curves))
    assert not drawn.legends and drawn.axes[0].get_legend() is not None


def test_a_curve_ends_at_its_first_value_below_a_logarithmic_axis():
    found = measured({"a": [1.0, 1e-3, 1e-9, 0.5]})
    for log, shown in (("y", [1.0, 1e-3, 1e-9]), ("", [1.0, 1e-3, 1e-9, 0.5])):
        (line,) = picture(a_figure(log=log, low=1e-6), found).axes[0].get_lines()
        assert list(line.get_ydata()) == shown
    drawn = picture(a_figure(draw=lambda figure, found: found.hardware), found)
    assert drawn == "a processor"  # a figure may draw itself
