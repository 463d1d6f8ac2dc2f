"""Pictures: what is in them, and that they repeat."""

import itertools
import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from anharmonic.pages import charts, plots


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"needs the package matplotlib.*anharmonic\[train"):
        plots.panels(1)


@pytest.fixture
def axis():
    pytest.importorskip("matplotlib", reason="pictures are drawn with it")
    return plots.panels(1)[1][0]


def test_lines_are_named_and_differ_in_colour_and_dash(axis):
    curves = {name: ([0.0, 1.0, 2.0], [1.0, 2.0, 4.0]) for name in "abcdef"}
    plots.lines(axis, {**curves, "empty": ([], [])}, x="time t", y="size", title="all", log="y")
    drawn = axis.get_lines()
    assert len(drawn) == 6
    styles = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in drawn}
    assert len(styles) == 6
    assert (axis.get_xlabel(), axis.get_ylabel(), axis.get_title()) == ("time t", "size", "all")
    assert axis.get_yscale() == "log" and axis.get_xscale() == "linear"
    assert [t.get_text() for t in axis.get_legend().get_texts()] == list("abcdef")


def test_what_a_logarithm_has_no_place_for_is_left_out(axis):
    plots.lines(axis, {"": ([0.0, 1.0, 2.0], [1.0, 0.0, 4.0])}, x="x", y="y", log="xy", low=1e-3)
    assert axis.get_lines()[0].get_xydata().tolist() == [[2.0, 4.0]]
    assert axis.get_legend() is None and axis.get_ylim()[0] == pytest.approx(1e-3)


@pytest.mark.parametrize(("place", "are_whole"), [(1.0, True), (0.5, False)])
def test_whole_places_have_whole_ticks(axis, place, are_whole):
    plots.lines(axis, {"": ([0.0, place, 2.0], [1.0, 2.0, 4.0])}, x="epoch", y="y")
    assert all(tick == int(tick) for tick in axis.get_xticks()) == are_whole


def test_networks_have_nodes_by_kind(axis):
    plots.network(axis, [(0, 0), (1, 0), (1, 1)], [(0, 1), (1, 2)], kinds=["C", "O", "C"])
    assert len(axis.get_lines()) == 2
    assert [len(c.get_offsets()) for c in axis.collections] == [2, 1]


def test_every_kind_of_node_is_drawn(axis):
    kinds = [f"kind {k}" for k in range(7)]
    plots.network(axis, [(k, 0.0) for k in range(7)], [], kinds=kinds)
    assert [one.get_text() for one in axis.get_legend().get_texts()] == kinds


def test_pictures_repeat(axis, tmp_path):
    plots.lines(axis, {"": ([0.0, 1.0], [0.0, 1.0])}, x="x", y="y")
    for form in plots.FORMATS:
        path, seen = tmp_path / "new" / f"a.{form}", set()
        for _ in range(2):
            plots.save(axis.figure, path)
            seen.add(path.read_bytes())
        assert len(seen) == 1
    with pytest.raises(ValueError, match="the picture's ending must be one of 'svg', 'png'"):
        plots.save(axis.figure, tmp_path / "a.jpg")


@pytest.mark.parametrize(("count", "shape"), [(1, (1, 1)), (3, (1, 3)), (4, (2, 2)), (5, (2, 3))])
def test_panels_stand_in_rows(axis, count, shape):
    figure, found = plots.panels(count)
    grid = found[0].get_gridspec()
    assert len(found) == count and (grid.nrows, grid.ncols) == shape
    assert sum(panel.get_visible() for panel in figure.axes) == count


def test_names_of_a_matrix_may_hold_any_character_and_are_no_formulas(axis):
    names = ["$\\frac$", "\x07\ud800", "\u4e2d"]
    plots.matrix(axis, [[1, 0, 0], [0, 1, 0], [0, 0, 1]], names, x="guess", y="truth")
    drawn = plots.encode(axis.figure, "svg")
    ElementTree.fromstring(drawn)
    for name in (rb"\frac$", rb"\x07\ud800", "\u4e2d".encode()):
        assert name in drawn


