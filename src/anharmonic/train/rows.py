"""Training of many runs, such as the rows of a table.

Runs with a result are skipped, and a failed run does not stop the others. Several processes may
share the rows; a run that another process trains is left to it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, NamedTuple

import torch

from anharmonic._checks import positive_int
from anharmonic.data.base import Task
from anharmonic.data.metrics import shown_metric
from anharmonic.train.fit import fit
from anharmonic.train.folder import RunLockedError
from anharmonic.train.results import Result
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.watching import OnEpochEnd

# Seconds between lines about a training.
_BETWEEN_LINES = 30.0


@dataclass(frozen=True)
class Row:
    """A run with a label.

    Args:
        name: The displayed name.
        run: The run.

    Example:
        >>> Row("LEM, seed 0", Run("adding", "LEM")).run.model
        'LEM'
    """

    name: str
    run: Run


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
        with contextlib.closing(_run_jobs(rows, environment, jobs, describe, debug)) as all_ended:
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
        ended = _train_row(row, environment, describe, debug, on_epoch_end, task_of(row.run))
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


class _Ended(NamedTuple):
    """The outcome of a row."""

    row: Row
    text: str
    """Its result or error."""
    failed: bool


def _train_row(
    row: Row,
    environment: RunEnvironment,
    describe: Callable[[Exception], str],
    debug: bool,
    on_epoch_end: OnEpochEnd | None = None,
    task: Task | None = None,
) -> _Ended:
    """Train a row; an error is returned as text."""
    try:
        result = fit(row.run, environment, task, on_epoch_end)
    except RunLockedError:
        return _Ended(row, "another process trains it; it is left to that one", False)
    except Exception as error:
        if debug:
            traceback.print_exc()
        return _Ended(row, describe(error), True)
    reached = shown_metric(result.test, result.metric, result.tested)
    text = f"test {result.metric} {reached}, {result.parameters:,} parameters, "
    return _Ended(row, f"{text}{result.seconds:.1f} s", False)


def _run_jobs(
    rows: Sequence[Row],
    environment: RunEnvironment,
    jobs: int,
    describe: Callable[[Exception], str],
    debug: bool,
) -> Generator[_Ended, None, None]:
    """Train rows in parallel processes of this machine and yield each outcome."""
    environment = replace(environment, progress=False)
    if not rows:
        return
    if environment.threads is None:
        share = max(torch.get_num_threads() // jobs, 1)
        environment = replace(environment, threads=share)
    # A forked process would inherit locks of this one's threads, but not the threads.
    context = multiprocessing.get_context("spawn")
    workers = min(jobs, len(rows))
    others = set(multiprocessing.active_children())
    # Warnings look as in this process, unless they are collected here, as by a test.
    form = warnings.showwarning if isinstance(warnings.showwarning, FunctionType) else None
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(form,))
    try:
        made = {pool.submit(_in_pool, row, environment, describe, debug): row for row in rows}
        for future in as_completed(made):
            try:
                yield future.result()
            except BrokenProcessPool:
                text = "a process was killed, perhaps for memory: start the same command again"
                yield _Ended(made[future], text, True)
    except BaseException:
        # Nobody waits for them any more; finished epochs are saved.
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _in_pool(*arguments: Any) -> _Ended:
    try:
        return _train_row(*arguments)
    except SystemExit:
        # Otherwise the pool would wait for more work forever.
        os._exit(128 + signal.SIGTERM)


def _begin(form: Callable[..., None] | None) -> None:
    """Show warnings in this form, and end, as by SIGTERM, when the parent is gone."""
    if form is not None:
        warnings.showwarning = form
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
