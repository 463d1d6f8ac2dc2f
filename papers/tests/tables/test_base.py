from dataclasses import replace

import pytest

from anharmonic.train.run import Run
from anharmonic_papers.tables.base import Row
from anharmonic_papers.tables.budget import Budget


def test_a_row_has_a_name_a_number_and_a_run_per_seed(run):
    assert Row("LEM (published code)", group="N = 10").id == "n-10-lem-published-code"
    assert Row("F", group="F = 0.9").id == "f-0.9-f"
    assert Row("LSTM", reported="2.0e-2").value == 0.02 and Row("LSTM").value is None
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


def test_reduced_refuses_what_no_task_has(table):
    plain = replace(
        table, rows=(Row("LEM", run=Run("fitzhugh-nagumo", "LEM", epochs=3)), Row("expRNN"))
    )
    with pytest.raises(ValueError, match=r"--length .*fitzhugh-nagumo.*leave out --length"):
        plain.reduced(Budget(length=10))
    assert plain.reduced(Budget(epochs=1)).rows[0].run.epochs == 1
