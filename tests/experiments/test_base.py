from dataclasses import replace

import pytest

from anharmonic.experiments.base import BUDGET, Budget, Row, Table, ours, shrink, without_budget
from anharmonic.tasks.registry import task_options
from anharmonic.training.run import Run


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


def test_ours_marks_the_settings(run):
    assert ours("LSTM", "1.2", "1k", run, seeds=(0, 1)).settings == "ours"


def test_table_finds_a_row(table):
    assert table.row("exprnn").reported == "2.3"
    with pytest.raises(ValueError, match=r"row must be one of 'lem', .* did you mean 'cornn'"):
        table.row("corn")


@pytest.mark.parametrize("name", ["epochs", "length", "train_size", "eval_size"])
def test_budget_refuses_nothing(name):
    with pytest.raises(ValueError, match=f"{name} must be an int >= 1"):
        Budget(**{name: 0})


def test_reduced_marks_every_run_and_keeps_the_rest(table):
    small = table.reduced(Budget(epochs=2, length=20, train_size=120, eval_size=30))
    first = small.rows[0].run
    assert first.reduced and first.epochs == 2
    assert first.task_options == {
        "length": 20,
        "steps_per_epoch": 3,
        "valid_size": 30,
        "test_size": 30,
    }
    assert small.rows[2].run is None
    assert small.rows[0].reported == "0.2"
    assert table.reduced(Budget()) is table


def test_reduced_refuses_what_no_task_has(table):
    plain = replace(
        table, rows=(Row("LEM", run=Run("fitzhugh-nagumo", "LEM", epochs=3)), Row("expRNN"))
    )
    with pytest.raises(ValueError, match=r"length must belong to a task .* leave out --length"):
        plain.reduced(Budget(length=10))
    assert plain.reduced(Budget(epochs=1)).rows[0].run.epochs == 1


def test_drop_of_the_learning_rate_moves_with_the_epochs(run):
    long = replace(run, epochs=120, lr_drop_epoch=100)
    assert shrink(long, Budget(epochs=6)).lr_drop_epoch == 5
    assert shrink(long, Budget(epochs=1)).lr_drop_epoch == 1
    assert shrink(long, Budget(epochs=200)).epochs == 120


def test_length_of_images_is_a_pooling():
    run = Run("psmnist", "LEM")
    assert shrink(run, Budget(length=49)).task_options == {"pool": 4}
    with pytest.raises(ValueError, match="length of psmnist must be 784, 196, 49, 16 or 4"):
        shrink(run, Budget(length=100))


def test_without_budget_joins_full_and_reduced(run):
    small = shrink(replace(run, seed=5), Budget(epochs=1, length=10, train_size=50, eval_size=5))
    assert without_budget(small) == without_budget(run)
    assert without_budget(replace(run, lr=0.5)) != without_budget(run)


def test_budget_names_options_that_exist():
    for task, options in BUDGET.items():
        known = task_options(task)
        assert all(o in known for names in options.values() for o in names), task


def test_rows_of_a_table_are_frozen(table):
    with pytest.raises(AttributeError):
        table.rows[0].label = "other"
    assert isinstance(table, Table)
