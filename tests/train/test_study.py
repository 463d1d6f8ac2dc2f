"""Several processes on one study: no trial twice, and those of the dead are taken up again."""

import contextlib
import fcntl
import itertools
import json
import os
import re
import signal
import sqlite3
import time
from functools import partial

import pytest

from anharmonic.train import Run, RunEnvironment, read_results

optuna = pytest.importorskip("optuna", reason="the search is Optuna's")
from sqlalchemy.exc import OperationalError  # noqa: E402  (Optuna's)

from anharmonic.train import study, trials  # noqa: E402  (need Optuna)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    """Who waits for another process looks again soon."""
    monkeypatch.setattr(study, "_WAIT", 0.05)


@pytest.fixture
def short_heartbeats(monkeypatch):
    """A process without a heartbeat is soon taken for dead."""
    monkeypatch.setattr(study, "_HEARTBEAT", 1)


def searches(out, hangs, say):
    """Does three trials, or hangs after the first epoch of one.

    Says the rate of that trial, or in the end the best value and the number of trials it did.
    """
    real_fit, reported = trials.fit, []

    def fit(run, environment, task=None, on_epoch_end=None):
        def hang(epoch, values):
            if hangs:  # the state of this epoch is on the disk
                say(run.lr)
                time.sleep(600)

        return real_fit(run, environment, on_epoch_end=hang)

    trials.fit = fit
    task = {"length": 10, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2}
    run = Run("adding", "LEM", task, {"hidden_size": 4}, epochs=2)
    space = {"lr": trials.Range(1e-3, 1e-1, log=True)}
    here, study = RunEnvironment(out=out, threads=1), out / "shared.db"
    best = trials.search(run, space, 3, here, study, on_trial_end=lambda *_: reported.append(1))
    say([best.valid, len(reported)])


@pytest.mark.usefixtures("short_heartbeats")
@pytest.mark.fast("True")
@pytest.mark.parametrize("lives", [False, True])
def test_two_workers_share_a_study_and_a_dead_ones_trial_is_taken_up(
    tmp_path, forked, capfd, lives
):
    """Before two others work on the study, or while one does, which sees no heartbeat."""
    dead, said = forked(partial(searches, tmp_path, True))
    begun = json.loads(said.readline())
    alive = [forked(partial(searches, tmp_path, False)) for _ in range(lives)]
    while lives and not read_results(tmp_path / "results.jsonl"):
        time.sleep(0.02)
    os.kill(dead, signal.SIGKILL)
    os.waitpid(dead, 0)
    alive = alive or [forked(partial(searches, tmp_path, False)) for _ in range(2)]
    best, numbers = zip(*(json.loads(said.read()) for _, said in alive), strict=True)
    assert [os.waitpid(child, 0)[1] for child, _ in alive] == [0] * len(alive)
    found = read_results(tmp_path / "results.jsonl")
    rates = [result.run.lr for result in found]
    # All different, that of the dead worker among them; two may begin the last at the same moment.
    assert len(set(rates)) == len(rates) and begun in rates
    assert 3 <= len(rates) == sum(numbers) <= 4
    assert min(best) == min(result.valid for result in found)
    # The training of the dead one goes on after the epoch that it had done.
    assert re.findall(r"Going on after epoch (\d)", capfd.readouterr().err) == ["1"]


def work(place, objective, trials, reported=lambda *seen: None, say=lambda line: None):
    """Does trials of a study named "one"; the n-th is sampled with seed n."""

    def sampler(number):
        return optuna.samplers.RandomSampler(seed=number)

    with study.open_study(place, say, study_name="one", direction="minimize") as shared:
        shared.work(objective, trials, sampler, reported)
        return [trial.value for trial in shared.done()]


def two_values(trial):
    """An objective of two values, the first of which is drawn before the second."""
    drawn = [trial.suggest_float(name, 0.0, 1.0) for name in "xy"]
    trial.set_user_attr(study.VALUES, drawn)
    return sum(drawn)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The values of four trials that nothing interrupts."""
    return work(tmp_path_factory.mktemp("study") / "whole", two_values, 4)


@pytest.mark.usefixtures("short_heartbeats")
def test_a_worker_that_was_taken_for_dead_goes_on(tmp_path):
    """As after a pause of its machine; the values are another's then."""
    place, drawn, reported = tmp_path / "study", [], []

    def objective(trial):
        drawn.append(two_values(trial))
        if len(drawn) < 3:
            other = optuna.load_study(study_name="one", storage=f"sqlite:///{place}")
            other.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            other.enqueue_trial(trial.params)
        if len(drawn) == 1:  # it hears of it here, the second time when it tells its value
            trial.report(drawn[-1], 1)
        return drawn[-1]

    values = work(place, objective, 2, lambda *seen: reported.append(seen))
    assert values == drawn[2:] and len(reported) == 2
    assert drawn[0] == drawn[1] == drawn[2] != drawn[3]


