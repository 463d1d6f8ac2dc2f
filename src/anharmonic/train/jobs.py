"""Rows as jobs: several at a time in processes of this machine, or on a cluster by submitit."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import torch

from anharmonic import _checks
from anharmonic.data.base import Task
from anharmonic.train.fit import fit
from anharmonic.train.folder import RunLockedError
from anharmonic.train.run import Run, RunEnvironment

# Seconds between looks at the jobs of a cluster.
_LOOK = 1.0
# (submitit's own limit is five minutes.)
_MINUTES = 24 * 60


@dataclass(frozen=True)
class Row:
    """A run and what it is called among others.

    Args:
        name: The name, for people.
        run: The run.
    """

    name: str
    run: Run


@dataclass(frozen=True)
class Jobs:
    """How many trainings run at a time, and where.

    Raises:
        TypeError: If `jobs` is no int.
        ValueError: If a value is out of range.
        ImportError: If submitit is missing where a cluster is asked for.

    Example:
        >>> Jobs(2).cluster
        'none'
    """

    jobs: int = 1
    """Trainings at a time, each in a process of its own. Without --threads they share this
    machine's cores; in a SLURM cluster's queue, 1 sets no limit."""
    cluster: Literal["none", "slurm", "local"] = "none"
    """Where they run: "none" in processes that end with this one; through submitit each as a job of
    SLURM, or ("local") of this machine, that goes on without this one."""
    cluster_options: Mapping[str, int | str] = field(default_factory=dict)
    """What submitit is asked for, by name: --cluster-options timeout_min 600 slurm_partition gpu
    gpus_per_node 1 cpus_per_task 8 mem_gb 16. Without timeout_min a job may take a day."""

    def __post_init__(self) -> None:
        _checks.positive_int("jobs", self.jobs)
        _checks.choice("cluster", self.cluster, ("none", "slurm", "local"))
        unused = self.cluster != "none" or not self.cluster_options
        advice = "name a cluster, or leave them out"
        came = dict(self.cluster_options)
        _checks.require(unused, "cluster_options", came, "empty without a cluster", advice)
        if self.cluster != "none":
            try:
                import submitit  # noqa: F401
            except ImportError as error:
                raise _checks.missing_extra("submitit", "cluster", "a cluster") from error


class Ended(NamedTuple):
    """How a row ended."""

    row: Row
    text: str
    """Its result, or what went wrong."""
    failed: bool


class RowJob:
    """Trains a row; submitit starts it again where SLURM took it away."""

    def __call__(
        self,
        row: Row,
        environment: RunEnvironment,
        describe: Callable[[Exception], str],
        debug: bool,
        told: Callable[[int, float], None] | None = None,
        task: Task | None = None,
    ) -> Ended:
        """Trains a row; an error is a text.

        Args:
            row: The row.
            environment: Where it is trained.
            describe: How an error is said.
            debug: Whether the trace of an error is printed on standard error.
            told: As of `fit`.
            task: As of `fit`.
        """
        try:
            result = fit(row.run, environment, task, told)
        except RunLockedError:
            return Ended(row, "another process trains it; it is left to that one", False)
        except Exception as error:
            if debug:
                traceback.print_exc()
            return Ended(row, describe(error), True)
        text = f"test {result.metric} {result.test:.6g}, {result.parameters} parameters, "
        return Ended(row, f"{text}{result.seconds:.1f} s", False)

    def checkpoint(self, *arguments: Any) -> Any:
        """What submitit puts into the queue again: the same, which goes on where it stopped."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, *arguments)


def run_jobs(
    rows: Sequence[Row],
    environment: RunEnvironment,
    jobs: Jobs,
    describe: Callable[[Exception], str],
    debug: bool,
) -> Generator[Ended, None, None]:
    """Trains rows, several at a time, and tells of each when it ends.

    Args:
        rows: The rows.
        environment: Where they are trained; each adds a line to its results file.
        jobs: How many at a time, and where.
        describe: How an error is said.
        debug: Whether traces of errors are printed on standard error.
    """
    environment = replace(environment, progress=False)
    if jobs.cluster != "none":
        yield from _on_cluster(rows, environment, jobs, describe, debug)
        return
    if environment.threads is None:
        share = max(torch.get_num_threads() // jobs.jobs, 1)
        environment = replace(environment, threads=share)
    # Forked, a process would have the threads' locks of this one, but not the threads.
    context = multiprocessing.get_context("spawn")
    workers = min(jobs.jobs, len(rows))
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
        # Nobody waits for them any more; each keeps the epochs it has done.
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _in_pool(*arguments: Any) -> Ended:
    try:
        return RowJob()(*arguments)
    except SystemExit:
        # The pool would wait for more work, although nobody is left to give it.
        os._exit(128 + signal.SIGTERM)


def _end_with_parent() -> None:
    """Ends this process as SIGTERM does when the one that started it is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def _on_cluster(
    rows: Sequence[Row],
    environment: RunEnvironment,
    jobs: Jobs,
    describe: Callable[[Exception], str],
    debug: bool,
) -> Iterator[Ended]:
    import submitit

    # (submitit gives its processes the working directory of this one.)
    executor = submitit.AutoExecutor(environment.out / "jobs", cluster=jobs.cluster)
    executor.update_parameters(name="anharmonic", timeout_min=_MINUTES)
    if jobs.cluster == "slurm":  # (of a local job, the training starts its processes itself)
        executor.update_parameters(tasks_per_node=environment.devices, nodes=environment.num_nodes)
    executor.update_parameters(**jobs.cluster_options)
    waiting = list(rows)
    running: dict[Any, Row] = {}
    at_a_time = jobs.jobs if jobs.cluster == "local" or jobs.jobs > 1 else len(rows)
    while waiting or running:
        while waiting and len(running) < at_a_time:
            row = waiting.pop(0)
            running[executor.submit(RowJob(), row, environment, describe, debug)] = row
        for job in [job for job in running if job.done()]:
            row = running.pop(job)
            try:
                yield job.results()[0]  # of every process of the training, the same
            except Exception as error:
                # Its log says more than the trace of submitit's own process.
                text = f"its job {job.job_id} ended without a result ({type(error).__name__})"
                yield Ended(row, f"{text}; see {job.paths.stderr}", True)
        if running:
            time.sleep(_LOOK)
