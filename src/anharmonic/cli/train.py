"""``anharmonic train MODEL TASK``: trains one model on one task, or on the user's own file."""

# Without postponed annotations: tyro reads those of a function made for the two names.
import dataclasses
import statistics
import sys
from collections.abc import Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

from anharmonic._checks import choice, distinct, listed, message, require, text_of
from anharmonic._processes import return_large_blocks
from anharmonic.cli.flags import fields_of, open_fields_of, options_of, run_command, typed
from anharmonic.data.files import FileTask, file_digest
from anharmonic.data.graphs.own import GraphFileTask
from anharmonic.data.readers import FILE_SUFFIXES
from anharmonic.data.registry import OWN_DATA, list_tasks, task_class
from anharmonic.data.scores import accuracy_interval
from anharmonic.data.shards import INDEX, ShardsTask
from anharmonic.nn.registry import canonical_name, model_class, model_kind
from anharmonic.train.fit import fit
from anharmonic.train.notices import not_learned
from anharmonic.train.options import (
    check_model_options,
    frozen_defaults,
    model_option_parameters,
    task_option_parameters,
)
from anharmonic.train.recipe import FILLED_OPTIONS, fill, folds_of, refitted
from anharmonic.train.results import Result
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.streaming import no_stream, streaming_options
from anharmonic.train.verdict import PERCENT

