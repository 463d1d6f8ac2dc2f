"""Rows as parallel jobs in processes of this machine."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from anharmonic.data.base import Task
from anharmonic.data.metrics import shown_metric
from anharmonic.train.fit import fit
from anharmonic.train.folder import RunLockedError
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.watching import OnEpochEnd


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


class Ended(NamedTuple):
    """The outcome of a row."""

    row: Row
    text: str
    """Its result or error."""
    failed: bool


def train_row(
    row: Row,
    environment: RunEnvironment,
    describe: Callable[[Exception], str],
    debug: bool,
    on_epoch_end: OnEpochEnd | None = None,
    task: Task | None = None,
) -> Ended:
    """Train a row; an error is returned as text.

    Args:
        row: The row.
        environment: Where to train it.
        describe: Formats an error.
        debug: Whether to print the traceback of an error to standard error.
        on_epoch_end: As in `fit`.
        task: As in `fit`.
    """
    try:
        result = fit(row.run, environment, task, on_epoch_end)
    except RunLockedError:
        return Ended(row, "another process trains it; it is left to that one", False)
    except Exception as error:
        if debug:
            traceback.print_exc()
        return Ended(row, describe(error), True)
    reached = shown_metric(result.test, result.metric, result.tested)
    text = f"test {result.metric} {reached}, {result.parameters:,} parameters, "
    return Ended(row, f"{text}{result.seconds:.1f} s", False)


def run_jobs(
    rows: Sequence[Row],
    environment: RunEnvironment,
    jobs: int,
    describe: Callable[[Exception], str],
    debug: bool,
) -> Generator[Ended, None, None]:
    """Train rows in parallel and yield each outcome.

    Args:
        rows: The rows.
        environment: Where to train them; each appends a line to its results file.
        jobs: Number of parallel processes.
        describe: Formats an error.
        debug: Whether to print tracebacks of errors to standard error.
    """
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
    pool = ProcessPoolExecutor(workers, context, initializer=_end_with_parent)
    try:
        made = {pool.submit(_in_pool, row, environment, describe, debug): row for row in rows}
        for future in as_completed(made):
            try:
                yield future.result()
            except BrokenProcessPool:
                text = "a process was killed, perhaps for memory: start the same command again"
                yield Ended(made[future], text, True)
    except BaseException:
        # Nobody waits for them any more; finished epochs are saved.
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _in_pool(*arguments: Any) -> Ended:
    try:
        return train_row(*arguments)
    except SystemExit:
        # Otherwise the pool would wait for more work forever.
        os._exit(128 + signal.SIGTERM)


def _end_with_parent() -> None:
    """End this process, as by SIGTERM, when its parent is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
