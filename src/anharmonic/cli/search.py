"""``anharmonic search MODEL TASK``: search a model's settings by validation score."""

# No postponed annotations, because tyro reads those of a function made for the two names.
import dataclasses
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from anharmonic._checks import flag, require
from anharmonic.cli.flags import fields_of, named, run_command
from anharmonic.cli.train import model_flags, names, run_flags, task_flags
from anharmonic.data.base import Task, counted
from anharmonic.data.own import SequencesTask
from anharmonic.data.parts import VALID_SHARE
from anharmonic.train.estimate import expected_seconds
from anharmonic.train.options import frozen_defaults
from anharmonic.train.recipe import fill, recipe, streaming_options
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.trials import BestTrial, Range, fields_and_options, search, space_around
from anharmonic.train.watching import in_words, say

PROG = "anharmonic search"
USAGE = (f"{PROG} MODEL TASK [OPTIONS]", f"{PROG} MODEL FILE [OPTIONS]")
_FEW_FOLDS = 3
# Flags with a value that `anharmonic train` does not have.
_OWN = ("--trials", "--storage", "--folds")


def run(words: Sequence[str]) -> int:
    """Run ``anharmonic search`` with these arguments and return the exit code."""
    example = f"for example {PROG} lem mine.csv --trials 20; for a row of the papers' tables "
    example += "`anharmonic table ID --search`"
    model, task, file = names(*named(words, 2, parser, PROG, USAGE, example))
    prog = f"{PROG} {words[0]} {words[1]}"
    return run_command(parser(model, task, file, words), words[2:], prog)


def parser(
    model: str = "", task: str = "", file: Path | None = None, words: Sequence[str] = ()
) -> Callable[..., int]:
    """Return the command with the flags of a model and a task, or without names of any search."""

    def command(
        run: Annotated[dict[str, Any], run_flags(model)],
        model_options: Annotated[dict[str, Any], model_flags(model, words)],
        task_options: Annotated[dict[str, Any], task_flags(task, words)],
        environment: Annotated[
            RunEnvironment, fields_of(RunEnvironment, file=file, start_from=None)
        ],
        trials: int = 20,
        folds: int | None = None,
        storage: str | None = None,
        streaming: bool = False,
    ) -> int:
        """Search a model's settings on a task or file and print the best as a command.

        The search varies learning rate, time step, width, layers, dropout and clipping, unless you
        set them. The best validation score wins, and trials that fall behind are stopped. After an
        interruption, or for more --trials, start the same command again: it continues.

        Args:
            run: Settings shared by all trials.
            model_options: Fixed options of the model.
            task_options: Options of the task.
            environment: Where they are trained; they go to the folder searches in --out.
            trials: Trials in all, including finished ones.
            folds: Judge by cross-validation with this many folds. Needs your own file. Default: 3
                if the file is too small for a validation part, else none.
            storage: Database of the search. The path of a SQLite file or the URL of another
                database (postgresql://USER@HOST/NAME). Any number of processes can search together;
                trials of a dead process are repeated. Default: MODEL-TASK.db in the folder of the
                trials.
            streaming: Train models that run sample by sample. They read forwards only, and can be
                exported to C.
        """
        advice = "leave it out, or search on a file"
        require(folds is None or task == "file", "--folds", folds, "for your own file", advice)
        given = {**run, "model_options": model_options, "task_options": task_options}
        if streaming:
            given = streaming_options(model, task, given)
        task_options, fixed = given.pop("task_options"), {*given, *given["model_options"]}
        made = fill(model, task, given | {"task_options": task_options}, environment)
        unvalidated = made.run.task_options.get("valid_share") == 0
        if folds is None and unvalidated:
            fits, came = "valid_share" not in task_options, task_options.get("valid_share")
            expected = "above 0, because the validation set judges the trials"
            require(fits, "--valid-share", came, expected, "leave it out, or pass --folds")
            if isinstance(made.source, SequencesTask) and not made.source.can_fold(_FEW_FOLDS):
                given_task = task_options | {"valid_share": VALID_SHARE}
                made = fill(model, task, given | {"task_options": given_task}, environment)
            else:
                folds = _FEW_FOLDS
        if folds is not None:
            options = {"task_options": task_options | {"folds": folds}}
            made = recipe(model, made.source, given | options)
        first = made.run
        space = space_around(first, fixed=fixed)
        out = environment.out / "searches"
        inside = dataclasses.replace(environment, out=out, progress=False)
        if environment.progress:
            runs = trials * (folds or 1)
            seconds = runs * expected_seconds(first, made.task, environment)
            judged = "validation" if folds is None else f"{folds} folds"
            about = f"{counted(trials, 'trial')}, judged by {judged}"
            say(f"{about}; time: at most {in_words(seconds)}\n{_lines(space)}")
        best = search(
            first,
            space,
            trials,
            inside,
            storage or out / f"{model}-{task}.db",
            seeds=(first.seed,),
            folds=folds,
            sampler="tpe",
            task_of=made.task_of,
            on_trial_end=_progress(trials) if environment.progress else None,
            say=say if environment.progress else None,
        )
        print(f"best of {counted(best.trials, 'trial')}: validation {best.valid:.6g}")
        given |= {"task_options": task_options}
        print(train_command(best, words, lambda values: _with(model, made.source, given, values)))
        return 0

    return command


def _progress(trials: int) -> Callable[[int, float | None, float], None]:
    def line(number: int, valid: float | None, best: float) -> None:
        took = "stopped, worse than the others" if valid is None else f"validation {valid:.6g}"
        say(f"trial {number} of {trials}: {took}; best {best:.6g}")

    return line


def _with(model: str, source: Task, given: dict[str, Any], values: dict[str, Any]) -> Run:
    """Return the recipe's run with these settings given, too."""
    fields, options = fields_and_options(values)
    options = {**given["model_options"], **options}
    return recipe(model, source, {**given, **fields, "model_options": options}).run


def train_command(
    best: BestTrial, words: Sequence[str], filled: Callable[[dict[str, Any]], Run]
) -> str:
    """Return the command that trains the best model; ``filled`` is the recipe's run with values.

    Where values are given, the recipe may choose other options of the model than in the search.
    """
    defaults, values = frozen_defaults("model", best.run.model), dict(best.values)
    wanted = defaults | best.run.model_options
    while others := {
        name: wanted[name]
        for name, value in (defaults | filled(values).model_options).items()
        if wanted[name] != value
    }:
        values |= others
    kept: list[str] = []
    skip = False
    for word in words:
        name, given, _ = word.partition("=")
        if not skip and name not in _OWN:
            kept.append(word)
        skip = name in _OWN and not given
    for name, value in values.items():
        kept += [flag(name), *map(str, value if isinstance(value, list) else [value])]
    return f"anharmonic train {shlex.join(kept)}"


def _lines(space: dict[str, Range]) -> str:
    return "\n".join(
        f"  {name}: {', '.join(map(str, one.choices))}"
        if one.choices
        else f"  {name}: {one.low:.3g} to {one.high:.3g}{' (logarithmic)' * one.log}"
        for name, one in space.items()
    )
