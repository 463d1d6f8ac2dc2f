"""``anharmonic train MODEL TASK``: train a model on a task or on the user's file."""

# No postponed annotations, because tyro reads those of a function made for the two names.
import dataclasses
import shlex
import statistics
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

from anharmonic._checks import choice, distinct, flag, listed, message, require, text_of
from anharmonic._processes import return_large_blocks
from anharmonic.cli.flags import (
    fields_of,
    hanging,
    named,
    open_fields_of,
    options_of,
    run_command,
)
from anharmonic.data.base import Task
from anharmonic.data.metrics import PERCENT, shown_metric
from anharmonic.data.readers import FILE_SUFFIXES, is_graph_file
from anharmonic.data.registry import OWN_DATA, SHARDS_INDEX, list_tasks, task_class
from anharmonic.nn.registry import canonical_name, model_class, model_kind
from anharmonic.train.fit import fit
from anharmonic.train.folder import predict_command
from anharmonic.train.notices import has_learned, interval, no_stream, not_learned
from anharmonic.train.options import (
    check_model_options,
    frozen_defaults,
    model_option_parameters,
    task_option_parameters,
)
from anharmonic.train.recipe import (
    FILLED_OPTIONS,
    MODELS_WITH_STEPS,
    STEP_OPTIONS,
    fill,
    folds_of,
    refitted,
    streaming_options,
)
from anharmonic.train.results import Result, read_report
from anharmonic.train.run import FITTED_FIELDS, Run, RunEnvironment

PROG = "anharmonic train"
USAGE = (
    f"{PROG} MODEL TASK [OPTIONS]",
    f"{PROG} MODEL FILE [OPTIONS]",
    f"{PROG} MODEL FOLDER [OPTIONS]       (one file per recording)",
    f"{PROG} MODEL {SHARDS_INDEX} [OPTIONS]  (data larger than memory)",
    f"{PROG} --run RUN.json [OPTIONS]     (repeats a run exactly)",
)
# Above this the interval is narrower than the variation over seeds.
_MANY_TESTED = 2000


def run(words: Sequence[str]) -> int:
    """Run ``anharmonic train`` with these arguments and return the exit code."""
    if any(w == "--run" or w.startswith("--run=") for w in words):
        return run_command(train_stored, words, PROG)
    advice = f"for example {PROG} lem digits --epochs 5; see {PROG} --help, and `anharmonic list`"
    named(words, 2, parser, PROG, USAGE, advice)
    asked = read(words)
    given, start = asked.given, asked.environment.start_from
    if start is not None:
        from anharmonic.train.warm import given_like  # few runs start from other weights

        given = given_like(start, asked.model, asked.task, given)
    filled = fill(asked.model, asked.task, given, asked.environment)
    if asked.environment.progress:
        print(hanging("", filled.describe(), sys.stderr.isatty()), file=sys.stderr)
    seeds = asked.seeds or (filled.run.seed,)
    runs = [dataclasses.replace(filled.run, seed=seed) for seed in seeds]
    if asked.folds is not None:
        runs = [fold for run in runs for fold in folds_of(run, asked.folds)]
    results = [train(run, asked.environment, filled.task_of(run)) for run in runs]
    if len(results) > 1:
        print(spread(results))
    if asked.refit:
        run_of_all = refitted(results)
        train(run_of_all, asked.environment, filled.task_of(run_of_all))
    return 0


def spread(results: Sequence[Result]) -> str:
    """Return mean and standard deviation over seeds and folds in one line."""
    metric = results[0].metric
    parts = []
    for name in ("test", "valid"):
        values = [value for r in results if (value := getattr(r, name)) is not None]
        if len(values) == len(results):
            what = "validation" if name == "valid" else name
            mean, deviation = statistics.fmean(values), statistics.stdev(values)
            reached = shown_metric(mean, metric, results[0].tested)
            parts.append(f"{what} {metric} {reached} ± {deviation:.2g}")
    return f"{', '.join(parts)} (mean ± standard deviation of {len(results)} runs)"


def train_stored(
    run: Path, environment: Annotated[RunEnvironment, fields_of(RunEnvironment)]
) -> int:
    """Train exactly the run of a JSON file.

    Args:
        run: A run's JSON, for example the run.json of its folder.
        environment: Where to train it.

    Raises:
        FileNotFoundError: If there is no such file.
    """
    advice = "check the path"
    require(run.is_file(), "--run", str(run), "the file of a run's JSON", advice, FileNotFoundError)
    train(Run.from_json(text_of(run)), environment)
    return 0


@dataclasses.dataclass(frozen=True)
class Asked:
    """The contents of a command line of ``train``."""

    model: str
    task: str
    given: dict[str, Any]
    """Fields of the run set by flags."""
    environment: RunEnvironment
    seeds: tuple[int, ...]
    folds: int | None
    refit: bool


def read(words: Sequence[str]) -> Asked:
    """Read a command line."""
    command = parser(*names(words[0], words[1]), words)
    return run_command(command, words[2:], f"{PROG} {words[0]} {words[1]}")


