import re
from dataclasses import replace

import pytest

from anharmonic.cli import run_command
from anharmonic.data.registry import make_task, task_options
from anharmonic.train.run import Run
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


@pytest.mark.parametrize("name", ["epochs", "length", "train_size", "eval_size"])
def test_budget_refuses_nothing(name):
    with pytest.raises(ValueError, match=f"{name} must be an int >= 1"):
        Budget(**{name: 0})


def test_budget_names_options_that_exist():
    for task, options in BUDGET.items():
        known = task_options(task)
        assert all(o in known for names in options.values() for o in names), task


def test_the_learning_rate_drops_with_the_epochs_and_bounds_never_enlarge(run):
    long = replace(run, epochs=120, lr_drop_epoch=100)
    assert shrink(long, Budget(epochs=6)).lr_drop_epoch == 5
    assert shrink(long, Budget(epochs=1)).lr_drop_epoch == 1
    small = replace(run, task_options={"length": 20, "valid_size": 7, "steps_per_epoch": 2})
    found = shrink(small, Budget(epochs=1, length=30, train_size=1000, eval_size=50))
    assert found.task_options == {**small.task_options, "test_size": 50}
    for bound, steps in ((4999, 99), (100, 2), (99, 1), (1, 1)):  # whole batches of 50
        assert shrink(run, Budget(train_size=bound)).task_options["steps_per_epoch"] == steps


@pytest.mark.parametrize(
    "budget",
    [
        Budget(),
        Budget(epochs=4),
        Budget(epochs=1000, length=5000, train_size=10**6, eval_size=10**6),
        Budget(form="jpeg"),
    ],
)
def test_a_budget_without_effect_leaves_the_run_as_it_is(run, budget):
    assert shrink(run, budget) == run


@pytest.mark.parametrize("task", ["smnist", "psmnist", "noise-padded-cifar10"])
def test_fewer_validation_images_never_mean_more_training_images(task):
    full = Run(task, "LEM")
    before = make_task(task).sizes
    after = make_task(task, shrink(full, Budget(eval_size=10)).task_options).sizes
    assert after == {"train": before["train"], "valid": 10, "test": 10}
    less_still = shrink(full, Budget(eval_size=10, train_size=64))
    assert sizes(less_still) == {**sizes(full), "train": 64, "valid": 10, "test": 10}


def test_length_of_images_is_a_pooling():
    run = Run("psmnist", "LEM")
    assert shrink(run, Budget(length=49)).task_options == {"pool": 4}
    assert shrink(run, Budget(length=784)) == run
    pooled = Run("psmnist", "LEM", {"pool": 7})
    assert shrink(pooled, Budget(length=196)) == pooled
    with pytest.raises(ValueError, match=r"length of psmnist .* got 100"):
        shrink(run, Budget(length=100))


def test_jpeg_counts_as_less():
    run = Run("noise-padded-cifar10", "LEM")
    small = shrink(run, Budget(form="jpeg"))
    assert small.reduced and small.task_options == {"form": "jpeg"}
    assert shrink(run, Budget(form="original")) == run
    assert shrink(replace(run, task_options={"form": "jpeg"}), Budget(form="original")).reduced is (
        False
    )
    assert reduction(small, run) == "JPEG images"


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


def test_reduction_says_what_is_smaller(run):
    small = shrink(run, Budget(epochs=2, train_size=100, eval_size=5))
    assert reduction(small, run) == "2 epochs, 100 training, 5 validation and 5 test sequences"
    assert reduction(shrink(run, Budget(train_size=100)), run) == "100 training sequences"
    images = Run("mnist-superpixels", "GraphCON")
    assert reduction(shrink(images, Budget(train_size=100)), images) == "100 training graphs"
    assert reduction(replace(run, reduced=True), run) == "marked so, though nothing is smaller"


@pytest.mark.parametrize("name", ["length", "train_size", "eval_size", "form"])
def test_the_help_of_a_bound_names_its_tasks(name, capsys):
    with pytest.raises(SystemExit):
        run_command(Budget, ["--help-all"], "budget")
    shown = capsys.readouterr().out
    entry = shown.partition(f" --{name.replace('_', '-')} ")[2].partition("\n  --")[0]
    for task, options in BUDGET.items():
        assert bool(re.search(rf"\b{task}\b", entry)) == (name in options), task


def test_idle_bounds_belong_to_no_option_or_change_nothing(run):
    assert unused_bounds(run, Budget()) == []
    assert unused_bounds(run, Budget(epochs=1, length=10, form="jpeg")) == ["form"]
    assert unused_bounds(run, Budget(epochs=1000, length=10)) == ["epochs"]
    digits = Run("digits", "LEM")
    assert unused_bounds(digits, Budget(epochs=1, length=1, train_size=1)) == [
        "length",
        "train_size",
    ]
