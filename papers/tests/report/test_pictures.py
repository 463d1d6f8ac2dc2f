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
    assert in_words(lines).startswith("LEM: ours 0.300, reported 0.2 ± 0.05; CoRNN: reported 0.4")


def test_points_need_a_full_run_and_wide_ranges_a_logarithm(table, run, make_result):
    def drawn(*results):
        return points(table, compare(table, results))

    for test, scale in ((0.5, "log"), (0.005, "linear")):
        assert drawn(make_result(run, test=test)).axes[0].get_xscale() == scale
    assert drawn() is None and drawn(make_result(run, test=math.inf)) is None
    assert drawn(make_result(shrink(run, Budget(epochs=1)))) is None


def test_curves_are_of_what_the_table_measures_and_name_reduced_runs(table, run, make_result):
    results = [make_result(replace(run, seed=s), valid=(0.3 + s, 0.2, 0.1)) for s in (0, 1, 5)]
    results.append(make_result(shrink(run, Budget(epochs=3)), valid=(0.3, 0.3, 0.3)))
    (figure,) = curves(table, compare(table, results))
    (axis,) = figure.axes
    assert axis.get_lines()[0].get_ydata().tolist() == pytest.approx([130, 20, 10])
    assert axis.get_ylabel() == "MSE, validation"
    names = {text.get_text() for text in axis.texts}
    assert names == {"LEM", "LEM [reduced budget: 3\nepochs]", "always predicting 1"}
    loss = replace(table, measure="train_loss", metric="loss", baseline=None, quartiles=True)
    ((axis,),) = [figure.axes for figure in curves(loss, compare(loss, results[:3]))]
    assert (axis.get_ylabel(), axis.get_lines()[0].get_ydata()[0]) == ("loss", 100)


def test_quartiles_bound_a_band_and_what_is_not_finite_is_left_out(table, run, make_result):
    results = [
        make_result(replace(run, seed=s), valid=(math.inf, 0.3 + s, 0.2, 0.1)) for s in (0, 1, 5)
    ]
    quartiles = replace(table, quartiles=True)
    (axis,) = curves(quartiles, compare(quartiles, results))[0].axes
    assert axis.get_lines()[0].get_xdata().tolist() == [2, 3, 4]
    ends = [y for x, y in axis.collections[0].get_paths()[0].vertices if x == 2]
    assert (min(ends), max(ends)) == pytest.approx((80, 330))
    assert curves(table, compare(table, [make_result(run, valid=(0.2, 0.1))])) == []


def test_at_most_six_curves_share_a_picture(table, run, make_result):
    rows = [Row(f"LEM {k}", run=replace(run, lr=0.01 / (k + 1))) for k in range(8)]
    many = replace(table, rows=tuple(rows), baseline=None)
    first, second = curves(many, compare(many, [make_result(row.run) for row in rows]))
    assert [len(figure.axes[0].get_lines()) for figure in (first, second)] == [6, 2]
