"""What a table of the documents is: rows of reported numbers, and the runs that repeat them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from anharmonic._checks import choice, message, positive_int
from anharmonic.training.run import Run

Settings = Literal["documents", "published code", "ours"]

_IMAGES = {"train_size": ("train_size",), "eval_size": ("valid_size", "test_size")}
BUDGET: dict[str, dict[str, tuple[str, ...]]] = {
    "adding": {
        "length": ("length",),
        "train_size": ("steps_per_epoch",),
        "eval_size": ("valid_size", "test_size"),
    },
    "lorenz96": {"length": ("length",)},
    "smnist": {"length": ("pool",), **_IMAGES},
    "psmnist": {"length": ("pool",), **_IMAGES},
    "noise-padded-cifar10": {"length": ("length",), "form": ("form",), **_IMAGES},
}
"""By task: the options of a task that a smaller budget changes, and what they are called here."""


@dataclass(frozen=True)
class Budget:
    """What a reduced run may have less of; ``None`` changes nothing.

    Args:
        epochs: See the fields below.
        length: As above; likewise all that follow.

    Raises:
        ValueError: If a number is below 1.
    """

    epochs: int | None = None
    """Upper bound of the epochs; a drop of the learning rate moves with it."""
    length: int | None = None
    """Length of the sequences: adding, lorenz96, noise-padded-cifar10; for smnist and psmnist
    196, 49, 16 or 4, by averaging pixels."""
    train_size: int | None = None
    """Training sequences per epoch: adding, images."""
    eval_size: int | None = None
    """Upper bound of the validation and of the test sequences: adding, images."""
    form: Literal["original", "jpeg"] | None = None
    """Which CIFAR-10 images; "jpeg" counts as reduced, since it loses detail."""

    def __post_init__(self) -> None:
        for name in ("epochs", "length", "train_size", "eval_size"):
            if getattr(self, name) is not None:
                positive_int(name, getattr(self, name))

    def changes(self) -> dict[str, Any]:
        """What is set, by name."""
        return {k: v for k, v in vars(self).items() if v is not None}


@dataclass(frozen=True)
class Row:
    """One row of a table: what was reported and, where we have the model, the run that repeats it.

    Args:
        label: The model as printed.
        group: The part of the table it stands in, for example ``"T = 500"``; may be empty.
        reported: The number as printed, in the table's unit; empty where there is none.
        spread: The standard deviation as printed.
        outcome: What the documents say in words (curves without numbers).
        parameters: The printed parameter count, for example ``"68k"``.
        run: The run; ``None`` for a baseline that this package does not have.
        seeds: The seeds run when none are named.
        settings: Where the run's settings come from. ``"ours"``: the documents and the published
            code say nothing.
        note: What a reader has to know.

    Example:
        >>> Row("LSTM", group="T = 500").id
        't-500-lstm'
    """

    label: str
    group: str = ""
    reported: str = ""
    spread: str = ""
    outcome: str = ""
    parameters: str = ""
    run: Run | None = None
    seeds: tuple[int, ...] = (0,)
    settings: Settings = "documents"
    note: str = ""

    @property
    def id(self) -> str:
        """The name of the row on the command line, unique in its table."""
        words = f"{self.group} {self.label}".lower()
        return re.sub(r"[^a-z0-9.]+", "-", words).strip("-.")

    @property
    def value(self) -> float | None:
        """The printed number as a number."""
        return float(self.reported) if self.reported else None

    def runs(self, seeds: tuple[int, ...] | None = None) -> Iterator[Run]:
        """One run per seed; nothing for a row without a run.

        Args:
            seeds: The seeds; the row's own when ``None``.
        """
        if self.run is not None:
            for seed in self.seeds if seeds is None else seeds:
                yield replace(self.run, seed=seed)


def ours(
    label: str,
    reported: str,
    parameters: str,
    run: Run,
    group: str = "",
    seeds: tuple[int, ...] = (0,),
) -> Row:
    """A row whose settings are our choice, because documents and published code are silent.

    Args:
        label: The model as printed.
        reported: The number as printed.
        parameters: The parameter count as printed.
        run: The run.
        group: The part of the table.
        seeds: The seeds.
    """
    return Row(label, group, reported, parameters=parameters, run=run, seeds=seeds, settings="ours")


@dataclass(frozen=True)
class Table:
    """One table of the documents as data.

    Args:
        id: Its name on the command line.
        title: What it compares.
        source: Document and table number.
        task: The task's name in words.
        metric: Name of the metric as printed.
        rows: The rows in the order of the document.
        unit: The unit of the printed numbers, for example ``"%"`` or ``"x 1e-2"``.
        scale: Our metric times this is the printed number.
        form: Format of our numbers, for example ``".2f"``.
        direction: Whether a higher or a lower number is better.
        baseline: A trivial solution's value and what it does.
        note: What a reader has to know.
    """

    id: str
    title: str
    source: str
    task: str
    metric: str
    rows: tuple[Row, ...]
    unit: str = ""
    scale: float = 1.0
    form: str = ".2f"
    direction: Literal["higher", "lower"] = "higher"
    baseline: tuple[float, str] | None = None
    note: str = ""

    def row(self, name: str) -> Row:
        """The row of that name.

        Args:
            name: The row's ``id``.

        Raises:
            ValueError: If there is none; the message lists all and the nearest.
        """
        return {row.id: row for row in self.rows}[choice("row", name, [r.id for r in self.rows])]

    def reduced(self, budget: Budget) -> Table:
        """The same table on a smaller budget; its runs are marked ``reduced``.

        Args:
            budget: What to reduce; each run follows as far as its task has such an option.

        Returns:
            The table itself if the budget changes nothing.

        Raises:
            ValueError: If no task of the table has such an option.
        """
        tasks = {row.run.task for row in self.rows if row.run is not None}
        for name in budget.changes():
            if name != "epochs" and not any(name in BUDGET.get(task, {}) for task in tasks):
                known = [task for task, options in BUDGET.items() if name in options]
                raise ValueError(
                    message(
                        f"{name} must belong to a task that lets it be chosen: {', '.join(known)}",
                        f"table {self.id!r} with {', '.join(sorted(tasks))}",
                        f"leave out --{name.replace('_', '-')}",
                    )
                )
        if not budget.changes():
            return self
        rows = (r if r.run is None else replace(r, run=shrink(r.run, budget)) for r in self.rows)
        return replace(self, rows=tuple(rows))


def shrink(run: Run, budget: Budget) -> Run:
    """The run on a smaller budget, marked ``reduced``.

    Args:
        run: The run at full budget.
        budget: What to reduce.

    Raises:
        ValueError: If the length does not fit the task.

    Example:
        >>> run = Run("adding", "LEM", {"length": 500}, epochs=60, batch_size=50)
        >>> small = shrink(run, Budget(epochs=1, train_size=200))
        >>> small.epochs, small.task_options["steps_per_epoch"], small.reduced
        (1, 4, True)
    """
    changes: dict[str, Any] = {"reduced": True}
    if budget.epochs is not None:
        changes["epochs"] = min(run.epochs, budget.epochs)
        if run.lr_drop_epoch is not None:
            drop = round(run.lr_drop_epoch * changes["epochs"] / run.epochs)
            changes["lr_drop_epoch"] = max(1, drop)
    options = dict(run.task_options)
    for name, value in budget.changes().items():
        for option in BUDGET.get(run.task, {}).get(name, ()):
            if option == "pool":
                value = {28**2 // (k * k): k for k in (1, 2, 4, 7, 14)}.get(value)
                if value is None:
                    raise ValueError(
                        message(
                            f"length of {run.task} must be 784, 196, 49, 16 or 4",
                            f"length={budget.length}",
                            "choose one of these",
                        )
                    )
            elif option == "steps_per_epoch":
                value = -(-value // run.batch_size)
            options[option] = value
    return replace(run, task_options=options, **changes)


def without_budget(run: Run) -> Run:
    """The run without seed and budget: equal for a run and its reduced or reseeded forms."""
    dropped = {option for options in BUDGET.get(run.task, {}).values() for option in options}
    kept = {k: v for k, v in run.task_options.items() if k not in dropped}
    return replace(run, task_options=kept, seed=0, epochs=1, lr_drop_epoch=None, reduced=False)
