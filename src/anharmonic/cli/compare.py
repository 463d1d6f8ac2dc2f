"""``anharmonic compare TASK``: train several models and report the best."""

# No postponed annotations, because tyro reads those of a function made for the task.
import dataclasses
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from anharmonic._checks import require
from anharmonic.cli.flags import fields_of, named, run_command
from anharmonic.cli.main import is_debugging, one_line
from anharmonic.cli.train import names, run_flags, task_flags
from anharmonic.data.readers import is_graph_file
from anharmonic.nn.registry import model_kind
from anharmonic.pages import bullets, text
from anharmonic.train.comparison import MODELS, carry_out, plan
from anharmonic.train.comparison_page import write_comparison
from anharmonic.train.run import RunEnvironment
from anharmonic.train.standings import Plan
from anharmonic.train.verdict import report
from anharmonic.train.watching import say

PROG = "anharmonic compare"
USAGE = (f"{PROG} TASK [OPTIONS]", f"{PROG} FILE [OPTIONS]")


def run(words: Sequence[str]) -> int:
    """Run ``anharmonic compare`` with these arguments; the exit code is 1 if a run failed."""
    example = f"for example {PROG} digits, or {PROG} mine.csv --models lem lstm; {PROG} --help"
    task, file = task_named(*named(words, 1, parser, PROG, USAGE, example))
    elsewhere = "options of one model belong to `anharmonic train MODEL`, and --streaming chooses "
    elsewhere += "models that read forwards"
    made = parser(task, file, words)
    return run_command(made, words[1:], f"{PROG} {words[0]}", elsewhere=elsewhere)


def parser(
    task: str = "", file: Path | None = None, words: Sequence[str] = ()
) -> Callable[..., int]:
    """Return the command with the flags of a task, or without a name of every comparison."""

    def command(
        run: Annotated[dict[str, Any], run_flags("", left_out=["seed"])],
        task_options: Annotated[dict[str, Any], task_flags(task, words)],
        environment: Annotated[
            RunEnvironment, fields_of(RunEnvironment, file=file, start_from=None)
        ],
        jobs: int = 1,
        models: tuple[str, ...] = (),
        seeds: tuple[int, ...] = (0, 1, 2),
        folds: int | None = None,
        streaming: bool = False,
        hidden_size: int | None = None,
        html: Path = Path("compare.html"),
    ) -> int:
        """Train several models on a built-in task or your own file and rank them.

        Settings that are left out follow from the data. After an interruption start the same
        command again: finished trainings are kept.

        Args:
            run: Settings shared by all models.
            task_options: Options of the task.
            environment: Where to train them.
            jobs: Trainings at a time, each in its own process. Without --threads they share the
                cores.
            models: Models to compare. Default: Resonators, LEM, CoRNN, UnICORNN, LSTM, GRU; for
                graphs PlainGNN, GraphCON, GradientGating.
            seeds: Train every model with each seed.
            folds: Cross-validate with this many folds. Needs your own file; the test set stays the
                same.
            streaming: Train models that run sample by sample. They read forwards only.
            hidden_size: Width of every model. Default: chosen from the data.
            html: Page to write. An existing page is replaced.
        """
        advice = "name a file in that folder"  # known before the first training
        require(not html.is_dir(), "--html", str(html), "a file", advice)
        given = {**run, "task_options": task_options}
        if hidden_size is not None:
            given["model_options"] = {"hidden_size": hidden_size}
        made = plan(
            task,
            environment,
            models=models or None,
            given=given,
            seeds=seeds,
            folds=folds,
            streaming=streaming,
        )
        if environment.progress:
            print(chosen(made), file=sys.stderr)
        # Without a progress bar, print a line per training and one from time to time.
        quiet = dataclasses.replace(
            environment, progress=environment.progress and sys.stderr.isatty()
        )
        found = carry_out(
            dataclasses.replace(made, environment=quiet),
            jobs,
            say=say if environment.progress else lambda text: None,
            describe=one_line,
            debug=is_debugging(),
        )
        print(report(found))
        write_comparison(html, found, f"{PROG} {shlex.join(words)}")
        print(f"wrote {html}")
        return 1 if found.failures else 0

    return command


def chosen(made: Plan) -> str:
    """Return how the data were read, and the settings chosen from them."""
    settings = [f"{name}: {values}" for name, values in made.settings().items()]
    trained = [one.task for name, one in made.recipes.items() if model_kind(name) != "fitted"]
    read = (trained or [made.task])[0].summary().splitlines()
    return text(*read, "", "Chosen from the data:", bullets(settings), *made.reasons())


def task_named(word: str) -> tuple[str, Path | None]:
    """Return the task, and the user's file if the word names one."""
    kind = "graph" if is_graph_file(Path(word)) else "sequence"
    _, task, file = names(MODELS[kind][0], word)
    return task, file
