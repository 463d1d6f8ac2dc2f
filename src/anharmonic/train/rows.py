"""Training of many runs, such as the rows of a table.

Runs with a result are skipped, and a failed run does not stop the others. Several processes may
share the rows; a run that another process trains is left to it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence

from anharmonic._checks import positive_int
from anharmonic.data.base import Task
from anharmonic.train.jobs import Row, run_jobs, train_row
from anharmonic.train.results import Result
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.watching import OnEpochEnd

__all__ = ["Row", "fit_rows", "without_results"]

# Seconds between lines about a training.
_BETWEEN_LINES = 30.0


def without_results(rows: Iterable[Row], results: Iterable[Result]) -> list[Row]:
    """Return the rows without a result; of rows with the same run, only the first.

    Args:
        rows: The rows.
        results: The known results.

    Example:
        >>> rows = [Row("a", Run("adding", "LEM")), Row("b", Run("adding", "LEM", seed=1))]
        >>> [row.name for row in without_results([*rows, Row("c", rows[0].run)], [])]
        ['a', 'b']
    """
    done = {result.hash for result in results}
    missing: dict[str, Row] = {}
    for row in rows:
        if row.run.hash not in done:
            missing.setdefault(row.run.hash, row)
    return list(missing.values())


def fit_rows(
    rows: Sequence[Row],
    environment: RunEnvironment,
    jobs: int = 1,
    *,
    task_of: Callable[[Run], Task | None] = lambda run: None,
    say: Callable[[str], None] = print,
    describe: Callable[[Exception], str] = str,
    debug: bool = False,
) -> list[str]:
    """Train rows sequentially or in parallel; call it again to continue.

    Args:
        rows: The rows.
        environment: Where to train them; each appends a line to its results file.
        jobs: Number of parallel trainings; with several, each has its own process.
        task_of: Returns the task of a run with data in memory, or None. Other processes read the
            data.
        say: Called with a line about each row and its result.
        describe: Formats an error.
        debug: Whether to print the traceback of an error to standard error.

    Returns:
        A line for each row that failed.

    Example:
        >>> import tempfile
        >>> options = {"model_options": {"hidden_size": 4}, "epochs": 1}
        >>> environment = RunEnvironment(out=tempfile.mkdtemp(), progress=False)
        >>> rows = [Row("small", Run("digits", "GRU", **options))]
        >>> fit_rows(rows, environment, say=lambda text: None)
        []
    """
    failed = []
    if positive_int("jobs", jobs) > 1:
        with contextlib.closing(run_jobs(rows, environment, jobs, describe, debug)) as all_ended:
            for number, ended in enumerate(all_ended, start=1):
                how = "failed: " * ended.failed
                say(f"[{number}/{len(rows)}] {ended.row.name}: {how}{ended.text}")
                if ended.failed:
                    failed.append(f"{ended.row.name}: {ended.text}")
        return failed
    for number, row in enumerate(rows, start=1):
        say(f"[{number}/{len(rows)}] {row.name}")
        # If nothing else shows the progress of a long training, print a line from time to time.
        on_epoch_end = None if environment.progress else _now_and_then(row.run, say)
        ended = train_row(row, environment, describe, debug, on_epoch_end, task_of(row.run))
        say(f"    {'failed: ' * ended.failed}{ended.text}")
        if ended.failed:
            failed.append(f"{row.name}: {ended.text}")
    return failed


def _now_and_then(run: Run, say: Callable[[str], None]) -> OnEpochEnd:
    """Report the progress of a training from time to time."""
    began = said = time.monotonic()

    def on_epoch_end(epoch: int, values: dict[str, float]) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= _BETWEEN_LINES and epoch < run.epochs:
            said = now
            reached = f", validation {values['valid']:.4g}" if "valid" in values else ""
            say(f"    epoch {epoch} of {run.epochs}{reached}, {now - began:.0f} s")

    return on_epoch_end
