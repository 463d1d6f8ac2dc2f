"""Smaller budgets: reductions of a run, and the full run of a reduced one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from anharmonic._checks import listed, positive_int, require
from anharmonic.data import GraphTask, make_task, task_class, task_options
from anharmonic.train import Run
from anharmonic_papers.tasks.signals import LONGEST_RECORDING
from anharmonic_papers.tasks.text import LONGEST_REVIEW

_SIZES = {"train_size": ("train_size",), "eval_size": ("valid_size", "test_size")}
BUDGET: dict[str, dict[str, tuple[str, ...]]] = {
    "adding": {
        "length": ("length",),
        "train_size": ("steps_per_epoch",),
        "eval_size": ("valid_size", "test_size"),
    },
    "lorenz96": {"length": ("length",)},
    "smnist": {"length": ("pool",), **_SIZES},
    "psmnist": {"length": ("pool",), **_SIZES},
    "noise-padded-cifar10": {"length": ("length",), "form": ("form",), **_SIZES},
    "imdb": {"length": ("max_length",), **_SIZES},
    "ptb-char": _SIZES,
    "ptb-word": _SIZES,
    "beijing-air": _SIZES,
    "spoken-digits": {"length": ("max_length",), "train_size": ("train_size",)},
    "mnist-superpixels": {"train_size": ("train_size",)},
}
"""Possible reductions by task, with the task's options for them."""

