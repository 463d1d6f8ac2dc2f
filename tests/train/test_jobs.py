"""Rows several at a time: the results of one after the other, whatever is killed."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from anharmonic.train.results import read_results
from anharmonic.train.rows import Row, fit_rows, without_results
from anharmonic.train.run import RunEnvironment

# Forked from a process that has imported PyTorch; the slow test starts them as users do.
FORKS = multiprocessing.get_context("forkserver")


def test_two_at_a_time_give_what_one_after_the_other_gives(
    tiny, environment, tmp_path, monkeypatch
):
    monkeypatch.setattr(multiprocessing, "get_context", lambda kind: FORKS)
    good = [Row(f"seed {seed}", tiny(epochs=1, seed=seed)) for seed in (0, 1)]
    assert fit_rows(good, environment, say=lambda line: None) == []
    bad = Row("bad", tiny(model_options={"dropout": 2.0}))
    elsewhere = RunEnvironment(out=tmp_path / "jobs", threads=1, progress=False)
    said = []
    failed = fit_rows([bad, *good], elsewhere, 2, say=said.append)
    assert len(failed) == 1 and failed[0].startswith("bad: dropout must be")
    assert len(said) == 3 and said[2].startswith("[3/3] ")
    found = {result.hash: result for result in read_results(elsewhere.results_path)}
    assert len(found) == 2
    for result in read_results(environment.results_path):
        assert (found[result.hash].curve, found[result.hash].test) == (result.curve, result.test)
    assert without_results(good, found.values()) == []


def test_the_number_of_jobs_is_checked_and_no_rows_are_no_error(environment):
    assert fit_rows([], environment, 2, say=lambda line: None) == []
    with pytest.raises(ValueError, match="jobs must be an int >= 1; got jobs=0"):
        fit_rows([], environment, 0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("kill", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_comparison_takes_its_processes_along_and_goes_on(tmp_path, kill):
    words = "compare adding --length 8 --steps-per-epoch 100 --valid-size 64 --test-size 64"
    words += " --models lstm gru lem --hidden-size 4 --epochs 8 --seeds 0 1 --jobs 2"
    command = [sys.executable, "-m", "anharmonic", *words.split()]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def lines():
        return len(read_results(tmp_path / "runs" / "results.jsonl"))

    process = subprocess.Popen(command, cwd=tmp_path, env=environment, start_new_session=True)
    deadline = time.monotonic() + 400
    while not lines():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, kill)
    process.wait(timeout=60)
    while any(_in_session(process.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert 1 <= lines() < 6
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stderr
    results = read_results(tmp_path / "runs" / "results.jsonl")  # it warns of lines that are cut
    assert len(results) == len({result.hash for result in results}) == 6


def _in_session(session):
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                yield int(name)


@pytest.mark.slow
def test_warnings_of_other_processes_look_as_those_of_this_one(tmp_path):
    head, rows = (
        "id,time,v,label\n",
        [f"{i // 8},{i},{i % 3},{'ab'[i // 8 % 2]}\n" for i in range(96)],
    )
    (tmp_path / "mine.csv").write_text(head + "".join(rows[:50]) + head + "".join(rows[50:]))
    words = "compare mine.csv --models lstm gru --seeds 0 --hidden-size 2 --epochs 1 --jobs 2"
    command = [sys.executable, "-m", "anharmonic", *words.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("anharmonic: warning: ") == 3 and "UserWarning" not in done.stderr
