"""Several processes on one study: no trial twice, and those of the dead are taken up again."""

import json
import os
import signal
import sqlite3
import sys
import textwrap
import time

import pytest

from anharmonic.train.results import read_results

optuna = pytest.importorskip("optuna", reason="the search is Optuna's")


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    """Who waits for another process looks again soon."""
    from anharmonic.train import study

    monkeypatch.setattr(study, "_WAIT", 0.05)


WORKER = textwrap.dedent(
    """
    import json, sys, time
    from pathlib import Path

    from anharmonic.train import Range, Run, RunEnvironment, results, search
    from anharmonic.train import study

    module = sys.modules["anharmonic.train.trials"]
    out, place, fate = sys.argv[1:]
    study._HEARTBEAT = 1
    study._WAIT = 0.1
    real = module.fit
    report_curve = results.report_curve
    done_before = []

    def watched(run, environment, on_epoch_end=None):
        def report_and_note(curve, on_epoch_end):
            done_before.append((run.lr, list(curve["epoch"])))
            report_curve(curve, on_epoch_end)

        results.report_curve = report_and_note

        def seen(epoch, values):
            if fate == "hangs":  # the state of this epoch is on the disk
                print(json.dumps(run.lr), flush=True)
                time.sleep(600)

        return real(run, environment, on_epoch_end=seen)

    module.fit = watched
    task = {"length": 10, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2}
    run = Run("adding", "LEM", task, {"hidden_size": 4}, epochs=2)
    space = {"lr": Range(1e-3, 1e-1, log=True)}
    told = []
    best = search(run, space, 5, RunEnvironment(out=out, progress=False, threads=1), place,
                  on_trial_end=lambda *seen: told.append(seen), say=lambda line: None)
    print(json.dumps([best.trials, best.valid, len(told), done_before]))
    """
)


def first_line(process):
    """The first line that a process prints."""
    while not (process.out[0].is_file() and "\n" in (said := process.out[0].read_text())):
        assert process.process.is_alive(), process.wait().stderr
        time.sleep(0.02)
    return said.splitlines()[0]


@pytest.mark.fast("True")
@pytest.mark.parametrize("lives", [False, True])
def test_two_workers_share_a_study_and_a_dead_ones_trial_is_taken_up(tmp_path, lives, start_python):
    """Before two others work on the study, or while one does, which sees no heartbeat."""
    place = tmp_path / "shared.db"
    dead = start_python(WORKER, tmp_path, place, "hangs")
    begun = float(first_line(dead))
    alive = [start_python(WORKER, tmp_path, place, "works")] if lives else []
    while lives and len(read_results(tmp_path / "results.jsonl")) < 2:
        time.sleep(0.1)
    dead.wait(0)
    if not lives:
        alive = [start_python(WORKER, tmp_path, place, "works") for _ in range(2)]
    found = []
    for one in alive:
        done = one.wait()
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    results = read_results(tmp_path / "results.jsonl")
    rates = [result.run.lr for result in results]
    # All different, that of the dead worker among them; two may begin the last at the same moment.
    assert len(set(rates)) == len(rates) and begun in rates
    assert 5 <= len(rates) == sum(one[2] for one in found) <= 6
    assert min(one[1] for one in found) == min(result.valid for result in results)
    # The training of the dead one goes on after the epoch that it had done.
    done_before = [(rate, epochs) for one in found for rate, epochs in one[3] if epochs]
    assert done_before == [(begun, [1])]


def work(place, objective, trials, told=lambda *seen: None, say=lambda line: None):
    """Does trials of a study named "one"; the n-th is sampled with seed n."""
    from anharmonic.train.study import open_study

    def sampler(number):
        return optuna.samplers.RandomSampler(seed=number)

    with open_study(place, say, study_name="one", direction="minimize") as shared:
        shared.work(objective, trials, sampler, told)
        return [trial.value for trial in shared.done()]


def two_values(trial):
    """An objective of two values, the first of which is drawn before the second."""
    from anharmonic.train.study import VALUES

    drawn = [trial.suggest_float(name, 0.0, 1.0) for name in "xy"]
    trial.set_user_attr(VALUES, drawn)
    return sum(drawn)