def test_an_interrupted_trial_gets_the_values_that_it_would_have_had(tmp_path, whole):
    place = tmp_path / "50%20 # é" / "what? it's {a:b}.db"
    errors = {"before": KeyboardInterrupt, "between": SystemExit, "after": OSError}
    for moment, error in errors.items():

        def objective(trial, moment=moment, error=error):
            if moment == "between":
                trial.suggest_float("x", 0.0, 1.0)
            elif moment == "after":
                two_values(trial)
            raise error

        with pytest.raises(error):
            work(place, objective, 3)
    assert work(place, two_values, 3) == whole[:3]
    assert place.read_bytes().startswith(b"SQLite format 3")


def killed_at(place, moment, say):
    """Does two trials, and is killed before it writes for the n-th time; says how often it did."""
    real, writes = sqlite3.connect, itertools.count(1)

    def note(statement):
        if statement.startswith(("BEGIN", "INSERT", "UPDATE", "COMMIT", "CREATE")):
            if next(writes) == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    def connect(*arguments, **options):
        connection = real(*arguments, **options)
        connection.set_trace_callback(note)
        return connection

    sqlite3.connect = sqlite3.dbapi2.connect = connect
    work(place, two_values, 2)
    say(next(writes) - 1)


@pytest.mark.parametrize("every", [41, pytest.param(1, marks=pytest.mark.slow)])
def test_a_search_killed_at_any_write_goes_on_as_if_it_had_not_been(tmp_path, forked, whole, every):
    def said(place, moment):
        child, text = forked(partial(killed_at, place, moment))
        return text.read(), os.waitpid(child, 0)[1]

    writes = int(said(tmp_path / "count", -1)[0])
    assert writes > 50
    for moment in range(1, writes + 1, every):
        place = tmp_path / str(moment)
        assert said(place, moment) == ("", signal.SIGKILL)
        if moment % 2:
            said(place, moment + 7)  # a second time
        lines = []  # nobody waits for what the dead were at
        assert work(place, two_values, 2, say=lines.append) == whole[:2], moment
        assert lines == []


@pytest.mark.parametrize("lost", [2, 3])
def test_a_race_for_the_tables_of_a_database_is_run_again(tmp_path, monkeypatch, lost):
    def races(*arguments, **options):
        calls.append(arguments)
        if len(calls) <= lost:
            raise OperationalError("CREATE TABLE studies", None, Exception("it exists already"))
        return real(*arguments, **options)

    real, calls = study.RDBStorage, []
    monkeypatch.setattr(study, "RDBStorage", races)
    monkeypatch.setattr(study, "_WAIT", 0.0)
    said = r"storage must be a database that opens: .*exists already"
    with contextlib.nullcontext() if lost == 2 else pytest.raises(ValueError, match=said):
        assert len(work(tmp_path / "a", two_values, 1)) == 1


def test_a_database_that_cannot_be_written_any_more_is_said(tmp_path):
    place = tmp_path / "full"

    def objective(trial):
        if trial.number == 1:  # as a full disk: no page can be added, and none written
            place.write_bytes(b"")
        return two_values(trial)

    with pytest.raises(OSError, match=r"full must be writable; got .*; free space or make it"):
        work(place, objective, 3)


def test_a_database_that_another_program_holds_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    work(tmp_path / "a", two_values, 1)
    monkeypatch.setattr(study, "_SQLITE_WAIT", 0.1)
    monkeypatch.setattr(study, "_WAIT", 0.0)
    with sqlite3.connect(tmp_path / "a") as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ValueError, match=r"database that opens: .*got database is locked"):
            work(tmp_path / "a", two_values, 2)
    other.close()
    assert len(work(f"sqlite:///{tmp_path}/a", two_values, 2)) == 2


def test_who_waits_for_the_trials_of_others_says_so_and_takes_them_when_they_die(
    tmp_path, monkeypatch, whole
):
    """Optuna ends a trial without heartbeats first, and then queues it again."""
    place, lines = tmp_path / "a", []
    with study.open_study(place, lines.append, study_name="one", direction="minimize") as other:
        with study._quiet():
            trial = other._study.ask()
        failed = other._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        monkeypatch.setattr(study.time, "sleep", lambda _: study._retry(other._study, failed))
        assert work(place, two_values, 1, say=lines.append) == whole[:1]
    assert lines == ["waits for the last trials, which other processes train"]


def test_who_waits_for_the_process_that_creates_a_study_says_so(tmp_path):
    place, lines = tmp_path / "a", []
    with open(f"{place}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def say(line):
            lines.append(line)
            fcntl.flock(lock, fcntl.LOCK_UN)

        work(place, two_values, 1, say=say)
    assert lines == [f"waits for the process that opens {place}"]
