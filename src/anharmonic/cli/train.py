"""``anharmonic train MODEL TASK``: trains one model on one task, or on the user's own file."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anharmonic._checks import choice, message
from anharmonic.cli.options import (
    Option,
    check_flags,
    constructor_options,
    distinct,
    field_options,
    given,
    parse,
    plain_help,
    short_usage,
)

if TYPE_CHECKING:
    from anharmonic.train.results import Result
    from anharmonic.train.run import Run, RunEnvironment

PROG = "anharmonic train"
USAGE = (
    f"usage: {PROG} MODEL TASK [OPTIONS]",
    f"       {PROG} MODEL FILE.npz|FILE.ts [OPTIONS]",
    f"       {PROG} --run RUN.json [PLACE OPTIONS]",
)
FILE_SUFFIXES = (".npz", ".ts")
_RUN_ELSEWHERE = ("task", "model", "task_options", "model_options")


@dataclass(frozen=True)
class Seeds:
    """How often to train."""

    seeds: tuple[int, ...] = ()
    """Several seeds, one after the other, instead of --seed: --seeds 0 1 2. Prints mean and
    standard deviation."""


@dataclass(frozen=True)
class Stored:
    """A run that is written down already."""

    run: Path
    """A run's JSON, for example the run.json of its folder: trains exactly this run."""


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic train``.

    Returns:
        The exit code.

    Raises:
        ValueError: If a name or an option is wrong.
    """
    named = [w for w in words[:2] if not w.startswith("-")]
    if any(w == "--run" or w.startswith("--run=") for w in words):
        return _rerun(words)
    if len(named) < 2:
        if set(words) & {"-h", "--help"}:
            print(general_help())
            return 0
        if not words:
            return short_usage(
                *USAGE, f"for example: {PROG} lem digits --epochs 5", f"see {PROG} --help"
            )
        raise ValueError(
            message(
                f"{PROG} takes a model and a task first",
                " ".join(words) or "nothing",
                f"for example {PROG} lem digits --epochs 5; `anharmonic list` shows the names",
            )
        )
    run_, environment, seeds = read(words)
    results = [_fit(replace(run_, seed=seed), environment) for seed in seeds or (run_.seed,)]
    if len(results) > 1:
        _say_spread(results)
    return 0


def read(words: Sequence[str]) -> tuple[Run, RunEnvironment, tuple[int, ...]]:
    """The run, the environment and the seeds that a command line names.

    Args:
        words: What was typed after ``anharmonic train``; the first two are model and task.

    Raises:
        ValueError: If a name or an option is wrong.
        FileNotFoundError: If the user's file does not exist.
    """
    from anharmonic.data.files import file_digest
    from anharmonic.train.run import Run, RunEnvironment

    model, task, file = names(words[0], words[1])
    groups = {
        "run": field_options(Run, _RUN_ELSEWHERE) + field_options(Seeds),
        model: model_options(model),
        task: task_options(task),
        "environment": field_options(RunEnvironment, ("file",)),
    }
    values = parse(
        words[2:], groups, f"{PROG} {words[0]} {words[1]}", f"Trains {model} on the task {task}."
    )
    distinct("--seeds", values["seeds"])
    typed = given(words[2:])

    def chosen(options: Sequence[Option]) -> dict[str, Any]:
        return {o.name: values[o.name] for o in options if o.name in typed}

    extra = {} if file is None else {"sha256": file_digest(file)}
    made = Run(
        task=task,
        model=model,
        task_options={**chosen(groups[task]), **extra},
        model_options=chosen(groups[model]),
        **{o.name: values[o.name] for o in field_options(Run, _RUN_ELSEWHERE)},
    )
    environment = RunEnvironment(
        file=file, **{o.name: values[o.name] for o in groups["environment"]}
    )
    return made, environment, values["seeds"]


def names(model: str, task: str) -> tuple[str, str, Path | None]:
    """Canonical model, canonical task, and the user's file if the second word names one.

    Args:
        model: Name of the model, in any case.
        task: Name of the task, in any case, or a path that ends in .npz or .ts.

    Raises:
        ValueError: If a name is unknown.
        FileNotFoundError: If the file does not exist.
    """
    from anharmonic.data.registry import list_tasks
    from anharmonic.nn.registry import canonical_name

    name = canonical_name(model)
    path = Path(task)
    known = [t for t in list_tasks() if t != "file"]
    if task.lower() in known:
        return name, task.lower(), None
    if path.suffix.lower() not in FILE_SUFFIXES:
        if path.suffix or path.exists():
            raise ValueError(
                message(
                    "your own data must be a .npz or .ts file",
                    f"{path}{' (a folder)' * path.is_dir()}",
                    f"save them as one of these, or name a task: {', '.join(known)}",
                )
            )
        choice("task", task.lower(), known)
    if not path.is_file():
        raise FileNotFoundError(
            message(
                f"{path} must be an existing .npz or .ts file",
                "no such file",
                "check the path; `anharmonic list tasks` shows the tasks that need no file",
            )
        )
    return name, "file", path


def model_options(model: str) -> list[Option]:
    """The flags of a model.

    Args:
        model: Its canonical name.
    """
    from anharmonic.nn.registry import model_class
    from anharmonic.train.options import check_model_options, model_option_parameters

    found = constructor_options(model_class(model), model_option_parameters(model))
    size = check_model_options(model, {})["hidden_size"]
    return [replace(o, default=size) if o.name == "hidden_size" else o for o in found]


def task_options(task: str) -> list[Option]:
    """The flags of a task.

    Args:
        task: Its name.
    """
    from anharmonic.data.registry import task_class
    from anharmonic.data.registry import task_options as known

    # The hash of a file is computed, not typed.
    return constructor_options(task_class(task), known(task).keys() - {"sha256"})


def general_help() -> str:
    """What ``anharmonic train --help`` prints: options of all runs, models and tasks."""
    from anharmonic.data.registry import list_tasks
    from anharmonic.nn.registry import list_models
    from anharmonic.train.run import Run, RunEnvironment

    parts = [
        *USAGE,
        "",
        f"`{PROG} MODEL TASK --help` shows exactly what goes with the two.",
        "",
        "Options of every run",
        plain_help(field_options(Run, _RUN_ELSEWHERE) + field_options(Seeds)),
        "",
        "Where it runs (changes no number)",
        plain_help(field_options(RunEnvironment, ("file",))),
    ]
    for model in (*list_models(), *list_models("graph"), *list_models("tabular")):
        parts += ["", f"Model {model}", plain_help(model_options(model))]
    for task in list_tasks():
        title = "Your own file" if task == "file" else f"Task {task}"
        parts += ["", title, plain_help(task_options(task)) or "  (no options)"]
    return "\n".join(parts)


def _rerun(words: Sequence[str]) -> int:
    from anharmonic.train.run import Run, RunEnvironment

    places = field_options(RunEnvironment)
    if "--help" not in words and "-h" not in words:
        check_flags(words, [*field_options(Stored), *places], PROG)
    groups = {"run": field_options(Stored), "environment": places}
    values = parse(words, groups, PROG, "Trains exactly the run of a JSON file.")
    path: Path = values.pop("run")
    if not path.is_file():
        raise FileNotFoundError(
            message(f"{path} must be a run's JSON", "no such file", "check the path")
        )
    _fit(Run.from_json(path.read_text(encoding="utf-8")), RunEnvironment(**values))
    return 0


def _fit(run: Run, environment: RunEnvironment) -> Result:
    from anharmonic.train.fit import fit

    result = fit(run, environment)
    folder = environment.out / run.folder_name
    unit = " %" if result.metric == "accuracy" else ""
    said = {
        f"test {result.metric}": f"{result.test:.6g}{unit} (seed {run.seed})",
        f"validation {result.metric}": f"{result.valid:.6g}{unit} (epoch {result.best_epoch})",
        "parameters": str(result.parameters),
        "seconds": f"{result.seconds:.1f}",
    }
    # A result may be known from the results file while its folder is elsewhere or deleted.
    if folder.is_dir():
        said["run folder"] = str(folder)
        if run.task == "file":
            suffix = environment.file.suffix if environment.file else FILE_SUFFIXES[0]
            words = f"{folder} DATA{suffix} --output predictions.csv"
            said["to predict"] = f"anharmonic predict {words}"
    width = max(map(len, said))
    for name, value in said.items():
        print(f"{name.ljust(width)}  {value}")
    return result


def _say_spread(results: Sequence[Result]) -> None:
    values = [r.test for r in results]
    spread = statistics.stdev(values)
    seeds = " ".join(str(r.run.seed) for r in results)
    print(
        f"test {results[0].metric} over seeds {seeds}: "
        f"{statistics.fmean(values):.6g} ± {spread:.2g} (mean ± standard deviation)"
    )
