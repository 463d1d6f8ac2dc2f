"""``anharmonic train MODEL TASK``: trains one model on one task, or on the user's own file."""

# Without postponed annotations: tyro reads those of a function made for the two names.
import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

from anharmonic._checks import choice, listed, message, require
from anharmonic.cli.flags import fields_of, options_of, run_command
from anharmonic.data.files import FileTask, file_digest
from anharmonic.data.graphs.own import GraphFileTask
from anharmonic.data.readers import FILE_SUFFIXES
from anharmonic.data.registry import OWN_DATA, list_tasks, task_class
from anharmonic.nn.registry import canonical_name, model_class, model_kind
from anharmonic.train.fit import fit
from anharmonic.train.options import (
    check_model_options,
    frozen_defaults,
    model_option_parameters,
    task_option_parameters,
)
from anharmonic.train.results import Result
from anharmonic.train.run import Run, RunEnvironment

PROG = "anharmonic train"
USAGE = (
    f"usage: {PROG} MODEL TASK [OPTIONS]",
    f"       {PROG} MODEL FILE [OPTIONS]            (FILE: {', '.join(FILE_SUFFIXES)})",
    f"       {PROG} --run RUN.json [OPTIONS OF THE ENVIRONMENT]",
)
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
    first, environment, seeds = read(words)
    results = [train(dataclasses.replace(first, seed=seed), environment) for seed in seeds]
    if len(results) > 1:
        values = [result.test for result in results]
        print(
            f"test {results[0].metric} over seeds {' '.join(map(str, seeds))}: "
            f"{statistics.fmean(values):.6g} ± {statistics.stdev(values):.2g} "
            "(mean ± standard deviation)"
        )
    return 0


def train_anything(
    run: Annotated[Run, fields_of(Run, **_NAMED)],
    environment: Annotated[RunEnvironment, fields_of(RunEnvironment, file=None)],
    seeds: tuple[int, ...] = (),
) -> int:
    """Options of every run. `anharmonic train MODEL TASK --help` adds those of the two.

    Args:
        run: What is trained.
        environment: Where it is trained.
        seeds: Several seeds, one after the other, instead of --seed: --seeds 0 1 2. Prints mean and
            standard deviation.
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
    train(Run.from_json(run.read_text(encoding="utf-8")), environment)
    return 0


def read(words: Sequence[str]) -> tuple[Run, RunEnvironment, tuple[int, ...]]:
    """The run, the environment and the seeds that a command line names.

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
        run: Annotated[Run, fields_of(Run, **named)],
        model: Annotated[dict[str, Any], model_flags(model)],
        task: Annotated[dict[str, Any], task_flags(task)],
        environment: Annotated[RunEnvironment, fields_of(RunEnvironment, file=file)],
        seeds: tuple[int, ...] = (),
    ) -> tuple[Run, RunEnvironment, tuple[int, ...]]:
        fields = {field.name: getattr(run, field.name) for field in dataclasses.fields(Run)}
        options = {"task_options": {**task, **digest}, "model_options": model}
        return Run(**fields | options), environment, tuple(dict.fromkeys(seeds)) or (run.seed,)

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
    return options_of(model_class(model), known, defaults)


def task_flags(task: str) -> Any:
    """The options of a task as flags.

    Args:
        task: Its name.
    """
    # The hash of a file is computed, not typed.
    known: Mapping[str, Parameter] = {
        name: p for name, p in task_option_parameters(task).items() if name != "sha256"
    }
    return options_of(task_class(task), known, frozen_defaults("task", task))


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
    result = fit(run, environment)
    folder = environment.out / run.folder_name
    unit = " %" if result.metric == "accuracy" else ""
    lines = {
        f"test {result.metric}": f"{result.test:.6g}{unit} (seed {run.seed})",
        f"validation {result.metric}": f"{result.valid:.6g}{unit} (epoch {result.best_epoch})",
        "parameters": str(result.parameters),
        "seconds": f"{result.seconds:.1f}",
    }
    # A result may be known from the results file while its folder is elsewhere or deleted.
    if folder.is_dir():
        lines["run folder"] = str(folder)
        if run.task in OWN_DATA:
            suffix = environment.file.suffix if environment.file else FILE_SUFFIXES[0]
            words = f"{folder} DATA{suffix} --output predictions.csv"
            lines["to predict"] = f"anharmonic predict {words}"
    width = max(map(len, lines))
    for name, value in lines.items():
        print(f"{name.ljust(width)}  {value}")
    return result