@pytest.mark.parametrize("ends", ["value", "report"])
def test_a_worker_that_was_taken_for_dead_goes_on(tmp_path, monkeypatch, ends):
    """As after a pause of its machine; the values are another's then."""
    from anharmonic.train import study

    monkeypatch.setattr(study, "_HEARTBEAT", 1)
    place = tmp_path / "study"
    drawn, told = [], []

    def objective(trial):
        drawn.append(two_values(trial))
        if len(drawn) == 1:
            other = optuna.load_study(study_name="one", storage=f"sqlite:///{place}")
            other.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            other.enqueue_trial(trial.params)
            if ends == "report":
                trial.report(drawn[-1], 1)
        return drawn[-1]

    values = work(place, objective, 2, lambda *seen: told.append(seen))
    assert values == drawn[1:] and len(told) == 2
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.covering
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, OSError])
@pytest.mark.parametrize("moment", ["before", "between", "after"])
def test_an_interrupted_trial_gets_the_values_that_it_would_have_had(tmp_path, error, moment):
    whole = work(tmp_path / "whole", two_values, 3)
    moments = []

    def objective(trial):
        moments.append(trial)
        if len(moments) == 2 and moment == "before":
            raise error
        if len(moments) == 2 and moment == "between":
            trial.suggest_float("x", 0.0, 1.0)
            raise error
        value = two_values(trial)
        if len(moments) == 2:
            raise error
        return value

    with pytest.raises(error):
        work(tmp_path / "cut", objective, 3)
    assert work(tmp_path / "cut", objective, 3) == whole


def killed_at(place, moment):
    """Does three trials in a process that is killed before it writes for the n-th time.

    Returns the number of times that it wrote; None if it was killed.
    """
    from_child, to_parent = os.pipe()
    child = os.fork()
    if child == 0:
        real, writes = sqlite3.connect, 0

        def note(statement):
            nonlocal writes
            if statement.startswith(("BEGIN", "INSERT", "UPDATE", "COMMIT", "CREATE")):
                writes += 1
                if writes == moment:
                    os.kill(os.getpid(), signal.SIGKILL)

        def connect(*arguments, **options):
            connection = real(*arguments, **options)
            connection.set_trace_callback(note)
            return connection

        try:
            sqlite3.connect = sqlite3.dbapi2.connect = connect
            work(place, two_values, 3)
            os.write(to_parent, str(writes).encode())
        finally:
            os._exit(1)
    os.close(to_parent)
    with os.fdopen(from_child) as file:
        text = file.read()
    os.waitpid(child, 0)
    return int(text) if text else None


@pytest.mark.parametrize("every", [41, pytest.param(1, marks=pytest.mark.slow)])
def test_a_search_killed_at_any_write_goes_on_as_if_it_had_not_been(tmp_path, every):
    whole = work(tmp_path / "whole", two_values, 3)
    writes = killed_at(tmp_path / "count", -1)
    assert writes > 50
    for moment in range(1, writes + 1, every):
        place = tmp_path / str(moment)
        assert killed_at(place, moment) is None
        again = moment + 7 if moment % 2 else -1  # some are killed a second time
        killed_at(place, again)
        lines = []  # nobody waits for what the dead were at
        assert work(place, two_values, 3, say=lines.append) == whole, moment
        assert lines == []


@pytest.mark.parametrize("processes", [4, pytest.param(8, marks=pytest.mark.slow)])
def test_many_processes_create_a_study_at_once(tmp_path, processes):
    whole = work(tmp_path / "whole", two_values, 6)
    started = []
    for _ in range(processes):
        started.append(os.fork())
        if started[-1] == 0:
            code = 1
            try:
                work(tmp_path / "one", two_values, 6)
                code = 0
            finally:
                os._exit(code)
    assert [os.waitpid(process, 0)[1] for process in started] == [0] * 4
    values = work(tmp_path / "one", two_values, 6)
    assert set(whole) <= set(values) and len(set(values)) == len(values)


def test_a_race_for_the_tables_of_a_database_is_run_again(tmp_path, monkeypatch):
    from sqlalchemy.exc import OperationalError

    from anharmonic.train import study

    real, calls = study.RDBStorage, []

    def races(*arguments, **options):
        calls.append(arguments)
        if len(calls) < 3:
            raise OperationalError("CREATE TABLE studies", None, Exception("it exists already"))
        return real(*arguments, **options)

    monkeypatch.setattr(study, "RDBStorage", races)
    monkeypatch.setattr(study, "_WAIT", 0.0)
    assert len(work(tmp_path / "a", two_values, 1)) == 1
    calls.clear()
    monkeypatch.setattr(study, "RDBStorage", lambda *a, **b: races(calls.clear()))
    with pytest.raises(
        ValueError, match=r"storage must be a database that opens: .*exists already"
    ):
        work(tmp_path / "b", two_values, 1)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("{}/garbage", "garbage; got file is not a database; choose another file"),
        ("sqlite:///{}/garbage", "garbage; got file is not a database; choose another file"),
        ("{}/old.journal", "what older versions wrote as a journal is not read"),
        ("{}", "storage must be a file, new or of a search; .*choose another file"),
        ("{}/garbage/below", "got unable to open database file; correct the path"),
        ("sqlite:////no/such/folder/a.db", "got unable to open database file; correct the path"),
        ("grpc://localhost:1", "opens: grpc://localhost:1; got Can't load plugin"),
        ("mysql+none://me:secret@here/a", r"opens: mysql\+none://me:\*\*\*@here/a; got Can't load"),
        ("postgresql+psycopg2://here/a", r"got No module named 'psycopg2'; .*install the driver"),
        ("://", "storage must be the URL of a database; got '://'; write for example sqlite:///"),
        ("postgresql://here:port/a", "storage must be the URL of a database"),
    ],
)
def test_where_no_study_can_be_kept_is_said(tmp_path, monkeypatch, place, text):
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    if "psycopg2" in place:
        text = "import of psycopg2 halted"
    (tmp_path / "garbage").write_bytes(b"no database\n" * 999)
    (tmp_path / "old.journal").write_text('{"op_code":0,"worker_id":"a","study_name":"one"}\n')
    with pytest.raises(ValueError, match=text):
        work(place.format(tmp_path), two_values, 1)


