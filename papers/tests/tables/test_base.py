from dataclasses import replace

import pytest

from anharmonic.train.run import Run
from anharmonic_papers.tables.base import Row, Table
from anharmonic_papers.tables.budget import Budget


def test_row_names_itself_by_group_and_label():
    assert Row("LEM (published code)", group="N = 10").id == "n-10-lem-published-code"
    assert Row("F", group="F = 0.9").id == "f-0.9-f"


def test_row_value_is_the_printed_number():
    assert Row("LSTM", reported="2.0e-2").value == 0.02
    assert Row("LSTM").value is None


def test_row_gives_one_run_per_seed(run):
    row = Row("LEM", run=run, seeds=(3, 4))
    assert [r.seed for r in row.runs()] == [3, 4]
    assert [r.seed for r in row.runs((7,))] == [7]
    assert list(Row("expRNN").runs()) == []


def test_table_finds_a_row(table):
    assert table.row("exprnn").reported == "2.3"
    with pytest.raises(ValueError, match=r"row must be one of 'lem', .* did you mean 'cornn'"):
        table.row("corn")


def test_reduced_marks_every_smaller_run_and_keeps_the_rest(table):
    small = table.reduced(Budget(epochs=2, length=20, train_size=120, eval_size=30))
    first = small.rows[0].run
    assert first.reduced and first.epochs == 2
    assert first.task_options == {
        "length": 20,
        "steps_per_epoch": 2,
        "valid_size": 30,
        "test_size": 30,
    }
    assert small.rows[2].run is None
    assert small.rows[0].reported == "0.2"


def test_a_budget_that_changes_nothing_gives_the_full_runs(table):
    assert table.reduced(Budget()) == table
    assert table.reduced(Budget(epochs=1000, length=500, eval_size=10**6)) == table


def test_reduced_refuses_what_no_task_has(table):
    plain = replace(
        table, rows=(Row("LEM", run=Run("fitzhugh-nagumo", "LEM", epochs=3)), Row("expRNN"))
    )
    with pytest.raises(ValueError, match=r"--length .*fitzhugh-nagumo.*leave out --length"):
        plain.reduced(Budget(length=10))
    assert plain.reduced(Budget(epochs=1)).rows[0].run.epochs == 1


def test_rows_take_numbers_by_name_only():
    with pytest.raises(TypeError, match="positional"):
        Row("LEM", "", "0.2")


def test_rows_of_a_table_are_frozen(table):
    with pytest.raises(AttributeError):
        table.rows[0].label = "other"
    assert isinstance(table, Table)
