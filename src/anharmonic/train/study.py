"""An Optuna study that any number of processes work on: where it is kept, and what the dead began.

Imported by ``search`` only, because it needs Optuna.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import optuna
from optuna.storages import GrpcStorageProxy, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from optuna.trial import TrialState

from anharmonic import _checks

if sys.platform != "win32":
    import fcntl

# A database is told this often, in seconds, that a worker lives; after twice that it is dead.
_HEARTBEAT = 60
# Between looks at the trials that others are still at.
_WAIT = 1.0
_DRAW, _WORKER = "draw", "worker"
Objective = Callable[[Any], float]


class SharedStudy:
    """A study and this process, one of its workers.

    A trial that was interrupted is taken up again with the values it had, by whoever comes next:
    one that this process could give back, or whose worker is dead. Workers of a journal hold a
    locked file each, which the system lets go of however they end; those of a database send
    heartbeats, as Optuna does it.

    Args:
        place: The path of a journal; ``grpc://HOST:PORT`` of Optuna's proxy; or the URL of a
            database, as SQLAlchemy has it.
        folder: Shared by the workers of a proxy, for their locked files.
        made: Further arguments of ``optuna.create_study``.

    Raises:
        ValueError: If the place cannot be read as one of these.
    """

    def __init__(self, place: Path | str, folder: Path, **made: Any) -> None:
        self._storage = _storage(place)
        self._study = optuna.create_study(storage=self._storage, load_if_exists=True, **made)
        self._beside = folder / "study" if "://" in str(place) else Path(place)
        self._name = secrets.token_hex(8)

    def work(
        self,
        objective: Objective,
        trials: int,
        sampler: Callable[[int], Any],
        told: Callable[[int, Any, float], None],
    ) -> Any:
        """Does trials until so many are done, by this worker and others.

        Args:
            objective: Takes a trial and gives its value.
            trials: How many in all.
            sampler: Makes the sampler of a trial's number among those drawn afresh.
            told: Is called after each of this worker's with the number done, the trial and the
                best value.

        Returns:
            The study.
        """
        running: Any = None
        broken = False

        def watched(trial: Any) -> float:
            nonlocal running, broken
            running, broken = trial, True
            trial.set_user_attr(_WORKER, self._name)
            if _DRAW not in trial.user_attrs:
                trial.set_user_attr(_DRAW, self._draw(trial.number))
            self._study.sampler = sampler(trial.user_attrs[_DRAW])
            try:
                value = objective(trial)
            except (optuna.TrialPruned, optuna.exceptions.UpdateFinishedTrialError):
                broken = False
                raise
            broken = False
            return value

        with self._alive():
            while (done := len(self.done())) < trials:
                self._bury()
                if done + len(self._at_work()) >= trials:
                    time.sleep(_WAIT)
                    continue
                running = None
                try:
                    self._study.optimize(watched, n_trials=1)
                except BaseException:
                    if running is None:
                        raise
                    failed = self._trial(running.number).state == TrialState.FAIL
                    if failed and not broken:
                        # Silent for too long, this worker was taken for dead; another has its
                        # trial, and will find its result.
                        continue
                    # Optuna has ended it already where it could.
                    if failed:
                        _again(self._study, self._trial(running.number))
                    else:
                        self._give_back(running)
                    raise
                told(len(self.done()), self._trial(running.number), self._best())
        return self._study

    def done(self) -> list[Any]:
        """The trials that ended, or were stopped."""
        return self._study.get_trials(False, (TrialState.COMPLETE, TrialState.PRUNED))

    def _best(self) -> float:
        try:
            return float(self._study.best_value)
        except ValueError:  # every trial was stopped
            return float("nan")

    def _draw(self, number: int) -> int:
        """The place of a trial among those that are drawn afresh.

        Sampled by it, a search that goes on draws what it would have, and no two workers the same.
        """
        before = self._study.get_trials(deepcopy=False)[:number]
        return sum("fixed_params" not in trial.system_attrs for trial in before)

    def _at_work(self) -> list[Any]:
        """The trials that a worker is at, dead or alive."""
        running = self._study.get_trials(False, (TrialState.RUNNING,))
        return [trial for trial in running if _WORKER in trial.user_attrs]

    def _bury(self) -> None:
        """Puts the trials of dead workers back."""
        if isinstance(self._storage, RDBStorage):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                optuna.storages.fail_stale_trials(self._study)
            return
        for trial in self._at_work():
            path = self._path(trial.user_attrs[_WORKER])
            if self._is_dead(path):
                self._give_back(trial)
                path.unlink(missing_ok=True)

    def _give_back(self, trial: Any) -> None:
        """Ends a running trial as failed and lets its values be tried again.

        Of several workers one ends it.
        """
        with contextlib.suppress(optuna.exceptions.UpdateFinishedTrialError, ValueError):
            self._study.tell(trial.number, state=TrialState.FAIL)
            _again(self._study, self._trial(trial.number))

    def _trial(self, number: int) -> Any:
        return self._study.get_trials(deepcopy=False)[number]

    def _path(self, worker: str) -> Path:
        return self._beside.with_name(f"{self._beside.name}.{worker}.worker")

    @contextlib.contextmanager
    def _alive(self) -> Iterator[None]:
        if isinstance(self._storage, RDBStorage):  # heartbeats tell
            yield
            return
        path = self._path(self._name)
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)

    def _is_dead(self, path: Path) -> bool:
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            # A proxy's worker may be on a machine without the shared folder.
            return isinstance(self._storage, JournalStorage)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return True


class _WholeLines(JournalFileBackend):
    """A journal without half a line in the middle, which Optuna could never read again.

    A kill or a full disk may cut the last line short; nobody has read it, and the next one to write
    takes it away.
    """

    def __init__(self, path: str) -> None:
        self._whole_lines = path, JournalFileSymlinkLock(path)
        super().__init__(path)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Adds lines, all or none."""
        path, lock = self._whole_lines
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
        try:
            lock.acquire()
            try:
                _append(path, lines.encode())
            finally:
                lock.release()
        except (OSError, RuntimeError) as error:
            # Optuna hides behind a RuntimeError why a lock could not be given back.
            found = error if isinstance(error, OSError) else error.__context__
            number = found.errno if isinstance(found, OSError) else None
            reason = os.strerror(number) if number else str(error)
            advice = "free space, or make it writable; then start the same command again"
            text = _checks.message(f"{path} must take more lines", reason, advice)
            raise OSError(number, text) from error


def _append(path: str, lines: bytes) -> None:
    """Adds lines to a file in place of half a line at its end, all or none."""
    with open(path, "r+b") as file:
        end = _end_of_lines(file)
        file.truncate(end)
        file.seek(end)
        try:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            os.truncate(path, end)
            raise


def _end_of_lines(file: BinaryIO) -> int:
    """Where the last whole line of a file ends."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(end - 4096, 0)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _again(study: Any, trial: Any) -> None:
    draws = {name: value for name, value in trial.user_attrs.items() if name == _DRAW}
    study.enqueue_trial(dict(trial.params), user_attrs=draws)


def _storage(place: Path | str) -> Any:
    scheme, separator, address = str(place).partition("://")
    if not separator:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        return JournalStorage(_WholeLines(str(place)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        if scheme != "grpc":
            return RDBStorage(
                str(place), heartbeat_interval=_HEARTBEAT, heartbeat_stale_trial_callback=_again
            )
        host, _, port = address.strip("/").partition(":")
        good, advice = bool(host) and port.isdigit(), "say where it listens"
        _checks.require(good, "storage", place, "grpc://HOST:PORT", advice)
        return GrpcStorageProxy(host=host, port=int(port))
