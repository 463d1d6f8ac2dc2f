import re
from dataclasses import replace

import pytest

from anharmonic.cli import run_command
from anharmonic.data import make_task, task_options
from anharmonic.train import Run
from anharmonic_papers.tables.base import Row, Table
from anharmonic_papers.tables.budget import (
    BUDGET,
    Budget,
    full_runs_of,
    reduction,
    shrink,
    sizes,
    unused_bounds,
)
from anharmonic_papers.tables.registry import list_tables, table

IMAGES = Run("noise-padded-cifar10", "LEM")
PIXELS = Run("psmnist", "LEM")


def test_bounds_are_positive_and_name_options_that_exist():
    for name in ("epochs", "length", "train_size", "eval_size"):
        with pytest.raises(ValueError, match=f"{name} must be an int >= 1"):
            Budget(**{name: 0})
    for task, options in BUDGET.items():
        known = task_options(task)
        assert all(o in known for names in options.values() for o in names), task


@pytest.mark.parametrize("name", ["length", "train_size", "eval_size", "form"])
def test_the_help_of_a_bound_names_its_tasks(name, capsys):
    with pytest.raises(SystemExit):
        run_command(Budget, ["--help-all"], "budget")
    shown = capsys.readouterr().out
    entry = shown.partition(f" --{name.replace('_', '-')} ")[2].partition("\n  --")[0]
    for task, options in BUDGET.items():
        assert bool(re.search(rf"\b{task}\b", entry)) == (name in options), task


def test_a_reduced_table_marks_smaller_runs_and_keeps_the_rest(run):
    rows = (Row("LEM", reported="0.2", run=run), Row("expRNN", reported="2.3"))
    whole = Table("tiny", "Tiny", "here", "MSE", rows)
    small = whole.reduced(Budget(epochs=2, length=20, train_size=120, eval_size=30))
    run = small.rows[0].run
    options = {"length": 20, "steps_per_epoch": 2, "valid_size": 30, "test_size": 30}
    assert run.reduced and run.epochs == 2 and run.task_options == options
    assert small.rows[1].run is None and small.rows[0].reported == "0.2"


def test_the_learning_rate_drops_with_the_epochs_and_bounds_never_enlarge(run):
    long = replace(run, epochs=120, lr_drop_epoch=100)
    assert shrink(long, Budget(epochs=6)).lr_drop_epoch == 5
    assert shrink(long, Budget(epochs=1)).lr_drop_epoch == 1
    small = replace(run, task_options={"length": 20, "valid_size": 7, "steps_per_epoch": 2})
    found = shrink(small, Budget(epochs=1, length=30, train_size=1000, eval_size=50))
    assert found.task_options == {**small.task_options, "test_size": 50}
    for bound, steps in ((4999, 99), (100, 2), (99, 1), (1, 1)):  # whole batches of 50
        assert shrink(run, Budget(train_size=bound)).task_options["steps_per_epoch"] == steps


@pytest.mark.parametrize("task", ["smnist", "psmnist", "noise-padded-cifar10"])
def test_fewer_validation_images_never_mean_more_training_images(task):
    full = Run(task, "LEM")
    before = make_task(task).sizes
    after = make_task(task, shrink(full, Budget(eval_size=10)).task_options).sizes
    assert after == {"train": before["train"], "valid": 10, "test": 10}
    less_still = shrink(full, Budget(eval_size=10, train_size=64))
    assert sizes(less_still) == {**sizes(full), "train": 64, "valid": 10, "test": 10}


def test_images_are_pooled_to_a_length_and_jpeg_counts_as_less():
    assert shrink(PIXELS, Budget(length=49)).task_options == {"pool": 4}
    with pytest.raises(ValueError, match=r"length of psmnist .* got 100"):
        shrink(PIXELS, Budget(length=100))
    small = shrink(IMAGES, Budget(form="jpeg"))
    assert small.reduced and small.task_options == {"form": "jpeg"}


ADDING = Run("adding", "LEM", {"length": 500}, {"hidden_size": 8}, epochs=4, batch_size=50)


@pytest.mark.parametrize(
    ("run", "budget", "idle"),
    [
        (ADDING, Budget(), []),
        (ADDING, Budget(epochs=4), ["epochs"]),
        (ADDING, Budget(epochs=1, length=10, form="jpeg"), ["form"]),
        (
            ADDING,
            Budget(epochs=1000, length=5000, train_size=10**6, eval_size=10**6),
            ["epochs", "length", "train_size", "eval_size"],
        ),
        (Run("digits", "LEM"), Budget(epochs=1, length=1, train_size=1), ["length", "train_size"]),
        (PIXELS, Budget(length=784), ["length"]),
        (replace(PIXELS, task_options={"pool": 7}), Budget(length=196), ["length"]),
        (IMAGES, Budget(form="original"), ["form"]),
        (replace(IMAGES, task_options={"form": "jpeg"}), Budget(form="original"), ["form"]),
    ],
)
def test_idle_bounds_belong_to_no_option_or_change_nothing(run, budget, idle):
    assert unused_bounds(run, budget) == idle
    if idle == list(budget.bounds()):
        assert shrink(run, budget) == run


def test_owners_have_no_less_of_anything_and_those_of_equal_length_come_first(run):
    small = shrink(run, Budget(epochs=2, eval_size=10))
    assert full_runs_of(small, [run]) == [run]
    for changes in (
        {"epochs": 1},
        {"task_options": {"length": 400}},
        {"task_options": {"length": 500, "valid_size": 9}},
        {"lr": 0.5},
        {"lr_drop_epoch": 3},
    ):
        assert full_runs_of(small, [replace(run, **changes)]) == []
    long = replace(run, task_options={"length": 2000})
    assert full_runs_of(shrink(run, Budget(epochs=2)), [long, run]) == [run]
    # A row that cannot own the run because it has fewer epochs does not hide the one that can.
    assert full_runs_of(shrink(long, Budget(length=500)), [long, replace(run, epochs=3)]) == [long]
    assert full_runs_of(shrink(long, Budget(length=9)), [long, run]) == [long, run]


@pytest.mark.fast("cornn-adding", "lem-ncifar", "graphcon-zinc", "g2-heterophilic", "demo")
@pytest.mark.parametrize("name", list_tables())
def test_every_reduced_row_finds_its_row_again(name):
    full = table(name)
    runs = [row.run for row in full.rows if row.run is not None]
    for row in full.reduced(Budget(epochs=1)).rows:
        if row.run is not None:
            assert full.row(row.id).run in full_runs_of(row.run, runs)


@pytest.mark.parametrize(
    ("run", "budget", "said"),
    [
        (ADDING, Budget(epochs=2, train_size=100, eval_size=5),
         "2 epochs, 100 training, 5 validation and 5 test sequences"),
        (ADDING, Budget(train_size=100), "100 training sequences"),
        (Run("mnist-superpixels", "GraphCON"), Budget(train_size=100), "100 training graphs"),
        (IMAGES, Budget(form="jpeg"), "JPEG images"),
        (ADDING, Budget(), "marked so, though nothing is smaller"),
    ],
)  # fmt: skip
def test_reduction_says_what_is_smaller(run, budget, said):
    assert reduction(shrink(run, budget), run) == said
