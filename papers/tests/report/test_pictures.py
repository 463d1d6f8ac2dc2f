import math
import re
from dataclasses import replace

import pytest

from anharmonic_papers.report.compare import compare
from anharmonic_papers.report.pictures import Axis, curves, label, points
from anharmonic_papers.tables.budget import Budget, shrink


def test_axis_maps_its_ends():
    axis = Axis(2.0, 4.0)
    assert [axis.at(v) for v in (1.0, 2.0, 3.0, 4.0, 9.0)] == [0.0, 0.0, 50.0, 100.0, 100.0]


@pytest.mark.parametrize(
    "values", [[1.0], [0.0, 0.0], [97.0, 98.0], [1e-5, 0.2], [-3.0, 3.0], [5e-324, 1.0]]
)
def test_axis_around_shows_all_values_and_has_ticks(values):
    axis = Axis.around(values)
    assert all(0 <= axis.at(v) <= 100 for v in values)
    assert all(axis.low <= t <= axis.high * (1 + 1e-9) for t in axis.ticks())
    assert 1 <= len(axis.ticks()) <= 14


def test_axis_keeps_its_bounds():
    axis = Axis.around([95.0, 99.9], (0.0, 100.0))
    assert axis.high == 100.0


def test_axis_is_logarithmic_for_wide_ranges_only():
    assert Axis.around([1e-4, 0.1]).log
    assert not Axis.around([0.1, 0.2]).log
    assert not Axis.around([0.0, 0.2]).log


def test_label_is_short():
    assert [label(v) for v in (1e-05, 0.02, 98.0, 20000.0)] == ["1e-5", "0.02", "98", "2e4"]


def test_points_show_both_and_leave_reduced_out(table, run, make_result):
    lines = compare(
        table,
        [make_result(run, test=0.003), make_result(shrink(run, Budget(epochs=1)), test=77.0)],
    )
    text = points(table, lines)
    assert text.count('class="theirs"') == 3
    assert text.count('class="ours"') == 1
    assert "ours 0.300, reported 0.2 ± 0.05" in text
    assert "7700" not in text


def test_points_are_empty_without_numbers(table):
    rows = tuple(replace(row, reported="") for row in table.rows)
    bare = replace(table, rows=rows)
    assert points(bare, compare(bare, [])) == ""


def test_curves_draw_every_seed_and_dash_reduced_runs(table, run, make_result):
    results = [make_result(replace(run, seed=s)) for s in (0, 1)]
    results.append(make_result(shrink(run, Budget(epochs=1)), valid=(0.3,)))
    text = curves(table, compare(table, results))
    assert text.count("<polyline") == 3
    assert text.count('class="c0 dashed"') == 1
    assert "LEM [reduced budget: 1 epoch]" in text
    assert "always predicting 1" in text


def test_curves_keep_their_colours_when_more_rows_ran(table, run, make_result):
    second = make_result(replace(run, model="CoRNN"))
    alone = curves(table, compare(table, [second]))
    both = curves(table, compare(table, [make_result(run), second]))
    assert '<polyline class="c1"' in alone and '<polyline class="c0"' not in alone
    assert '<polyline class="c1"' in both and '<polyline class="c0"' in both


def test_curves_skip_what_is_not_finite(table, run, make_result):
    text = curves(table, compare(table, [make_result(run, valid=(math.inf, 0.2, 0.1))]))
    assert "inf" not in text and "nan" not in text


def test_curves_are_empty_without_results(table):
    assert curves(table, compare(table, [])) == ""


def test_curves_of_medians_have_a_band(table, run, make_result):
    results = []
    for seed, shift in enumerate((0.0, 1.0, 5.0)):
        result = make_result(replace(run, seed=seed))
        epochs = len(result.curve["epoch"])
        values = [10.0 + shift + epoch for epoch in range(epochs)]
        results.append(replace(result, curve={**result.curve, "nfe": values}))
    shown = replace(table, measure="nfe", quartiles=True, metric="NFE", scale=1.0, baseline=None)
    text = curves(shown, compare(shown, results))
    assert text.count("<polyline") == 1 and text.count('<polygon class="band c0"') == 1
    assert "NFE, median and quartiles of the seeds, against epochs" in text
    line = re.search(r'<polyline class="c0" points="([^"]*)"', text)[1].split()
    band = re.search(r'<polygon class="band c0" points="([^"]*)"', text)[1].split()
    assert len(band) == 2 * len(line)
    # At every epoch the median is 0.5 above the lower quartile and 2 below the upper.
    heights = [float(point.split(",")[1]) for point in line]
    low = [float(point.split(",")[1]) for point in band[: len(line)]]
    high = [float(point.split(",")[1]) for point in band[len(line) :]][::-1]
    for middle, below, above in zip(heights, low, high, strict=True):
        assert (middle - above) == pytest.approx(4 * (below - middle), rel=0.05)
