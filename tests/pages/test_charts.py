import itertools

import numpy as np
import pytest

from anharmonic.pages import charts
from anharmonic.pages.plots import COLOURS

EPOCHS = [1, 2, 3, 4]


def text_of(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_curves_are_medians_within_their_range():
    runs = {"LEM": [(EPOCHS, [1.0, 2.0, 3.0, 4.0]), (EPOCHS, [3.0, 2.0, 5.0, 9.0])]}
    runs["LEM"].append((EPOCHS, [2.0, 2.0, 4.0, 5.0]))
    figure = charts.learning_curves(runs, y="accuracy")
    (line,) = figure.axes[0].lines
    assert line.get_xydata().tolist() == [[1, 2.0], [2, 2.0], [3, 4.0], [4, 5.0]]
    (band,) = figure.axes[0].collections
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    assert {(1, 1.0), (1, 3.0), (4, 4.0), (4, 9.0)} <= corners
    assert figure.axes[0].get_yscale() == "linear" and text_of(figure) == ["LEM"]


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
    assert [colours[name] for name in ends] == list(COLOURS[:5])


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