@pytest.mark.fast("50%20 # \\xe9")
@pytest.mark.parametrize("name", ["a {b}", "what?", "50%20 # é", "it's", "a:b"])
def test_a_file_may_have_any_name(tmp_path, name):
    path = tmp_path / name / f"{name}.db"
    assert work(path, two_values, 1) == work(str(path), two_values, 1)
    assert path.read_bytes().startswith(b"SQLite format 3")
    assert len(work(f"sqlite:///{tmp_path}/x.db", two_values, 1)) == 1


def test_a_database_that_cannot_be_written_any_more_is_said(tmp_path):
    place = tmp_path / "full"

    def objective(trial):
        value = two_values(trial)
        if trial.number == 1:
            # As a full disk: no page can be added, and none written.
            place.write_bytes(b"")
        return value

    with pytest.raises(OSError, match=r"full must be writable; got .*; free space or make it"):
        work(place, objective, 3)


def test_a_database_that_another_program_holds_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    from anharmonic.train import study

    work(tmp_path / "a", two_values, 1)
    monkeypatch.setattr(study, "_SQLITE_WAIT", 0.1)
    monkeypatch.setattr(study, "_WAIT", 0.0)
    with sqlite3.connect(tmp_path / "a") as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ValueError, match=r"database that opens: .*got database is locked"):
            work(tmp_path / "a", two_values, 2)
    other.close()
    assert len(work(tmp_path / "a", two_values, 2)) == 2


def test_who_waits_for_the_trials_of_others_says_so_and_takes_them_when_they_die(
    tmp_path, monkeypatch
):
    from anharmonic.train import study

    monkeypatch.setattr(study, "_HEARTBEAT", 1)
    whole = work(tmp_path / "whole", two_values, 1)
    place, lines = tmp_path / "a", []
    with study.open_study(place, lines.append, study_name="one", direction="minimize") as other:
        with study._quiet():
            trial = other._study.ask()
        other._storage.record_heartbeat(trial._trial_id)
        trial.set_user_attr(study._BEGUN, trial.number)
        assert work(place, two_values, 1, say=lines.append) == whole
    assert lines == ["waits for the last trials, which other processes train"]


def test_nobody_draws_a_trial_while_another_is_about_to_be_queued_again(tmp_path, monkeypatch):
    """Optuna ends a trial without heartbeats first, and then queues it again."""
    from anharmonic.train import study

    whole = work(tmp_path / "whole", two_values, 1)
    place, lines = tmp_path / "a", []
    with study.open_study(place, lines.append, study_name="one", direction="minimize") as other:
        with study._quiet():
            trial = other._study.ask()
        failed = other._study.tell(trial, state=optuna.trial.TrialState.FAIL)

        def sleep(seconds):
            study._retry(other._study, failed)

        monkeypatch.setattr(study.time, "sleep", sleep)
        assert work(place, two_values, 1, say=lines.append) == whole
    assert len(lines) == 1


def test_who_waits_for_the_process_that_creates_a_study_says_so(tmp_path, start_python):
    place, lines = tmp_path / "a", []
    other = start_python(CREATES, os.path.dirname(__file__), place)
    assert first_line(other) == "locked"
    work(place, two_values, 1, say=lines.append)
    other.wait()
    # It may also wait for the only trial, if the other process begins that.
    assert lines[0] == f"waits for the process that opens {place}"


CREATES = textwrap.dedent(
    """
    import sys, time
    sys.path.insert(0, sys.argv[1])
    import test_study
    from anharmonic.train import study

    real = study._created

    def slowly(*arguments):
        print("locked", flush=True)
        time.sleep(0.5)
        return real(*arguments)

    study._created = slowly
    test_study.work(sys.argv[2], test_study.two_values, 1)
    """
)
