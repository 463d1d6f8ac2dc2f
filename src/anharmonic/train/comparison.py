"""Comparison of several models on one task, each with the recipe's settings, over seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from anharmonic._checks import distinct, positive_int, require
from anharmonic.data.base import counted
from anharmonic.data.registry import task_class
from anharmonic.nn.registry import canonical_name, model_kind
from anharmonic.train.estimate import expected_seconds
from anharmonic.train.recipe import Recipe, folds_of, open_task, recipe, streaming_options
from anharmonic.train.results import Result, read_old_fitted, read_results
from anharmonic.train.rows import Row, fit_rows, without_results
from anharmonic.train.run import RunEnvironment
from anharmonic.train.standings import Comparison, Plan, Standing, ordered
from anharmonic.train.watching import in_words

MODELS = {
    "sequence": ("Resonators", "LEM", "CoRNN", "UnICORNN", "LSTM", "GRU"),
    "graph": ("PlainGNN", "GraphCON", "GradientGating"),
    "tabular": ("NeuralODE",),
}
"""Default models of a comparison by kind of task."""


_LONG = 60.0
"""Above this many seconds, advice on a shorter comparison is given."""


def plan(
    task: str | Path,
    environment: RunEnvironment,
    *,
    models: Sequence[str] | None = None,
    given: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    folds: int | None = None,
    streaming: bool = False,
) -> Plan:
    """Choose the settings of every model before training; arguments as in `compare`."""
    name = str(task).lower()
    kind = task_class(name).kind
    require(len(seeds) > 0, "seeds", seeds, "at least one", "leave them out for 0, 1 and 2")
    distinct("seeds", seeds)
    advice = "leave it out, or compare on a file"
    require(
        folds is None or name == "file", "folds", folds, "None, except for your own file", advice
    )
    given = dict(given or {})
    options = {**task_class(name).recommended, **given.get("task_options", {})}
    if folds is not None:
        options["folds"] = folds
    given["task_options"] = options
    recipes: dict[str, Recipe] = {}
    errors: dict[str, Exception] = {}
    notes = []
    asked = MODELS[kind] if models is None else models
    require(bool(asked), "models", [], "at least one name", "leave them out for the usual ones")
    names = dict.fromkeys(map(canonical_name, asked))
    source = open_task(name, options, environment)
    for model in names:
        is_fitted = model_kind(model) == "fitted"
        fields = given
        if is_fitted:  # the other settings are those of a training
            fields = {key: given[key] for key in ("class_weights", "task_options") if key in given}
        try:
            if streaming:
                fields = streaming_options(model, name, fields)
            recipes[model] = recipe(model, source, fields)
        except (ValueError, TypeError, ImportError) as error:
            errors[model] = error
            if is_fitted and models is None:
                notes.append(f"{model} is left out: {errors.pop(model)}")
    trained = [model for model in names if model_kind(model) != "fitted"]
    if errors and (not recipes or errors.keys() >= set(trained) > set()):
        raise next(iter(errors.values()))  # the given settings suit no trained model
    title = name if environment.file is None else environment.file.stem.removesuffix("_TRAIN")
    refused = tuple(f"{model}: {error}" for model, error in errors.items())
    rows = tuple(_rows(recipes, seeds, folds))
    made = next(iter(recipes.values())).task
    return Plan(title, made, recipes, rows, environment, refused, tuple(notes))


def _rows(recipes: Mapping[str, Recipe], seeds: Sequence[int], folds: int | None) -> list[Row]:
    rows = []
    for seed in seeds:
        for model, found in recipes.items():
            run = dataclasses.replace(found.run, seed=seed)
            if folds is None:
                rows.append(Row(f"{model}, seed {seed}", run))
                continue
            for fold, one in enumerate(folds_of(run, folds)):
                rows.append(Row(f"{model}, seed {seed}, fold {fold}", one))
    return rows


def estimate(made: Plan) -> float:
    """Estimate the seconds of all runs without a result, from a few steps of every model."""
    total = 0.0
    missing = _missing(made)
    for model in made.recipes:
        runs = [row.run for row in missing if row.run.model == model]
        if runs:
            task = made.task_of(runs[0])
            total += len(runs) * expected_seconds(runs[0], task, made.environment)
    return total


def _missing(made: Plan) -> list[Row]:
    return without_results(made.rows, _known_results(made))


def _known_results(made: Plan) -> list[Result]:
    """Return all known results, those of older versions last."""
    path = made.environment.results_path
    return [*read_results(path), *read_old_fitted(path, [row.run for row in made.rows])]


def carry_out(
    made: Plan,
    jobs: int = 1,
    *,
    say: Callable[[str], None] = lambda text: None,
    describe: Callable[[Exception], str] = str,
    debug: bool = False,
) -> Comparison:
    """Train all runs without a result; a failed run does not stop the others.

    The results file records finished runs, so after an interruption the same call continues. Other
    arguments are as in `fit_rows`.
    """
    positive_int("jobs", jobs)
    environment = made.environment
    for note in made.notes:
        say(note)
    missing = _missing(made)
    if missing:
        done = len(made.rows) - len(missing)
        known = f" to run, {counted(done, 'result')} from earlier" if done else ""
        try:
            seconds = estimate(made) / min(jobs, len(missing))
            words = in_words(seconds) + (_shorter(made) if seconds > _LONG else "")
        except (ValueError, RuntimeError):  # the failing run reports the reason
            words = "unknown"
        say(f"{counted(len(missing), 'training')}{known}; estimated time: {words}")
    failed = fit_rows(
        missing,
        environment,
        jobs,
        task_of=made.task_of,
        say=say,
        describe=describe,
        debug=debug,
    )
    failures = (*made.refused, *failed)
    found = {result.hash: result for result in reversed(_known_results(made))}
    standings = []
    for model in made.recipes:
        runs = [row.run for row in made.rows if row.run.model == model]
        results = tuple(found[run.hash] for run in runs if run.hash in found)
        if results:
            standings.append(Standing(model, results))
    came = "; ".join(failures) or "no result; another process may be training them"
    require(bool(standings), "a comparison", came, "at least one finished run", "see the errors")
    return ordered(made, standings, failures)


def _shorter(made: Plan) -> str:
    """Return advice on how to shorten a comparison, or ""."""
    ways = []
    if _seeds(made) > 1:
        one = counted(len(made.rows) // _seeds(made), "training")
        ways.append(f"--seeds {made.rows[0].run.seed} is {one}")
    if len(made.recipes) > 1:
        ways.append("--models names fewer models")
    if (made.environment.threads or torch.get_num_threads()) > 1:  # busy cores slow threads down
        ways.append("--threads 1 is faster while the cores are busy")
    return f". For less, {' and '.join(ways)}" if ways else ""


def _seeds(made: Plan) -> int:
    return len({row.run.seed for row in made.rows})


def compare(
    task: str | Path,
    environment: RunEnvironment | None = None,
    *,
    models: Sequence[str] | None = None,
    given: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    folds: int | None = None,
    streaming: bool = False,
    jobs: int = 1,
    say: Callable[[str], None] = print,
) -> Comparison:
    """Train several models on one task and rank them.

    After an interruption, the same call continues where it stopped.

    Args:
        task: Name of the task. "file" is the file of sequences ``environment.file``, "graph" the
            same for a graph.
        environment: Where to train them.
        models: Names of models. Default: Resonators, LEM, CoRNN, UnICORNN, LSTM and GRU; for graphs
            PlainGNN, GraphCON and GradientGating.
        given: Fields of `Run` and options shared by all models; `recipe` chooses all others from
            the data.
        seeds: The seeds for every model, at least one.
        folds: For your own file, the number of cross-validation folds; every model is trained once
            per fold.
        streaming: Whether every model must run sample by sample.
        jobs: Number of parallel trainings, each in its own process.
        say: Called with a line on the expected time, and one about each training.

    Raises:
        ValueError: If a name is unknown, a value is out of range, or every run failed.

    Example:
        >>> import tempfile
        >>> environment = RunEnvironment(out=tempfile.mkdtemp(), progress=False)
        >>> given = {"epochs": 1, "model_options": {"hidden_size": 4}}
        >>> models, quiet = ("LEM", "LSTM"), lambda text: None
        >>> found = compare("digits", environment, models=models, given=given, seeds=[0], say=quiet)
        >>> len(found.standings), found.metric, found.judged_by
        (2, 'accuracy', 'validation')
    """
    environment = RunEnvironment() if environment is None else environment
    made = plan(
        task, environment, models=models, given=given, seeds=seeds, folds=folds, streaming=streaming
    )
    return carry_out(made, jobs, say=say)
