import math
from dataclasses import replace

import pytest

from anharmonic_papers.report.compare import compare
from anharmonic_papers.report.pictures import curves, in_words, points
from anharmonic_papers.tables.base import Row
from anharmonic_papers.tables.budget import Budget, shrink


def test_points_show_both_and_leave_reduced_out(table, run, make_result):
    small = make_result(shrink(run, Budget(epochs=1)), test=77.0)
    lines = compare(table, [make_result(run, test=0.003), small])
    figure = points(table, lines)
    (axis,) = figure.axes
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["expRNN", "CoRNN", "LEM"]
    shown = {line.get_label(): line.get_xydata().tolist() for line in axis.get_lines()}
    assert shown["reported"] == [[2.3, 0], [0.4, 1], [0.2, 2]]
    assert shown["always predicting 1"] == [[16.7, 0], [16.7, 1]]
    (ours,) = axis.containers
    assert ours.lines[0].get_xydata().tolist() == [[pytest.approx(0.3), 2]]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["reported", "always predicting 1", "ours"]
    assert in_words(lines).startswith("LEM: ours 0.300, reported 0.2 ± 0.05; CoRNN: reported 0.4")


def test_points_need_a_full_run_and_wide_ranges_a_logarithm(table, run, make_result):
    def drawn(*results):
        return points(table, compare(table, results))

    for test, scale in ((0.5, "log"), (0.005, "linear")):
        assert drawn(make_result(run, test=test)).axes[0].get_xscale() == scale
    assert drawn() is None and drawn(make_result(run, test=math.inf)) is None
    assert drawn(make_result(shrink(run, Budget(epochs=1)))) is None


def edges(axis):
    """The lower and upper end of the band of an axis at epoch 1."""
    ends = [y for x, y in axis.collections[0].get_paths()[0].vertices if x == 1]
    return min(ends), max(ends)


def test_curves_show_medians_in_their_range_and_name_reduced_runs(table, run, make_result):
    results = [
        make_result(replace(run, seed=s), valid=(0.3 + s, 0.2 + s, 0.1 + s)) for s in (0, 1, 5)
    ]
    results.append(make_result(shrink(run, Budget(epochs=3)), valid=(0.3, 0.3, 0.3)))
    (figure,) = curves(table, compare(table, results))
    (axis,) = figure.axes
    ours, reduced, base = axis.get_lines()
    assert ours.get_ydata().tolist() == pytest.approx([130, 120, 110])
    assert edges(axis) == pytest.approx((30, 530))
    assert ours.get_color() != reduced.get_color() != base.get_color()
    assert ours.get_linestyle() != reduced.get_linestyle()
    names = {text.get_text() for text in axis.texts}
    assert names == {"LEM", "LEM [reduced budget: 3\nepochs]", "always predicting 1"}
    quartiles = replace(table, quartiles=True, measure="valid")
    (figure,) = curves(quartiles, compare(quartiles, results[:3]))
    assert edges(figure.axes[0]) == pytest.approx((80, 330))
    assert figure.axes[0].get_ylabel() == "MSE, validation"
    loss = replace(table, measure="train_loss", metric="loss", baseline=None)
    ((axis,),) = [figure.axes for figure in curves(loss, compare(loss, results[:1]))]
    assert (axis.get_ylabel(), axis.get_lines()[0].get_ydata()[0]) == ("loss", 100)


def test_at_most_six_curves_share_a_picture(table, run, make_result):
    rows = [Row(f"LEM {k}", run=replace(run, lr=0.01 / (k + 1))) for k in range(8)]
    many = replace(table, rows=tuple(rows), baseline=None)
    first, second = curves(many, compare(many, [make_result(row.run) for row in rows]))
    assert [len(figure.axes[0].get_lines()) for figure in (first, second)] == [6, 2]


def test_curves_skip_what_is_not_finite_and_need_three_points(table, run, make_result):
    lines = compare(table, [make_result(run, valid=(math.inf, 0.2, 0.1, 0.1))])
    line, _ = curves(table, lines)[0].axes[0].get_lines()
    assert line.get_xydata().tolist() == [[2, 20], [3, 10], [4, 10]]
    for results in ([], [make_result(run, valid=(0.2, 0.1))]):
        assert curves(table, compare(table, results)) == []
