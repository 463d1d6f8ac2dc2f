"""Choice of open settings from the data, so that a model learns with its defaults.

The rules come from public data sets; docs/recipe.md explains them with the measurements. Rules may
change in later versions, while an existing `Run` never changes.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anharmonic import _checks
from anharmonic.data.base import Task, counted
from anharmonic.data.own import FileTask, SequencesTask
from anharmonic.data.registry import make_task, task_class
from anharmonic.nn.registry import canonical_name, model_class, model_kind
from anharmonic.train.options import (
    HIDDEN_SIZE,
    check_fitted_task,
    check_kinds,
    check_task_options,
    frozen_defaults,
    model_option_parameters,
    task_option_parameters,
)
from anharmonic.train.results import Result
from anharmonic.train.run import Run, RunEnvironment

# Below this, a validation set of 15 % is too small to choose an epoch, and training needs all
# sequences.
_FEW_SEQUENCES = 300
_NOT_VALIDATED = (
    "No sequences are set aside for validation, because fewer than "
    f"{_FEW_SEQUENCES} sequences or windows would remain for training."
)
# With at most as many training sequences per class, resonators were as accurate as networks or
# within a point on 19 of 19 development sets (benchmarks/accuracy.md).
_FEW_PER_CLASS = 100
# Optimiser steps; more if five epochs need more.
STEPS = 2000
"""Number of optimiser steps of a training on sequences."""
# Sequences longer than 1.5 times this are patched to about this length.
_PATCHED_STEPS = 600
# Above this ratio between large and small sequences each is scaled separately.
_MOST_SPREAD = 20.0
# Features of more sequences would not fit into memory (about 26 float64 per oscillator).
_OSCILLATORS, _FEWEST, _MOST_RESPONSES = 1000, 50, 4_000_000
FILLED_OPTIONS = frozenset(
    {
        "hidden_size",
        "num_layers",
        "bidirectional",
        "dropout",
        "dt",
        "frequency",
        "damping",
        "timescale_range",
        "chrono_length",
        "min_stiffness",
        "num_oscillators",
        "pools",
        "difference",
        "scale_each",
        "elapsed",
        "missing",
        "scale_target",
        "valid_share",
        "metric",
        "conv",
        "aggr",
        "encoder_activation",
        "gate_scale",
        "input_dropout",
        "neighbours",
        "output_dropout",
        "p",
        "residual",
        "scale_rows",
        "separate_gate",
        "shared",
        "single_rate",
    }
)
"""Options of models and tasks that a recipe may fill."""
STEP_OPTIONS = frozenset({"dt", "frequency", "damping", "timescale_range", "chrono_length"})
"""Of these the options for which only some models of sequences have a rule."""
MODELS_WITH_STEPS = ("LEM", "CoRNN", "UnICORNN")
"""The models of sequences that have one."""
# A stream has no end, no later samples, and uniform times.
_STREAM: dict[str, dict[str, dict[str, Any]]] = {
    "sequence": {"model_options": {"bidirectional": False}, "task_options": {"scale_each": False}},
    "fitted": {
        "model_options": {"scaling": "train"},
        "task_options": {"scale_each": False, "elapsed": "ignore"},
    },
}


@dataclass(frozen=True)
class DataFacts:
    """Facts about the data that the rules use.

    Args:
        sequences: Number N of training sequences.
        steps: Steps T that 95 % of them do not exceed.
    """

    sequences: int
    steps: int

    @classmethod
    def of(cls, task: Task) -> DataFacts:
        """Collect the facts of a task's data; read the data if necessary."""
        batch = task.loaders(0, 1).test[0]
        steps = batch.x.shape[1]
        if task.carries_state:  # windows of one text
            return cls(task.sizes["train"] // steps, steps)
        train = task.splits().train
        if train is not None and train.lengths is not None:
            steps = math.ceil(np.quantile(train.lengths.numpy(), 0.95))
        elif train is not None and isinstance(task, SequencesTask):
            steps = train.x.shape[1]  # those of the test set may have other lengths
        return cls(task.sizes["train"], steps)


@dataclass(frozen=True)
class Recipe:
    """A complete run, its task, and the settings chosen from the data.

    Example:
        >>> from anharmonic.data import make_task
        >>> recipe("LEM", make_task("digits")).chosen["dt"]
        0.5
    """

    run: Run
    """The run."""
    source: Task
    """The task as first read; `task_of` derives the run's task from it."""
    chosen: dict[str, Any]
    """Chosen values by name of the field or option."""
    why: str = ""
    """Reason for the choice in one sentence; may be empty."""

    @property
    def task(self) -> Task:
        """The run's task."""
        task = self.task_of(self.run)
        assert task is not None
        return task

    def task_of(self, run: Run) -> Task | None:
        """Return the task of a run on the same data, without reading them again.

        Args:
            run: The recipe's run, or one that differs from it.

        Returns:
            The task; None if other options require a new one.
        """
        if isinstance(self.source, SequencesTask):
            options = frozen_defaults("task", run.task) | run.task_options
            return self.source.with_options({k: v for k, v in options.items() if k != "sha256"})
        return self.source if run.task_options == self.run.task_options else None

    def describe(self) -> str:
        """The choices in one line.

        Example:
            >>> from anharmonic.data import make_task
            >>> recipe("LEM", make_task("digits")).describe()[:22]
            'Chosen from the data: '
        """
        if not self.chosen:
            return "No setting was chosen from the data: each is a default or was set by you."
        said = f"Chosen from the data: {listed_settings(self.chosen)}."
        return f"{said} {self.why[:1].upper()}{self.why[1:]}" if self.why else said


def recipe(model: str, task: Task, given: Mapping[str, Any] | None = None) -> Recipe:
    """Choose the settings that a user left open.

    Args:
        model: Name of the model.
        task: The task, made with the given options.
        given: Fixed fields of `Run`. Entries of "model_options" and "task_options" are fixed
            individually. The digest of a file may be missing.

    Raises:
        ValueError: If a given value is out of range, or is no field of `Run`.
        TypeError: If task is no task, such as its name.

    Example:
        >>> from anharmonic.data import make_task
        >>> made = recipe("LEM", make_task("digits"), {"lr": 0.01})
        >>> made.run.lr, made.run.schedule, "lr" in made.chosen
        (0.01, 'one_cycle', False)
    """
    given = dict(given or {})
    name = canonical_name(model)
    advice = "make it with anharmonic.data.make_task"
    _checks.require(isinstance(task, Task), "task", task, "a task", advice, TypeError)
    check_kinds(task.name, name)
    settings = {entry.name for entry in dataclasses.fields(Run)}
    for key in given:
        advice = f"put options of {name} into model_options, those of the task into task_options"
        _checks.require(key in settings, "a given setting", key, "a field of Run", advice)
    options = {key: dict(given.pop(key, {})) for key in ("model_options", "task_options")}
    if task.digest is not None:
        options["task_options"]["sha256"] = task.digest
    fields, filled_model_options, task_options, why = _settings(name, task, given | options)
    ignored = options["task_options"].get("elapsed") == "ignore"
    if ignored and isinstance(task, SequencesTask) and task.has_times:
        why = f"{why} The times between samples differ, and the model does not use them.".strip()
    known = model_option_parameters(name)
    filled_model_options = {k: v for k, v in filled_model_options.items() if k in known}
    chosen = {key: value for key, value in fields.items() if key not in given}
    run = Run(
        task=task.name,
        model=name,
        model_options=filled_model_options | options["model_options"],  # given values win
        task_options=task_options | options["task_options"],
        **(fields | given),
    )
    for kind, found in (("model_options", filled_model_options), ("task_options", task_options)):
        # "pools" is the same for all data.
        fixed = {"pools", *options[kind]}
        chosen |= {key: value for key, value in found.items() if key not in fixed}
    return Recipe(run, task, chosen, why)


def open_task(name: str, options: Mapping[str, Any], environment: RunEnvironment) -> Task:
    """Make a task from which to choose settings. This reads the user's file.

    To train a stored run, use `Run.make_task` instead.

    Args:
        name: Name of the task.
        options: Its options. Those of a run may differ; see `Recipe.task_of`.
        environment: Says where the data are.
    """
    options = check_task_options(name, options)
    # Allow gaps for now, so that the recipe can detect them; `task_of` prepares the data again with
    # the run's own options.
    may_miss = {} if name != FileTask.name or "missing" in options else {"missing": "mask"}
    return make_task(
        name,
        frozen_defaults("task", name) | options | may_miss,
        environment.data_dir,
        environment.file,
        progress=environment.progress,
    )


def fill(model: str, task: str, given: Mapping[str, Any], environment: RunEnvironment) -> Recipe:
    """Make a task by name and choose the settings that were left open.

    Args:
        model: Name of the model.
        task: Name of the task.
        given: As in `recipe`.
        environment: Says where the data are.

    Raises:
        ValueError: If a given value is out of range, or the data are invalid.

    Example:
        >>> fill("LEM", "digits", {"lr": 0.01}, RunEnvironment()).run.lr
        0.01
    """
    check_kinds(task, canonical_name(model))  # before reading data
    options = {**task_class(task).recommended, **given.get("task_options", {})}
    source = open_task(task, options, environment)
    return recipe(model, source, {**given, "task_options": options})


def folds_of(run: Run, folds: int) -> list[Run]:
    """Return a run for each fold of the user's file.

    Args:
        run: A run on the task "file".
        folds: Number of folds, at least 2.

    Example:
        >>> run = Run("file", "LEM", {"sha256": "0" * 64})
        >>> [one.task_options["fold"] for one in folds_of(run, 3)]
        [0, 1, 2]
    """
    _checks.require(folds >= 2, "folds", folds, "at least 2", "give a whole number such as 5")
    options = [run.task_options | {"folds": folds, "fold": fold} for fold in range(folds)]
    return [dataclasses.replace(run, task_options=one) for one in options]


def refitted(results: Sequence[Result]) -> Run:
    """Return a run on training and validation data together, with the best number of epochs.

    Args:
        results: Results of one run, or of runs that differ in fold or seed.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from pathlib import Path
        >>> from anharmonic.train import fit
        >>> folder = Path(tempfile.mkdtemp())
        >>> np.savez(folder / "mine.npz", x=np.zeros((20, 5, 2)), y=np.arange(20) % 2)
        >>> environment = RunEnvironment(file=folder / "mine.npz", out=folder, progress=False)
        >>> given = {"epochs": 1, "model_options": {"hidden_size": 4}}
        >>> result = fit(fill("LEM", "file", given, environment).run, environment)
        >>> refitted([result]).task_options["valid_share"]
        0.0
    """
    first = results[0].run
    options = {k: v for k, v in first.task_options.items() if k not in ("folds", "fold")}
    first = dataclasses.replace(first, task_options=options | {"valid_share": 0.0})
    if model_kind(first.model) == "fitted":
        return first
    epochs = round(statistics.fmean(result.best_epoch for result in results))
    return dataclasses.replace(first, epochs=epochs, select="last", patience=None)


def _settings(
    model: str, task: Task, given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]:
    """Return fields of the run, options of model and task, and the reason."""
    if model_kind(model) == "fitted":
        options, task_options = _fitted_settings(model, task, given)
        why = _NOT_VALIDATED if "valid_share" in task_options else ""
        return {}, options, task_options, why
    if model_kind(model) == "sequence":
        _check_elapsed(model, task)
        facts = DataFacts.of(task)
        task_options = _preparation(task, facts, given) if isinstance(task, SequencesTask) else {}
        validated = task.sizes["valid"] > 0 and task_options.get("valid_share") != 0
        fields = _training_settings(task, facts, given, validated)
        if model == "UnICORNN":
            fields["lr"] = 1e-2
        patch = _checks.positive_int("patch", given.get("patch", fields.get("patch", 1)))
        why = ""
        if "valid_share" in task_options:
            why = f"{_NOT_VALIDATED} The weights after the last epoch are kept."
        if isinstance(task, SequencesTask) and task.target == "class" and task.readout == "last":
            # Windows of one recording are too alike to count each.
            unused = task.recordings["valid"] if "valid_share" in task_options else 0
            per_class = (task.recordings["train"] + unused) / task.output_size
            if per_class <= _FEW_PER_CLASS:
                one = "recording" if task.preprocessing.window else "sequence"
                many = counted(round(per_class), f"training {one}")
                why += (
                    f" With {many} per class, resonators are usually "
                    "more accurate: anharmonic train resonators FILE."
                )
        readout = given.get("readout", fields.get("readout", "last"))
        remembers = task.readout != "all" and readout == "last"
        steps = math.ceil(facts.steps / patch)
        options = _model_settings(model, task, steps, remembers, given["model_options"])
        return fields, options, task_options, why.strip()
    if model_kind(model) == "graph":
        from anharmonic.train.recipe_graphs import graph_settings  # loads graph networks

        fields, options, why = graph_settings(model, task, given["model_options"])
        return fields, options, {}, why
    return {}, {}, {}, ""


def _check_elapsed(model: str, task: Task) -> None:
    """Refuse uneven times as time steps of a model without a time step."""
    used = isinstance(task, SequencesTask) and task.preprocessing.elapsed == "step"
    if used and not getattr(model_class(model), "has_step_size", False):
        came = f"uneven times as time steps of {model}, which has none"
        advice = (
            "say --elapsed channel (elapsed='channel') to read the times as an input, or train "
        )
        advice += f"another model, such as {_checks.listed(MODELS_WITH_STEPS, 'or')}"
        raise ValueError(_checks.message("--elapsed step must suit the model", came, advice))


def _fitted_settings(
    model: str, task: Task, given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of a model fitted in one pass, and of its task."""
    check_fitted_task(model, task)
    if importlib.util.find_spec("sklearn") is None:
        raise _checks.missing_extra("scikit-learn", "sklearn", f"fitting {model}")
    facts, task_options = DataFacts.of(task), {}
    if isinstance(task, SequencesTask):
        task_options = _preparation(task, facts, given)
        del task_options["difference"]  # oscillators compute differences themselves
    from anharmonic.nn.resonators.draw import DEFAULT_POOLS

    options: dict[str, Any] = {"pools": list(DEFAULT_POOLS)}  # the frozen default is older
    if facts.sequences * _OSCILLATORS > _MOST_RESPONSES:
        options["num_oscillators"] = max(_FEWEST, _MOST_RESPONSES // facts.sequences)
    return options, task_options


def _training_settings(
    task: Task, facts: DataFacts, given: Mapping[str, Any], validated: bool
) -> dict[str, Any]:
    """Return optimiser, budget and readout for sequences."""
    few = facts.sequences < 1000
    batch_size = _checks.positive_int("batch_size", given.get("batch_size", 16 if few else 32))
    per_epoch = len(task.loaders(0, batch_size).train(0))
    # The budget is a number of optimiser steps, for any number of epochs.
    fields: dict[str, Any] = {
        "epochs": max(5, round(STEPS / per_epoch)),
        "batch_size": batch_size,
        "lr": 5e-3,
        "schedule": "constant" if given.get("lr_drop_epoch") else "one_cycle",
        "optimizer": "adamw",
        "weight_decay": 0.01,
        "clip_norm": 1.0,
        "select": "best" if validated else "last",
    }
    if task.target != "value" and task.readout != "all":
        fields |= {"readout": "mean"}
        if task.target == "class":
            fields |= {"label_smoothing": 0.1}
        if facts.steps > 1.5 * _PATCHED_STEPS and not task.tokens:
            fields["patch"] = round(facts.steps / _PATCHED_STEPS)
    if few and isinstance(task, SequencesTask):
        fields |= {"input_noise": 0.05, "amplitude_noise": 0.1}
    return fields


def _model_settings(
    model: str, task: Task, steps: int, remembers: bool, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return width, direction and time step for sequences of this length after patching.

    `remembers` says that the last output alone predicts, so that the state must hold all of a
    sequence.
    """
    # Where the last output predicts: on seven development sets of the UCR archive (128 to 463
    # steps, one direction, 1,000 optimiser steps, tested on a part of the training files),
    # chrono_length raised LEM from 81.0 to 86.6 %, and the settings below raised coRNN from 55.3 to
    # 72.9 %. A value shown early in 300 steps was learned by LEM only with chrono_length, and by
    # coRNN in part and only with these settings. Forecasts were as good as before.
    options: dict[str, Any] = {"hidden_size": HIDDEN_SIZE}
    if task.target != "value" and task.readout != "all":
        options["bidirectional"] = True
    if model == "LEM":
        # With dt = 1 gradients explode over a few hundred steps, and some seeds learn nothing.
        options["dt"] = 0.5
        can = given.get("multiscale", True) and given.get("bias", True)
        if remembers and can and steps * given.get("dt", 0.5) > 2:
            options["chrono_length"] = steps
    elif model == "CoRNN" and remembers:
        options |= {"dt": min(0.5, 20 / steps), "frequency": 1.0, "damping": 1.0}
    elif model == "CoRNN":
        # Short series need steps large enough to cover a whole oscillation.
        options |= {"dt": min(0.5, max(0.1, 12 / steps)), "frequency": 3.0, "damping": 3.0}
    elif model == "UnICORNN":
        # Neurons with different initial speeds find slow and fast parts of a series sooner.
        options |= {"dt": min(0.5, max(0.1, 12 / steps)), "num_layers": 2, "timescale_range": 2.0}
    elif model == "LinOSSNetwork":
        from anharmonic.nn.sequence.linoss import MIN_STIFFNESS

        options["min_stiffness"] = MIN_STIFFNESS  # the frozen default is older
    return options


def _preparation(task: SequencesTask, facts: DataFacts, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the task "file"."""
    options: dict[str, Any] = {"difference": True}
    if task.has_gaps:
        # In a series far from the mean, filling with the mean would be a spike (two with
        # differences).
        options["missing"] = "forward"
    uncut = task.options.window is None and task.options.horizon is None
    if uncut and task.spread_of_sizes > _MOST_SPREAD:
        # With a common scale most of them would be close to 0 for the model.
        options["scale_each"] = True
    if task.has_times:
        # With "step" a long gap would make the time step unstable.
        options["elapsed"] = "channel"
    chooses = given.get("select", "last") != "last" or given.get("patience") is not None
    parted = bool({"folds", "valid_share"} & given["task_options"].keys()) or task.has_own_valid
    if facts.sequences < _FEW_SEQUENCES and not chooses and not parted:
        options["valid_share"] = 0.0
    if task.target == "value":
        options["scale_target"] = True
    if task.is_unbalanced and "metric" not in given["task_options"]:
        # Otherwise always predicting the most frequent class would look like learning.
        options["metric"] = "balanced_accuracy"
    return options


def listed_settings(settings: Mapping[str, Any]) -> str:
    """Format settings for display.

    Example:
        >>> listed_settings({"lr": 0.005, "bidirectional": True})
        'lr 0.005, bidirectional True'
    """
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in settings.items()
    )


def streaming_options(model: str, task: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's fields with the settings that a streaming model needs."""
    needs, advice = _STREAM.get(model_kind(model), {}), "leave --streaming out"
    _checks.require(bool(needs), "--streaming", model, "for a model of sequences", advice)
    made = dict(given)
    for field, wanted in needs.items():
        options = made[field] = dict(made.get(field, {}))
        model_field = field == "model_options"
        known = model_option_parameters(model) if model_field else task_option_parameters(task)
        for name in wanted.keys() & known.keys():
            value = options.setdefault(name, wanted[name])
            flag, expected = _checks.flag(name), f"{wanted[name]} with --streaming"
            _checks.require(value == wanted[name], flag, value, expected, f"leave {flag} out")
    return made