def parser(
    model: str = "", task: str = "", file: Path | None = None, words: Sequence[str] = ()
) -> Callable[..., Asked]:
    """Return the parser of the flags of a model and a task, or without names of any run."""

    def command(
        run: Annotated[dict[str, Any], run_flags(model)],
        model_options: Annotated[dict[str, Any], model_flags(model, words)],
        task_options: Annotated[dict[str, Any], task_flags(task, words)],
        environment: Annotated[RunEnvironment, fields_of(RunEnvironment, file=file)],
        seeds: tuple[int, ...] = (),
        folds: int | None = None,
        refit: bool = False,
        streaming: bool = False,
        new_head: bool = False,
    ) -> Asked:
        """Train a model on a built-in task or on your own file.

        The help of a model and a task (train lem digits --help-all) lists their options, too.
        Settings that are left out follow from the data; they are printed unless --no-progress is
        given.

        Args:
            run: The settings.
            model_options: Options of the model.
            task_options: Options of the task.
            environment: Where to train it.
            seeds: Train once with each of these seeds. Prints mean and standard deviation.
            folds: Cross-validate with this many folds. Needs your own file; the test set stays the
                same. Classes keep their shares, groups stay whole. Prints mean and standard
                deviation.
            refit: Finally train on training and validation data. Needs your own file; takes as many
                epochs as were best.
            new_head: Initialise the output layer randomly, for other classes or values. Only with
                --from.
            streaming: Train a model that runs sample by sample. It reads forwards only, and can be
                exported to C. Resonators then do not use the times between samples.
        """
        options = dict(task_options)
        if folds is not None or refit:
            name = "--folds" if folds is not None else "--refit"
            advice = f"leave {name} out, or train on a file"
            require(
                task == "file", name, folds or refit, "left out, except for your own file", advice
            )
        if folds is not None:
            options["folds"] = folds
        distinct("seeds", seeds)
        fits, advice = not seeds or "seed" not in run, "leave one of them out"
        require(fits, "--seed", run.get("seed"), "left out with --seeds", advice)
        given = {**run, "task_options": options, "model_options": model_options}
        if new_head:
            begun, advice = environment.start_from is not None, "pass --from RUN_FOLDER too"
            require(begun, "--new-head", new_head, "left out without --from", advice)
            given["new_head"] = True
        if streaming:
            given = streaming_options(model, task, given)
        return Asked(model, task, given, environment, seeds, folds, refit)

    return command


def command_of(run: Run) -> str:
    """Return the command that trains a run, with every setting spelled out.

    Args:
        run: The run. Its ``reduced`` is omitted.

    Example:
        >>> command_of(Run("adding", "LEM", epochs=15))[:48]
        'anharmonic train LEM adding --seed 0 --epochs 15'
    """
    known = model_option_parameters(run.model)
    defaults = frozen_defaults("model", run.model) | check_model_options(run.model, {})
    filled = FILLED_OPTIONS.intersection(known, defaults)
    advised = task_class(run.task).recommended
    usual = {k: task_option_parameters(run.task)[k].default for k in advised}
    options = {k: defaults[k] for k in filled} | run.model_options | usual | run.task_options
    words = [run.model, run.task]
    for field in dataclasses.fields(Run):
        value = getattr(run, field.name)
        if field.name in (*_NO_FLAGS, "reduced"):
            continue
        if value is None and field.name != "clip_norm":
            continue
        words += [flag(field.name), *map(str, value if isinstance(value, tuple) else (value,))]
    for name, value in sorted(options.items()):
        if isinstance(value, bool) and name not in (*filled, *advised):
            words.append(flag(name if value else f"no_{name}"))
        else:
            words += [flag(name), *map(str, value if isinstance(value, list | tuple) else [value])]
    return f"{PROG} {shlex.join(words)}"


_NO_FLAGS = ("task", "model", "task_options", "model_options", "initial", "new_head", "code")


def run_flags(model: str, left_out: Collection[str] = ()) -> Any:
    """Return the fields of a run of a model (any if empty) as flags, parsed to a dict."""
    names = [entry.name for entry in dataclasses.fields(Run)]
    if model and model_kind(model) == "fitted":
        names = [name for name in names if name in FITTED_FIELDS]
    named = {*_NO_FLAGS, *left_out}
    return open_fields_of(Run, [name for name in names if name not in named])


def model_flags(model: str, words: Sequence[str] = ()) -> Any:
    """Return the options of a model as flags; none for an empty name."""
    if not model:
        return options_of(Run, {}, {})
    known = model_option_parameters(model)
    # Widths and steps are still "auto"; `train/recipe.py` chooses them.
    defaults = frozen_defaults("model", model) | check_model_options(model, {})
    filled = FILLED_OPTIONS.intersection(known)
    if model_kind(model) == "sequence" and model not in MODELS_WITH_STEPS:
        filled -= STEP_OPTIONS
    return options_of(model_class(model), known, defaults, filled, words)


