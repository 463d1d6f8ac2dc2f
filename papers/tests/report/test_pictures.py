import math
from dataclasses import replace

import pytest

from anharmonic_papers.report.compare import compare
from anharmonic_papers.report.pictures import curves, in_words, points
from anharmonic_papers.tables.base import Row
from anharmonic_papers.tables.budget import Budget, shrink

pytest.importorskip("matplotlib", reason="pictures are drawn with it")


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_points_show_both_and_leave_reduced_out(table, run, make_result):
    lines = compare(
        table, [make_result(run, test=0.003), make_result(shrink(run, Budget(epochs=1)), test=77.0)]
    )
    figure = points(table, lines)
    (axis,) = figure.axes
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["expRNN", "CoRNN", "LEM"]
    shown = {line.get_label(): line.get_xydata().tolist() for line in axis.get_lines()}
    assert shown["reported"] == [[2.3, 0], [0.4, 1], [0.2, 2]]
    assert shown["always predicting 1"] == [[16.7, 0], [16.7, 1]]
    (ours,) = axis.containers
    assert ours.lines[0].get_xydata().tolist() == [[pytest.approx(0.3), 2]]
    assert legend(figure) == ["reported", "always predicting 1", "ours"]
    assert in_words(lines).startswith("LEM: ours 0.300, reported 0.2 ± 0.05; CoRNN: reported 0.4")


def test_points_need_a_full_run_and_wide_ranges_a_logarithm(table, run, make_result):
    def drawn(*results):
        return points(table, compare(table, results))

    for test, scale in ((0.5, "log"), (0.005, "linear")):
        assert drawn(make_result(run, test=test)).axes[0].get_xscale() == scale
    assert drawn() is None and drawn(make_result(run, test=math.inf)) is None
    assert drawn(make_result(shrink(run, Budget(epochs=1)))) is None


def named(axis):
    return [text.get_text() for text in axis.texts]


def test_curves_show_medians_in_their_range_and_name_reduced_runs(table, run, make_result):
    results = [
        make_result(replace(run, seed=s), valid=(0.3 + s, 0.2 + s, 0.1 + s)) for s in (0, 1, 2)
    ]
    results.append(make_result(shrink(run, Budget(epochs=3)), valid=(0.3, 0.3, 0.3)))
    (figure,) = curves(table, compare(table, results))
    (axis,) = figure.axes
    ours, reduced, base = axis.get_lines()
    assert ours.get_ydata().tolist() == pytest.approx([130, 120, 110])
    edge = [y for x, y in axis.collections[0].get_paths()[0].vertices if x == 1]
    assert (min(edge), max(edge)) == pytest.approx((30, 230))
    assert ours.get_color() != reduced.get_color() != base.get_color()
    assert ours.get_linestyle() != reduced.get_linestyle()
    assert set(named(axis)) == {"LEM", "LEM [reduced budget: 3\nepochs]", "always predicting 1"}


def test_at_most_six_curves_share_a_picture(table, run, make_result):
    rows = [Row(f"LEM {k}", run=replace(run, lr=0.01 / (k + 1))) for k in range(8)]
    many = replace(table, rows=tuple(rows), baseline=None)
    results = [make_result(row.run) for row in rows]
    first, second = curves(many, compare(many, results))
    assert [len(figure.axes[0].get_lines()) for figure in (first, second)] == [6, 2]


def test_curves_skip_what_is_not_finite_and_need_three_points(table, run, make_result):
    lines = compare(table, [make_result(run, valid=(math.inf, 0.2, 0.1, 0.1))])
    line, _ = curves(table, lines)[0].axes[0].get_lines()
    assert line.get_xydata().tolist() == [[2, 20], [3, 10], [4, 10]]
    for results in ([], [make_result(run, valid=(0.2, 0.1))]):
        assert curves(table, compare(table, results)) == []


def test_curves_of_medians_have_a_band(table, run, make_result):
    results = []
    for seed, shift in enumerate((0.0, 1.0, 5.0)):
        result = make_result(replace(run, seed=seed))
        epochs = len(result.curve["epoch"])
        values = [10.0 + shift + epoch for epoch in range(epochs)]
        results.append(replace(result, curve={**result.curve, "nfe": values}))
    shown = replace(table, measure="nfe", quartiles=True, metric="NFE", scale=1.0, baseline=None)
    ((axis,),) = [figure.axes for figure in curves(shown, compare(shown, results))]
    (line,), (band,) = axis.get_lines(), axis.collections
    assert axis.get_ylabel() == "NFE"
    assert line.get_ydata()[0] == pytest.approx(11)
    edge = [y for x, y in band.get_paths()[0].vertices if x == line.get_xdata()[0]]
    assert (min(edge), max(edge)) == pytest.approx((10.5, 13))