_LONGEST = {"spoken-digits": LONGEST_RECORDING, "imdb": LONGEST_REVIEW}
_POOLS = {28**2 // (k * k): k for k in (1, 2, 4, 7, 14)}


@dataclass(frozen=True)
class Budget:
    """Upper bounds of a reduced run. Smaller values stay, and None means no bound.

    Raises:
        ValueError: If a number is below 1.
    """

    epochs: int | None = None
    """Largest number of epochs. A drop of the learning rate moves proportionally."""
    length: int | None = None
    """Largest sequence length, for adding, lorenz96, noise-padded-cifar10, spoken-digits and imdb.
    For smnist and psmnist it is 196, 49, 16 or 4, by averaging pixels."""
    train_size: int | None = None
    """Largest number of training sequences or rows per epoch, for smnist, psmnist,
    noise-padded-cifar10, spoken-digits, mnist-superpixels, beijing-air, imdb, ptb-char, ptb-word
    (words) and adding (whole batches, at least one)."""
    eval_size: int | None = None
    """Largest number of validation and of test sequences or rows, for smnist, psmnist,
    noise-padded-cifar10, beijing-air, imdb, ptb-char and ptb-word (words), and adding."""
    form: Literal["original", "jpeg"] | None = None
    """Images of noise-padded-cifar10. "jpeg" loses detail, so it counts as reduced."""

    def __post_init__(self) -> None:
        for name in ("epochs", "length", "train_size", "eval_size"):
            if getattr(self, name) is not None:
                positive_int(name, getattr(self, name))

    def bounds(self) -> dict[str, Any]:
        """Return the set bounds by name."""
        return {k: v for k, v in vars(self).items() if v is not None}


def sizes(run: Run) -> dict[str, int]:
    """Return a run's sizes that a budget may reduce.

    They are ``epochs`` and, as far as its task has such options, ``length``, ``train``, ``valid``
    and ``test`` (sequences) and ``original`` (1, or 0 for images that lost detail).
    """
    known = BUDGET.get(run.task, {})
    options = {**task_options(run.task), **run.task_options}
    found = {"epochs": run.epochs}
    if "length" in known:
        (option,) = known["length"]
        value = options[option]
        found["length"] = 28**2 // value**2 if option == "pool" else value or _LONGEST[run.task]
    if "train_size" in known:
        found |= make_task(run.task, run.task_options).sizes
        if "steps_per_epoch" in options:
            found["train"] = options["steps_per_epoch"] * run.batch_size
    if "form" in known:
        found["original"] = int(options["form"] == "original")
    return found


def shrink(run: Run, budget: Budget) -> Run:
    """Return the run on a smaller budget, marked ``reduced``, or the run itself if unchanged.

    If validation sequences are cut from the training set, fewer of them leave the training set
    unchanged.
    """
    has = sizes(run)
    options: dict[str, Any] = {}
    changes: dict[str, Any] = {}
    if budget.epochs is not None and budget.epochs < run.epochs:
        changes["epochs"] = budget.epochs
        if run.lr_drop_epoch is not None:
            drop = round(run.lr_drop_epoch * budget.epochs / run.epochs)
            changes["lr_drop_epoch"] = max(1, drop)
    if budget.length is not None and "length" in has:
        (option,), length = BUDGET[run.task]["length"], min(budget.length, has["length"])
        if option == "pool":
            name, expected = f"length of {run.task}", "784, 196, 49, 16 or 4"
            require(length in _POOLS, name, length, expected, "choose one")
            length = _POOLS[length]
        options[option] = length
    if budget.form == "jpeg" and "original" in has:
        options["form"] = "jpeg"
    if "train" in has:
        train = min(has["train"], budget.train_size or has["train"])
        valid, test = (min(has[p], budget.eval_size or has[p]) for p in ("valid", "test"))
        if valid < has["valid"]:
            options["valid_size"] = valid
        if test < has["test"]:
            options["test_size"] = test
        if run.task == "adding":
            options["steps_per_epoch"] = max(1, train // run.batch_size)
        elif train < has["train"] or valid < has["valid"]:
            options["train_size"] = train
    now = {**task_options(run.task), **run.task_options}
    smaller = {name: value for name, value in options.items() if value != now[name]}
    if not smaller and not changes:
        return run
    return replace(run, task_options={**run.task_options, **smaller}, reduced=True, **changes)


def unused_bounds(run: Run, budget: Budget) -> list[str]:
    """Return the bounds of a budget that do not change a run.

    Either the run's task has no such option, or the run is already as small.
    """
    return [
        name
        for name, value in budget.bounds().items()
        if shrink(run, replace(Budget(), **{name: value})) == run
    ]


def without_budget(run: Run) -> Run:
    """Return the run without seed and budget, equal for all its reduced or reseeded forms."""
    dropped = {option for options in BUDGET.get(run.task, {}).values() for option in options}
    kept = {k: v for k, v in run.task_options.items() if k not in dropped}
    drop = None if run.lr_drop_epoch is None else 1
    return replace(run, task_options=kept, seed=0, epochs=1, lr_drop_epoch=drop, reduced=False)


def full_runs_of(small: Run, full: Sequence[Run]) -> list[Run]:
    """Return the full runs of a table that match a run marked ``reduced``.

    They are at least as large in every size. If some have the same size as the reduced run (length
    500 of 500), larger ones (500 of 2000) are excluded, because a better match exists.
    """
    family = without_budget(small).hash
    has = sizes(small)
    found = []
    for run in full:
        is_alike = (run.task, run.model) == (small.task, small.model)
        if is_alike and without_budget(run).hash == family:
            theirs = sizes(run)
            if all(value <= theirs[name] for name, value in has.items()):
                found.append((run, theirs))
    for name in has.keys() - {"epochs"}:
        equal = [pair for pair in found if pair[1][name] == has[name]]
        found = equal or found
    return [run for run, _ in found]


def reduction(small: Run, full: Run) -> str:
    """Describe the sizes of a reduced run that differ from the full run."""
    theirs = sizes(full)
    has = {name: value for name, value in sizes(small).items() if value < theirs[name]}
    parts = []
    if "epochs" in has:
        parts.append(f"{has['epochs']} epoch{'s' * (has['epochs'] > 1)}")
    if "length" in has:
        parts.append(f"length {has['length']}")
    names = {"train": "training", "valid": "validation", "test": "test"}
    counts = [f"{has[part]} {name}" for part, name in names.items() if part in has]
    if counts:
        kind = "graphs" if issubclass(task_class(full.task), GraphTask) else "sequences"
        parts.append(f"{listed(counts)} {kind}")
    if "original" in has:
        parts.append("JPEG images")
    return ", ".join(parts) or "marked so, though nothing is smaller"


def steps_per_epoch(run: Run) -> int:
    """Return the number of optimiser steps per epoch."""
    task = make_task(run.task, run.task_options)
    return int(getattr(task, "steps_per_epoch", 0)) or -(-task.sizes["train"] // run.batch_size)