def task_flags(task: str, words: Sequence[str] = ()) -> Any:
    """Return the options of a task as flags; none for an empty name."""
    if not task:
        return options_of(Run, {}, {})
    # The hash of a file is computed.
    known: Mapping[str, Parameter] = {
        name: p
        for name, p in task_option_parameters(task).items()
        if name not in ("sha256", "folds", "fold")
    }
    filled = {*FILLED_OPTIONS.intersection(known), *task_class(task).recommended}
    return options_of(task_class(task), known, frozen_defaults("task", task), filled, words)


def names(model: str, task: str) -> tuple[str, str, Path | None]:
    """Return canonical model and task, and the user's file if the second argument names one."""
    name = canonical_name(model)
    graph = model_kind(name) == "graph"
    path = Path(task)
    known = [t for t in list_tasks() if t not in OWN_DATA]
    if task.lower() in known:
        if path.is_dir():
            text = f"{path} is taken as the task of this name. For the folder say ./{path}."
            warnings.warn(text, stacklevel=2)
        return name, task.lower(), None
    if path.name == SHARDS_INDEX or (path / SHARDS_INDEX).is_file():
        return name, "shards", path / SHARDS_INDEX if path.is_dir() else path
    if path.is_dir() and not graph:
        from anharmonic.data.recordings import holds_recordings  # for folders alone

        if holds_recordings(path):
            return name, "file", path
        expected = f"{path} must hold a file for every recording, such as .wav, .npy or .csv"
        advice = f"check the path, or name a task: {', '.join(known)}"
        raise ValueError(message(expected, f"{path} (a folder) without one", advice))
    if path.suffix.lower() not in FILE_SUFFIXES:
        if not path.suffix and not path.exists():
            choice("task", task.lower(), known)
        raise ValueError(
            message(
                f"your own data must be a file that ends in {listed(FILE_SUFFIXES, 'or')}",
                f"{path}{' (a folder)' * path.is_dir()}",
                "save the graph with anharmonic.data.save_graph(path, data)"
                if graph
                else "take the .ts files of the same archive"
                if path.suffix.lower() == ".arff"
                else f"save them as one of these, or name a task: {', '.join(known)}",
            )
        )
    expected = "an existing file"
    advice = "check the path; `anharmonic list tasks` shows the tasks that need no file"
    require(path.is_file(), "your own data", str(path), expected, advice, FileNotFoundError)
    return name, "graph" if graph or is_graph_file(path) else "file", path


def train(run: Run, environment: RunEnvironment, task: Task | None = None) -> Result:
    """Train a run and print the result."""
    if run.model_options.get("checkpoint"):
        return_large_blocks()
    result = fit(run, environment, task)
    folder = environment.out / run.folder_name

    def shown(value: float) -> str:
        return shown_metric(value, result.metric, result.tested)

    lines = {f"test {result.metric}": f"{shown(result.test)} (seed {run.seed}{_sure(result)})"}
    if result.trivial is not None:
        lines["baseline"] = f"{shown(result.trivial)}{_not_better(result)}"
    if said := not_learned(result):
        lines["training"] = said
    if result.valid is not None:
        chosen = f" (epoch {result.best_epoch})" if model_kind(run.model) != "fitted" else ""
        lines[f"validation {result.metric}"] = f"{shown(result.valid)}{chosen}"
    lines |= {
        "parameters": str(result.parameters),
        "seconds": f"{result.seconds:.1f}",
    }
    if said := no_stream(run):
        lines["streaming"] = said
    # The results file may contain a result whose folder was moved or deleted.
    if folder.is_dir():
        lines["run folder"] = str(folder)
        if run.task in OWN_DATA:
            lines["to predict"] = predict_command(folder, environment.file)
    width = max(map(len, lines))
    for name, value in lines.items():
        typed = name in ("run folder", "to predict")  # unwrapped for copying
        print(hanging(f"{name.ljust(width)}  ", value, sys.stdout.isatty() and not typed))
    if (report := read_report(folder)) is not None:
        from anharmonic.pages import report_text

        print(report_text(report))
    return result


def _sure(result: Result) -> str:
    """Return the accuracy's confidence interval for few test sequences; "" for many."""
    found = interval(result)
    if found is None or (result.tested_sequences or result.tested or 0) > _MANY_TESTED:
        return ""
    low, high, answers = found
    return f"; 95 % interval from {answers}: {low:.3g} to {high:.3g} %"


def _not_better(result: Result) -> str:
    assert result.trivial is not None
    given = (result.test, result.trivial, result.metric, result.higher_is_better)
    if result.metric in PERCENT and result.trivial == 100:
        return " - all test targets are alike, so the test shows nothing: choose another split"
    if not has_learned(*given):
        longer = "" if model_kind(result.run.model) == "fitted" else "train longer, change lr, or "
        return f" - the model is NOT clearly better: {longer}try another model"
    found = interval(result)
    if found is not None and not has_learned(*given, spread=result.test - found[0]):
        return f" - {found[2]} cannot show that the model is better"
    return ""
