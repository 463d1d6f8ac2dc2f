"""The Optuna study of a search, shared by processes any of which may be killed.

Imported by ``search`` only, because it needs Optuna.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from optuna.exceptions import ExperimentalWarning, StorageInternalError, UpdateFinishedTrialError
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback, fail_stale_trials
from optuna.storages._heartbeat import get_heartbeat_thread
from optuna.trial import TrialState
from sqlalchemy.exc import OperationalError, ProgrammingError, SQLAlchemyError

from anharmonic import _checks

if sys.platform != "win32":
    import fcntl

VALUES = "values"
"""The attribute of a trial that holds its values, set once all are drawn."""
_BEGUN, _RETRY_OF = "begun", "failed_trial"
# Seconds between heartbeats of a process; after twice this time it is considered dead.
_HEARTBEAT = 15
# Seconds between checks of other processes.
_WAIT = 1.0
# Seconds that SQLite waits until another process has written.
_SQLITE_WAIT = 30
_SQLITE_OPTIONS = {"timeout", "isolation_level", "check_same_thread", "cached_statements"}
# Errors of opening a database; ValueError and TypeError for invalid URL options.
_CANNOT_OPEN = (
    SQLAlchemyError,
    StorageInternalError,
    ImportError,
    RuntimeError,
    ValueError,
    TypeError,
)


class SharedStudy:
    """A study in a database, shared by this process and possibly others.

    A trial whose process was killed or interrupted is repeated with the same values.
    """

    def __init__(self, storage: RDBStorage, study: Any, say: Callable[[str], None]) -> None:
        self._storage = storage
        self._study = study
        self._say = say

    def work(
        self,
        objective: Callable[[Any], float],
        trials: int,
        sampler: Callable[[int], Any],
        on_trial_end: Callable[[int, Any, float], None],
    ) -> Any:
        """Run trials until all processes together have finished enough, and return the study.

        Args:
            objective: Takes a trial and returns its value, a number or infinite.
            trials: Total number of trials.
            sampler: Makes the sampler of the n-th drawn trial.
            on_trial_end: Called after each trial of this process with the number of finished
                trials, the trial and the best value.
        """
        waits = False
        while (done := len(self.done())) < trials:
            with _quiet():
                fail_stale_trials(self._study)
            if done + self._at_work() >= trials:
                if not waits:
                    self._say("waits for the last trials, which other processes train")
                waits = True
                time.sleep(_WAIT)
                continue
            with _quiet():
                trial = self._study.ask()
            ended = self._finish(trial, objective, sampler)
            if ended is not None:
                on_trial_end(len(self.done()), ended, self._best())
        return self._study

    def done(self) -> list[Any]:
        """Return the trials that finished or were stopped."""
        return list(self._study.get_trials(False, (TrialState.COMPLETE, TrialState.PRUNED)))

    def retry_unfinished(self) -> None:
        """Queue the trials of killed processes again. No other process may be running."""
        for trial in self._study.get_trials(states=(TrialState.RUNNING,)):
            self._study.tell(trial.number, state=TrialState.FAIL)
        for trial in self._failed():
            _retry(self._study, trial)

    def _finish(
        self, trial: Any, objective: Callable[[Any], float], sampler: Callable[[int], Any]
    ) -> Any:
        """Run a trial and return it; None if another process took it over."""
        value = None
        try:
            # In this order: a started trial without a heartbeat would never be considered dead.
            self._storage.record_heartbeat(trial._trial_id)
            trial.set_user_attr(_BEGUN, trial.number)
            self._study.sampler = sampler(self._draw(trial.number))
            with get_heartbeat_thread(trial._trial_id, self._storage):
                value = objective(trial)
        except optuna.TrialPruned:
            pass
        except UpdateFinishedTrialError:
            return None  # no heartbeat for too long, e.g. while suspended
        except BaseException:
            with contextlib.suppress(UpdateFinishedTrialError, ValueError):
                _retry(self._study, self._study.tell(trial, state=TrialState.FAIL))
            raise
        try:
            state = TrialState.PRUNED if value is None else TrialState.COMPLETE
            return self._study.tell(trial, value, state)
        except (UpdateFinishedTrialError, ValueError):
            return None

    def _draw(self, number: int) -> int:
        """Return the index of a trial among newly drawn ones; it seeds the sampler."""
        trials = self._study.get_trials(deepcopy=False)
        original = trials[number].system_attrs.get(_RETRY_OF, number)
        return sum(_RETRY_OF not in trial.system_attrs for trial in trials[:original])

    def _at_work(self) -> int:
        """Return the number of trials that other processes train or are about to queue again."""
        running = self._study.get_trials(False, (TrialState.RUNNING,))
        begun = [trial for trial in running if trial.user_attrs.get(_BEGUN) == trial.number]
        now, grace = datetime.now(), timedelta(seconds=2 * _HEARTBEAT)
        # Older ones belong to a process that was killed.
        failed = [trial for trial in self._failed() if abs(now - trial.datetime_complete) < grace]
        return len(begun) + len(failed)

    def _failed(self) -> list[Any]:
        """Return the failed trials that are not queued again."""
        trials = self._study.get_trials()
        retried = {n for trial in trials for n in trial.system_attrs.get("retry_history", ())}
        failed = [trial for trial in trials if trial.state == TrialState.FAIL]
        return [trial for trial in failed if trial.number not in retried]

    def _best(self) -> float:
        try:
            return float(self._study.best_value)
        except ValueError:  # every trial was stopped
            return float("nan")


@contextlib.contextmanager
def open_study(
    place: Path | str, say: Callable[[str], None], **options: Any
) -> Iterator[SharedStudy]:
    """Open a study in a SQLite file or another database; create it if missing.

    Args:
        place: The path of a SQLite file, or a database URL for SQLAlchemy.
        say: Called with a line when this process waits for another one.
        options: Further arguments of ``optuna.create_study``.

    Raises:
        ValueError: If no database can be opened there.
        OSError: If the database cannot be read or written any more.
    """
    url = _url(place)
    shown = url.render_as_string() if "://" in str(place) else place
    with _lock(url, say) as alone:
        try:
            storage, study = _created(url, options)
        except _CANNOT_OPEN as error:
            reason = _reason(error)
            advice = "correct the path or URL, or install the driver of the database"
            if "not a database" in reason:
                advice = "choose another file: what older versions wrote as a journal is not read, "
                advice += "but no training that has a result is repeated"
            if "full" in reason:
                advice = "free space, or choose another place"
            raise _cannot_open(shown, reason, advice) from error
        try:
            shared = SharedStudy(storage, study, say)
            if alone is not None:
                shared.retry_unfinished()
                fcntl.flock(alone, fcntl.LOCK_SH)
            yield shared
        except (SQLAlchemyError, StorageInternalError) as error:
            advice = "free space or make it writable, then start the same command again"
            text = _checks.message(f"{shown} must be writable", _reason(error), advice)
            raise OSError(text) from error
        finally:
            storage.engine.dispose()


def _created(url: sqlalchemy.URL, options: dict[str, Any]) -> tuple[RDBStorage, Any]:
    # Optuna formats its URL.
    text = url.render_as_string(hide_password=False).replace("{", "{{").replace("}", "}}")
    sqlite = url.get_backend_name() == "sqlite"
    engine = {"connect_args": {"timeout": _SQLITE_WAIT}} if sqlite else None
    tries = 3
    while True:
        try:
            with _quiet():
                storage = RDBStorage(
                    text,
                    engine,
                    heartbeat_interval=_HEARTBEAT,
                    heartbeat_stale_trial_callback=_retry,
                )
            return storage, optuna.create_study(storage=storage, load_if_exists=True, **options)
        except (OperationalError, ProgrammingError):
            # If several processes create the tables at once, all except one fail.
            tries -= 1
            if not tries:
                raise
            time.sleep(_WAIT)


def _retry(study: Any, trial: Any) -> None:
    """Queue a failed trial again; redraw all values if some were missing."""
    if VALUES not in trial.user_attrs:
        trial.params, trial.distributions = {}, {}
    with _quiet():
        RetryHeartbeatStaleTrialCallback()(study, trial)


def _cannot_open(place: Path | str, reason: str, advice: str) -> ValueError:
    expected = f"storage must be a database that opens: {place}"
    return ValueError(_checks.message(expected, reason, advice))


def _url(place: Path | str) -> sqlalchemy.URL:
    if "://" in str(place):
        advice = "write for example sqlite:///search.db or postgresql://USER@HOST/NAME"
        try:
            url = sqlalchemy.make_url(str(place))
        except (SQLAlchemyError, ValueError):
            expected = "storage must be the URL of a database"
            raise ValueError(_checks.message(expected, repr(place), advice)) from None
        lasts = url.get_backend_name() != "sqlite" or url.database not in (None, "", ":memory:")
        _checks.require(lasts, "storage", str(place), "a database that is kept", advice)
        if url.get_backend_name() == "sqlite" and "uri" not in url.query:
            # SQLAlchemy only warns about unknown options and ignores them.
            unknown = sorted(set(url.query) - _SQLITE_OPTIONS)
            expected = f"among {_checks.listed(sorted(_SQLITE_OPTIONS))}"
            _checks.require(not unknown, "options of storage", unknown, expected, advice)
        return url
    path = Path(place)
    usable, advice = "\0" not in str(place), "choose another file"
    with contextlib.suppress(OSError):  # the name is too long; SQLite reports it
        usable = usable and (path.is_file() or not path.exists())
    _checks.require(usable, "storage", str(place), "a file, new or of a search", advice)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):  # a file; SQLite reports that it cannot open it
        pass
    except OSError as error:
        advice = "correct the path, or free space and make the folder writable"
        raise _cannot_open(place, error.strerror or str(error), advice) from error
    return sqlalchemy.URL.create("sqlite", database=str(path))


@contextlib.contextmanager
def _lock(url: sqlalchemy.URL, say: Callable[[str], None]) -> Iterator[int | None]:
    """Hold a lock beside a SQLite file; the system releases it when this process ends.

    Yields the descriptor of an exclusive lock if no other process uses the file; it can be made a
    shared lock later. Otherwise yields None, and heartbeats show which processes are dead.
    """
    with contextlib.ExitStack() as stack:
        alone = None
        if url.get_backend_name() == "sqlite":
            with contextlib.suppress(OSError):  # missing folder, or file system without locks
                flags = os.O_RDWR | os.O_CREAT
                descriptor = os.open(f"{url.database}.lock", flags, 0o666)
                stack.callback(os.close, descriptor)
                if _locked(descriptor, fcntl.LOCK_EX):
                    alone = descriptor
                elif not _locked(descriptor, fcntl.LOCK_SH):
                    say(f"waits for the process that opens {url.database}")
                    fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield alone


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _reason(error: Exception) -> str:
    """Return the error message of the database driver."""
    inner = error.__cause__ or error
    return str(getattr(inner, "orig", None) or inner).partition("\n")[0]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress Optuna's warnings that heartbeats are experimental."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        warnings.filterwarnings("ignore", "Heartbeat of storage is supposed", UserWarning)
        yield
