"""Smaller budgets: what a bound does to a run, what is said of it, and whose run it then is."""

import re
from dataclasses import replace

import pytest

from anharmonic.cli import run_command
from anharmonic.data import make_task, task_options
from anharmonic.train import Run
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

ADDING = Run("adding", "LEM", {"length": 500}, {"hidden_size": 8}, epochs=4, batch_size=50)
LONG = replace(ADDING, epochs=120, lr_drop_epoch=100)
SMALL = replace(ADDING, task_options={"length": 20, "valid_size": 7, "steps_per_epoch": 2})
IMAGES = Run("noise-padded-cifar10", "LEM")
PIXELS = Run("psmnist", "LEM")


def test_bounds_are_positive_and_name_options_that_exist():
    for name in ("epochs", "length", "train_size", "eval_size"):
        with pytest.raises(ValueError, match=f"{name} must be an int >= 1"):
            Budget(**{name: 0})
    for task, options in BUDGET.items():
        known = task_options(task)
        assert all(o in known for names in options.values() for o in names), task


def test_the_help_of_a_bound_names_its_tasks(capsys):
    with pytest.raises(SystemExit):
        run_command(Budget, ["--help-all"], "budget")
    shown = capsys.readouterr().out
    for name in ("length", "train_size", "eval_size", "form"):
        entry = shown.partition(f" --{name.replace('_', '-')} ")[2].partition("\n  --")[0]
        for task, options in BUDGET.items():
            assert bool(re.search(rf"\b{task}\b", entry)) == (name in options), (name, task)


@pytest.mark.parametrize(
    ("run", "budget", "changes", "options", "said"),
    [
        (ADDING, Budget(epochs=2, length=20, train_size=120, eval_size=30), {"epochs": 2},
         {"length": 20, "steps_per_epoch": 2, "valid_size": 30, "test_size": 30},
         "2 epochs, length 20, 100 training, 30 validation and 30 test sequences"),
        (LONG, Budget(epochs=6), {"epochs": 6, "lr_drop_epoch": 5}, {}, "6 epochs"),
        (LONG, Budget(epochs=1), {"epochs": 1, "lr_drop_epoch": 1}, {}, "1 epoch"),
        # Whole batches of 50.
        (ADDING, Budget(train_size=4999), {}, {"steps_per_epoch": 99}, "4950 training sequences"),
        (ADDING, Budget(train_size=99), {}, {"steps_per_epoch": 1}, "50 training sequences"),
        (ADDING, Budget(train_size=1), {}, {"steps_per_epoch": 1}, "50 training sequences"),
        # Bounds never enlarge.
        (SMALL, Budget(length=30, train_size=1000, eval_size=50), {}, {"test_size": 50},
         "50 test sequences"),
        (PIXELS, Budget(length=49), {}, {"pool": 4}, "length 49"),
        (IMAGES, Budget(form="jpeg"), {}, {"form": "jpeg"}, "JPEG images"),
        (Run("mnist-superpixels", "GraphCON"), Budget(train_size=100), {}, {"train_size": 100},
         "100 training graphs"),
    ],
)  # fmt: skip
def test_a_reduced_run_is_marked_and_described(run, budget, changes, options, said):
    small = shrink(run, budget)
    options = run.task_options | options
    assert small == replace(run, reduced=True, task_options=options, **changes)
    assert reduction(small, run) == said


@pytest.mark.parametrize("task", ["smnist", "psmnist", "noise-padded-cifar10"])
def test_fewer_validation_images_never_mean_more_training_images(task):
    full = Run(task, "LEM")
    few = {**sizes(full), "valid": 10, "test": 10}
    assert sizes(shrink(full, Budget(eval_size=10))) == few
    assert sizes(shrink(full, Budget(eval_size=10, train_size=64))) == {**few, "train": 64}
    assert make_task(task).sizes.items() <= sizes(full).items()


def test_images_are_pooled_to_few_lengths_only():
    with pytest.raises(ValueError, match=r"length of psmnist .* got 100"):
        shrink(PIXELS, Budget(length=100))


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
        assert reduction(run, run) == "marked so, though nothing is smaller"


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
    for row, small in zip(full.rows, full.reduced(Budget(epochs=1)).rows, strict=True):
        assert replace(small, run=row.run) == row
        assert row.run is None or row.run in full_runs_of(small.run, runs)
