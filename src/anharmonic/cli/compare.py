"""``anharmonic compare TASK``: trains several models and says which does best."""

# Without postponed annotations: tyro reads those of a function made for the task.
import dataclasses
import functools
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from anharmonic._checks import require
from anharmonic.cli.flags import fields_of, open_fields_of, run_command, typed
from anharmonic.cli.main import is_debugging, one_line
from anharmonic.cli.train import names, task_flags
from anharmonic.data.graphs.own import is_graph_file
from anharmonic.data.registry import OWN_DATA, list_tasks, task_class
from anharmonic.train.compare import MODELS, carry_out, plan
from anharmonic.train.comparison_page import write_comparison
from anharmonic.train.others import Other
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.verdict import report

PROG = "anharmonic compare"
RESONATORS = "resonators"
_RUN: dict[str, Any] = {
    "task": "digits", "model": "LEM", "task_options": {}, "model_options": {}, "seed": 0
}  # fmt: skip


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic compare``.

    Returns:
        The exit code: 1 if a run failed.

    Raises:
        ValueError: If a name or an option is wrong, or every run failed.
    """
    if not words or words[0].startswith("-"):
        example = f"for example {PROG} digits, or {PROG} mine.csv --models lem lstm; {PROG} --help"
        came = " ".join(words) or "nothing"
        helps = bool({"-h", "--help"} & set(words))
        require(helps, PROG, came, "called with a task or a file first", example)
        print(f"usage: {PROG} TASK [OPTIONS]\n       {PROG} FILE [OPTIONS]\n")
        return run_command(compare_anything, ["--help"], f"{PROG} TASK", compact=True)
    task, file = task_named(words[0])

    def settings(
        run: Annotated[Any, open_fields_of(Run, **_RUN)],
        task_options: Annotated[dict[str, Any], task_flags(task)],
        environment: Annotated[RunEnvironment, fields_of(RunEnvironment, file=file)],
        jobs: int = 1,
        models: tuple[str, ...] = (),
        seeds: tuple[int, ...] = (0, 1, 2),
        folds: int | None = None,
        hidden_size: int | None = None,
        html: Path = Path("compare.html"),
    ) -> int:
        fields = [field.name for field in dataclasses.fields(Run) if field.name not in _RUN]
        given = typed(run, fields) | {"task_options": task_options}
        if hidden_size is not None:
            given["model_options"] = {"hidden_size": hidden_size}
        names, others, note = with_others(models, task)
        made = plan(
            task, environment, models=names, others=others, given=given, seeds=seeds, folds=folds
        )
        made = dataclasses.replace(made, notes=(*note, *made.notes))
        if environment.progress:
            for model, recipe in made.recipes.items():
                print(f"{model}: {recipe.describe()}", file=sys.stderr)
        # Where no bar can be drawn, a line about each training, and now and then one, is enough.
        quiet = dataclasses.replace(
            environment, progress=environment.progress and sys.stderr.isatty()
        )
        found = carry_out(
            dataclasses.replace(made, environment=quiet),
            jobs,
            say=functools.partial(print, file=sys.stderr, flush=True)
            if environment.progress
            else lambda text: None,
            describe=one_line,
            debug=is_debugging(),
        )
        print(report(found))
        write_comparison(html, found, f"{PROG} {shlex.join(words)}")
        print(f"wrote {html}; it says how to predict with the best model")
        return 1 if found.failures else 0

    settings.__doc__ = compare_anything.__doc__
    return run_command(settings, words[1:], f"{PROG} {words[0]}")


def compare_anything(
    run: Annotated[Run, open_fields_of(Run, **_RUN)],
    environment: Annotated[RunEnvironment, fields_of(RunEnvironment, file=None)],
    jobs: int = 1,
    models: tuple[str, ...] = (),
    seeds: tuple[int, ...] = (0, 1, 2),
    folds: int | None = None,
    hidden_size: int | None = None,
    html: Path = Path("compare.html"),
) -> int:
    """Trains several models on one task or file and says which does best.

    What is "auto" follows from the data, for each model. Start the same command again after an
    interruption: what has a result is not trained again.

    Args:
        run: What is the same for all models.
        environment: Where they are trained.
        jobs: How many at a time, each in a process of its own. Without --threads they share the
            cores.
        models: Names of models. Default: resonators, LEM, CoRNN, UnICORNN, LSTM, GRU; for graphs
            PlainGNN, GraphCON, GradientGating.
        seeds: Every model is trained once with each.
        folds: Of your own file: cuts all but the test part into so many parts, and trains once for
            each as validation part.
        hidden_size: Width of every model. Default: as the recipe chooses.
        html: The page to write; it replaces one that is there.
    """
    return 0


def with_others(
    models: Sequence[str], task: str
) -> tuple[tuple[str, ...] | None, tuple[Other, ...], tuple[str, ...]]:
    """Parts the names of models that are trained from resonators, which are fitted at once.

    Args:
        models: As typed; none for the usual ones.
        task: Name of the task.

    Returns:
        Names for `plan`, what else it compares, and a line if the usual ones lack something.

    Raises:
        ImportError: If resonators are asked for by name and scikit-learn is missing.
    """
    trained = tuple(name for name in models if name.lower() != RESONATORS)
    is_named = len(trained) < len(models)
    if not is_named and (models or task_class(task).kind != "sequence"):
        return trained or None, (), ()
    try:
        # scikit-learn takes a second to load.
        from anharmonic.estimators import RESONATORS as other
    except ImportError as error:
        if is_named:
            raise
        return None, (), (f"{RESONATORS} are left out: {error}",)
    return trained if models else None, (other,), ()


def task_named(word: str) -> tuple[str, Path | None]:
    """The task, and the user's file if the word names one.

    Args:
        word: A task's name in any case, or the path of a file.

    Raises:
        ValueError: If there is no such task.
        FileNotFoundError: If there is no such file.
    """
    known = [name for name in list_tasks() if name not in OWN_DATA]
    if word.lower() in known:
        return word.lower(), None
    kind = "graph" if is_graph_file(Path(word)) else "sequence"
    _, task, file = names(MODELS[kind][0], word)
    return task, file