@pytest.mark.parametrize(("size", "numbers", "named"), [(2, 4, 2), (12, 144, 12), (70, 0, 24)])
def test_a_matrix_shows_shares_of_rows(axis, size, numbers, named):
    counts = [[3 * (i == j) + (j == 0) for j in range(size)] for i in range(size)]
    plots.matrix(axis, counts, [f"class {i}" for i in range(size)], x="guess", y="truth")
    (drawn,) = axis.get_images()
    assert drawn.get_array()[1, 0] == 0.25 and drawn.get_array()[1, 1] == 0.75
    assert len(axis.texts) == numbers
    assert [label.get_text() for label in axis.get_yticklabels()][:1] == ["class 0"]
    assert len(axis.get_yticks()) == named
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("guess", "truth")


def test_ticks_keep_their_digits(axis):
    plots.lines(axis, {"": ([1.0, 2.0], [1.0911, 1.1031])}, x="epoch", y="loss")
    texts = re.findall(r"<text[^>]*>([^<]*)<", plots.encode(axis.figure, "svg").decode())
    ticks = [text for text in texts if re.fullmatch(r"1\.\d+", text)]
    assert len(ticks) > 2 and len(set(ticks)) == len(ticks)


EPOCHS = [1, 2, 3, 4]


def test_curves_are_medians_within_their_range():
    runs = {"LEM": [(EPOCHS, [1.0, 2.0, 3.0, 4.0]), (EPOCHS, [3.0, 2.0, 5.0, 9.0])]}
    runs["LEM"].append((EPOCHS, [2.0, 2.0, 4.0, 5.0]))
    figure = charts.learning_curves(runs, y="accuracy")
    (line,) = figure.axes[0].lines
    assert line.get_xydata().tolist() == [[1, 2.0], [2, 2.0], [3, 4.0], [4, 5.0]]
    (band,) = figure.axes[0].collections
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    assert {(1, 1.0), (1, 3.0), (4, 4.0), (4, 9.0)} <= corners
    assert figure.axes[0].get_yscale() == "linear" and figure.axes[0].texts[0].get_text() == "LEM"


def test_names_stand_beside_their_curves_without_covering_each_other():
    ends = {"LEM": 1.0, "GRU": 0.999, "LSTM": 0.998, "RNN": 0.2, "CoRNN": 0.1999}
    runs = {name: [(EPOCHS, [0.1, 0.1, 0.1, end])] for name, end in ends.items()}
    figure = charts.learning_curves(runs, y="accuracy", level=("baseline", 0.1))
    texts = figure.axes[0].texts
    heights = sorted(text.get_position()[1] for text in texts)
    assert all(b - a > 0.05 for a, b in itertools.pairwise(heights))
    assert heights[-1] <= 1.0 + 1e-9
    order = [text.get_text() for text in sorted(texts, key=lambda text: text.get_position()[1])]
    assert order == ["baseline", "CoRNN", "RNN", "LSTM", "GRU", "LEM"]
    colours = {text.get_text(): text.get_color() for text in texts}
    assert [colours[name] for name in ends] == list(plots.COLOURS[:5])


def test_curves_end_with_the_shortest_run_and_wide_ranges_are_logarithmic():
    runs = {"LEM": [(EPOCHS, [1.0, 0.1, 0.01, 0.001]), (EPOCHS[:3], [3.0, 0.3, 0.03])]}
    axis = charts.learning_curves(runs, y="loss").axes[0]
    np.testing.assert_allclose(axis.lines[0].get_xydata(), [[1, 2], [2, 0.2], [3, 0.02]])
    assert axis.get_yscale() == "log"


@pytest.mark.parametrize("runs", [{}, {"LEM": []}, {"LEM": [([1, 2], [0.1, 0.2])]}])
def test_nothing_is_drawn_where_there_is_nothing_to_see(runs):
    assert charts.learning_curves(runs, y="accuracy") is None


def test_predicted_values_over_true_ones():
    true = [float(i) for i in range(2000)]
    figure = charts.predicted_against_true(true, [2 * value for value in true])
    points = figure.axes[0].collections[0].get_offsets()
    assert 300 <= len(points) <= 600
    assert all(y == 2 * x for x, y in points.tolist())
    assert figure.axes[0].lines[0].get_xydata().tolist() == [[0.0, 0.0], [3998.0, 3998.0]]