PROG = "anharmonic train"
USAGE = (
    f"usage: {PROG} MODEL TASK [OPTIONS]",
    f"       {PROG} MODEL FILE [OPTIONS]            (FILE: {', '.join(FILE_SUFFIXES)})",
    f"       {PROG} MODEL {INDEX} [OPTIONS]     (shards: data larger than memory)",
    f"       {PROG} --run RUN.json [OPTIONS OF THE ENVIRONMENT]",
)
# Above this the interval is narrower than what another seed changes.
_MANY_TESTED = 2000
# Set by the two names, not by flags of the run; their values here are of no importance.
_NAMED: dict[str, Any] = {"task": "adding", "model": "LEM", "task_options": {}, "model_options": {}}


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic train``.

    Returns:
        The exit code.

    Raises:
        ValueError: If a name or an option is wrong.
    """
    if any(w == "--run" or w.startswith("--run=") for w in words):
        return run_command(train_stored, words, PROG)
    named = [w for w in words[:2] if not w.startswith("-")]
    helps = [word for word in words if word in ("-h", "--help", "-H", "--help-verbose")]
    if len(named) < 2 and helps:
        print("\n".join(USAGE), end="\n\n")
        return run_command(train_anything, helps, f"{PROG} MODEL TASK", compact=True)
    require(
        len(named) == 2,
        PROG,
        " ".join(words) or "nothing",
        "called with a model and a task first",
        f"for example {PROG} lem digits --epochs 5; see {PROG} --help, and `anharmonic list`",
    )
    asked = read(words)
    first = fill(asked.model, asked.task, asked.given, asked.environment)
    if asked.environment.progress:
        print(first.describe(), file=sys.stderr)
    seeds = asked.seeds or (first.run.seed,)
    runs = [dataclasses.replace(first.run, seed=seed) for seed in seeds]
    if asked.folds is not None:
        runs = [fold for run in runs for fold in folds_of(run, asked.folds)]
    results = [train(run, asked.environment) for run in runs]
    if len(results) > 1:
        print(spread(results))
    if asked.refit:
        train(refitted(results), asked.environment)
    return 0


def spread(results: Sequence[Result]) -> str:
    """Mean and standard deviation over seeds and folds, in a line.

    Args:
        results: Those of runs that differ in seed and fold only; two or more.
    """
    metric = results[0].metric
    parts = []
    for name in ("test", "valid"):
        values = [value for r in results if (value := getattr(r, name)) is not None]
        if len(values) == len(results):
            what = "validation" if name == "valid" else name
            mean, deviation = statistics.fmean(values), statistics.stdev(values)
            parts.append(f"{what} {metric} {mean:.6g} ± {deviation:.2g}")
    return f"{', '.join(parts)} (mean ± standard deviation of {len(results)} runs)"


def train_anything(
    run: Annotated[Run, open_fields_of(Run, **_NAMED)],
    environment: Annotated[RunEnvironment, fields_of(RunEnvironment, file=None)],
    seeds: tuple[int, ...] = (),
    folds: int | None = None,
    refit: bool = False,
    streaming: bool = False,
) -> int:
    """Options of every run. `anharmonic train MODEL TASK --help` adds those of the two.

    What is "auto" is chosen from the data, and printed.

    Args:
        run: What is trained.
        environment: Where it is trained.
        seeds: Several seeds, one after the other, instead of --seed: --seeds 0 1 2. Prints mean and
            standard deviation.
        folds: Of your own file: cuts all but the test part into so many parts (classes in their
            shares, groups whole), trains once for each as validation part, and prints mean and
            standard deviation.
        refit: Of your own file: in the end trains on training and validation data together, for
            as many epochs as were best.
        streaming: Trains a model that can run sample by sample, and be exported to C: one that
            reads forwards only.
    """
    return 0


def train_stored(run: Path, environment: RunEnvironment) -> int:
    """Trains exactly the run of a JSON file.

    Args:
        run: A run's JSON, for example the run.json of its folder.
        environment: Where it is trained.

    Raises:
        FileNotFoundError: If there is no such file.
    """
    require(
        run.is_file(),
        "--run",
        str(run),
        "the file of a run's JSON",
        "check the path",
        FileNotFoundError,
    )
    train(Run.from_json(text_of(run)), environment)
    return 0


@dataclasses.dataclass(frozen=True)
class Asked:
    """What a command line of ``train`` names."""

    model: str
    task: str
    given: dict[str, Any]
    """Fields of the run that were typed."""
    environment: RunEnvironment
    seeds: tuple[int, ...]
    folds: int | None
    refit: bool


def read(words: Sequence[str]) -> Asked:
    """Reads a command line.

    Args:
        words: What was typed after ``anharmonic train``; the first two are model and task.

    Raises:
        ValueError: If a name or an option is wrong.
        FileNotFoundError: If the user's file does not exist.
    """
    model, task, file = names(words[0], words[1])
    digest = {} if file is None else {"sha256": file_digest(file)}
    named = {"task": task, "model": model, "task_options": digest, "model_options": {}}

    def settings(
        run: Annotated[Any, open_fields_of(Run, **named)],
        model_options: Annotated[dict[str, Any], model_flags(model)],
        task_options: Annotated[dict[str, Any], task_flags(task)],
        environment: Annotated[RunEnvironment, fields_of(RunEnvironment, file=file)],
        seeds: tuple[int, ...] = (),
        folds: int | None = None,
        refit: bool = False,
        streaming: bool = False,
    ) -> Asked:
        known = [field.name for field in dataclasses.fields(Run) if field.name not in named]
        options = {"task_options": {**task_options, **digest}, "model_options": model_options}
        if folds is not None or refit:
            name = "--folds" if folds is not None else "--refit"
            advice = f"leave {name} out, or train on a file"
            require(task == "file", name, folds or refit, "left out but for your own file", advice)
        if folds is not None:
            options["task_options"]["folds"] = folds
        distinct("seeds", seeds)
        given = typed(run, known) | options
        if streaming:
            given = streaming_options(model, task, given)
        return Asked(model, task, given, environment, seeds, folds, refit)

    settings.__doc__ = f"Trains {model} on the task {task}.\n\n{_arguments(train_anything)}"
    return run_command(settings, words[2:], f"{PROG} {words[0]} {words[1]}")


def _arguments(documented: Any) -> str:
    return "Args:" + (documented.__doc__ or "").partition("Args:")[2]


def model_flags(model: str) -> Any:
    """The options of a model as flags.

    Args:
        model: Its canonical name.
    """
    known = model_option_parameters(model)
    defaults = frozen_defaults("model", model) | check_model_options(model, {})
    return options_of(model_class(model), known, defaults, FILLED_OPTIONS.intersection(known))


def task_flags(task: str) -> Any:
    """The options of a task as flags.

    Args:
        task: Its name.
    """
    # The hash of a file is computed, not typed.
    known: Mapping[str, Parameter] = {
        name: p
        for name, p in task_option_parameters(task).items()
        if name not in ("sha256", "folds", "fold")
    }
    filled = FILLED_OPTIONS.intersection(known)
    return options_of(task_class(task), known, frozen_defaults("task", task), filled)


def names(model: str, task: str) -> tuple[str, str, Path | None]:
    """Canonical model, canonical task, and the user's file if the second word names one.

    Args:
        model: Name of the model, in any case.
        task: Name of the task, in any case, or the path of a file.

    Raises:
        ValueError: If a name is unknown.
        FileNotFoundError: If the file does not exist.
    """
    name = canonical_name(model)
    graph = model_kind(name) == "graph"
    path = Path(task)
    known = [t for t in list_tasks() if t not in OWN_DATA]
    if task.lower() in known:
        return name, task.lower(), None
    if path.name == INDEX or (path / INDEX).is_file():
        return name, ShardsTask.name, path / INDEX if path.is_dir() else path
    if path.suffix.lower() not in FILE_SUFFIXES:
        if not path.suffix and not path.exists():
            choice("task", task.lower(), known)
        raise ValueError(
            message(
                f"your own data must be a file that ends in {listed(FILE_SUFFIXES, 'or')}",
                f"{path}{' (a folder)' * path.is_dir()}",
                "save the graph with anharmonic.data.save_graph(path, data)"
                if graph
                else f"save them as one of these, or name a task: {', '.join(known)}",
            )
        )
    require(
        path.is_file(),
        "your own data",
        str(path),
        "an existing file",
        "check the path; `anharmonic list tasks` shows the tasks that need no file",
        FileNotFoundError,
    )
    return name, GraphFileTask.name if graph else FileTask.name, path


def train(run: Run, environment: RunEnvironment) -> Result:
    """Trains a run and prints what it gave.

    Args:
        run: The run.
        environment: Where it is trained.
    """
    if run.model_options.get("checkpoint"):
        return_large_blocks()
    result = fit(run, environment)
    folder = environment.out / run.folder_name
    unit = " %" if result.metric in PERCENT else ""
    lines = {f"test {result.metric}": f"{result.test:.6g}{unit} (seed {run.seed}{_sure(result)})"}
    if result.trivial is not None:
        lines["trivial answer"] = f"{result.trivial:.6g}{unit}{_not_better(result)}"
    if said := not_learned(result):
        lines["training"] = said
    if result.valid is not None:
        valid = f"{result.valid:.6g}{unit} (epoch {result.best_epoch})"
        lines[f"validation {result.metric}"] = valid
    lines |= {
        "parameters": str(result.parameters),
        "seconds": f"{result.seconds:.1f}",
    }
    if said := no_stream(run):
        lines["streaming"] = said
    # A result may be known from the results file while its folder is elsewhere or deleted.
    if folder.is_dir():
        lines["run folder"] = str(folder)
        if run.task in OWN_DATA:
            suffix = environment.file.suffix if environment.file else ""
            suffix = suffix if suffix in FILE_SUFFIXES else FILE_SUFFIXES[0]
            words = f"{folder} DATA{suffix} --output predictions.csv"
            lines["to predict"] = f"anharmonic predict {words}"
    for channel, error in (result.by_channel or {}).items():
        lines[f"  {channel}"] = f"{error:.6g}"
    width = max(map(len, lines))
    for name, value in lines.items():
        print(f"{name.ljust(width)}  {value}")
    return result


def _sure(result: Result) -> str:
    """What a few test sequences say of the accuracy on more of their kind; "" of many."""
    if result.metric != "accuracy" or not result.tested or result.tested > _MANY_TESTED:
        return ""
    low, high = accuracy_interval(result.test, result.tested)
    return f"; 95 % interval of {result.tested} answers: {low:.3g} to {high:.3g}"


def _not_better(result: Result) -> str:
    assert result.trivial is not None
    gain = result.test - result.trivial
    if not (gain > 0 if result.higher_is_better else gain < 0):
        return " - the model is NOT better: train longer, change lr, or try another model"
    if result.metric == "accuracy" and result.tested:
        low, _ = accuracy_interval(result.test, result.tested)
        if low <= result.trivial:
            hint = ": try --folds 5" if result.run.task == FileTask.name else ""
            return f" - too few test answers to tell the model from it{hint}"
    return ""
