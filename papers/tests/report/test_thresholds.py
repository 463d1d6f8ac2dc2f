"""Steps until a learning curve was good enough are those of the curve."""

from dataclasses import replace

from anharmonic_papers.report.compare import compare
from anharmonic_papers.report.text import remarks, steps_until
from anharmonic_papers.tables import table
from anharmonic_papers.tables.budget import steps_per_epoch


def a_result(make_result, row, valid, **changes):
    run = replace(table("cornn-adding").row(row).run, **changes)
    curve = {"epoch": list(range(1, len(valid) + 1)), "valid": valid}
    return replace(make_result(run), curve=curve)


def test_the_first_epoch_below_counts_in_steps(make_result):
    found = table("cornn-adding")
    assert found.thresholds == (0.05, 0.01)
    solved = a_result(make_result, "t-500-lem", [0.16, 0.04, 0.06, 0.002], epochs=60)
    half = a_result(make_result, "t-500-cornn", [0.16, 0.04, 0.06], epochs=60)
    not_at_all = a_result(make_result, "t-2000-cornn", [0.16, 0.17], epochs=200)
    (said,) = [r for r in remarks(found, compare(found, [solved, half, not_at_all]))
               if r.startswith("Steps until MSE")]  # fmt: skip
    assert "below 0.05 and 0.01" in said
    assert "LEM, T = 500, seed 0: 200, 400" in said
    assert "coRNN, T = 500, seed 0: 200, never" in said
    assert "coRNN, T = 2000, seed 0: not in 20,000" in said


def test_a_table_without_thresholds_says_nothing(make_result):
    found = table("lem-fitzhugh-nagumo")
    assert steps_until(found, [(found.rows[0], "", make_result(found.rows[0].run))]) == []


def test_steps_of_an_epoch_of_a_set_of_fixed_size(make_result):
    run = table("lem-fitzhugh-nagumo").row("lem").run
    assert steps_per_epoch(run) == 4  # 128 trajectories in batches of 32
