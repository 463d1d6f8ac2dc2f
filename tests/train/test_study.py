"""Several workers on one study: no trial twice, and those of the dead are taken up again."""

import errno
import json
import os
import subprocess
import sys
import textwrap

import pytest

from anharmonic.train.results import read_results

optuna = pytest.importorskip("optuna", reason="the search is Optuna's")

WORKER = textwrap.dedent(
    """
    import json, sys, time
    from pathlib import Path

    from anharmonic.train import Range, Run, RunEnvironment, results, search
    from anharmonic.train import study

    module = sys.modules["anharmonic.train.search"]
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
                  told=lambda *seen: told.append(seen))
    print(json.dumps([best.trials, best.valid, len(told), done_before]))
    """
)


def worker(folder, place, fate):
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(folder), place, fate],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


PROXY = textwrap.dedent(
    """
    import socket, sys
    from optuna.storages import RDBStorage, run_grpc_proxy_server

    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    print(f"grpc://localhost:{port}", flush=True)
    run_grpc_proxy_server(RDBStorage(sys.argv[1]), host="localhost", port=port)
    """
)


@pytest.fixture(params=["journal", "database", "proxy"])
def place(request, tmp_path):
    """Where a study is kept, as --storage takes it."""
    path = tmp_path / "shared.study"
    if request.param != "proxy":
        yield str(path) if request.param == "journal" else f"sqlite:///{path}"
        return
    pytest.importorskip("grpc", reason="the proxy needs the packages grpcio and protobuf")
    words = [sys.executable, "-c", PROXY, f"sqlite:///{path}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        yield server.stdout.readline().strip()
        server.kill()


def test_two_workers_share_a_study_and_a_dead_ones_trial_is_taken_up(tmp_path, place):
    dead = worker(tmp_path, place, "hangs")
    begun = float(dead.stdout.readline())
    dead.kill()
    dead.communicate()
    alive = [worker(tmp_path, place, "works") for _ in range(2)]
    found = []
    for one in alive:
        out, err = one.communicate(timeout=200)
        assert one.returncode == 0, err
        found.append(json.loads(out))
    results = read_results(tmp_path / "results.jsonl")
    rates = [result.run.lr for result in results]
    # All different, that of the dead worker among them; two may begin the last at the same moment.
    assert len(set(rates)) == len(rates) and begun in rates
    assert 5 <= len(rates) == sum(one[2] for one in found) <= 6
    assert min(one[1] for one in found) == min(result.valid for result in results)
    # The training of the dead one goes on after the epoch that it had done.
    done_before = [(rate, epochs) for one in found for rate, epochs in one[3] if epochs]
    assert done_before == [(begun, [1])]
    assert not list(tmp_path.glob("*.worker"))


@pytest.mark.parametrize("ends", ["value", "report"])
def test_a_worker_that_was_taken_for_dead_goes_on(tmp_path, ends):
    """As after a pause of its machine; the values are another's then."""
    from anharmonic.train.study import SharedStudy

    place = f"sqlite:///{tmp_path / 'study'}"
    shared = SharedStudy(place, tmp_path, study_name="one", direction="minimize")
    drawn, told = [], []

    def objective(trial):
        drawn.append(trial.suggest_float("x", 0.0, 1.0))
        if len(drawn) == 1:
            other = optuna.load_study(study_name="one", storage=place)
            other.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            other.enqueue_trial(trial.params)
            if ends == "report":
                trial.report(drawn[-1], 1)
        return drawn[-1]

    def sampler(number):
        return optuna.samplers.RandomSampler(seed=number)

    found = shared.work(objective, 2, sampler, lambda *seen: told.append(seen))
    assert [trial.value for trial in shared.done()] == drawn[1:]
    assert drawn[0] == drawn[1] != drawn[2] and len(found.trials) == 3 == len(told) + 1


def test_a_proxy_is_an_address(tmp_path):
    from anharmonic.train.study import SharedStudy

    with pytest.raises(ValueError, match=r"storage must be grpc://HOST:PORT; got 'grpc://here'"):
        SharedStudy("grpc://here", tmp_path)


@pytest.mark.parametrize("cut", ["in the middle", "at a character", "everything"])
def test_a_line_that_a_kill_cut_short_does_not_end_a_study(tmp_path, cut):
    from anharmonic.train.study import SharedStudy

    place = tmp_path / "journal"

    def work(trials):
        shared = SharedStudy(place, tmp_path, study_name="one", direction="minimize")
        shared.work(
            lambda trial: trial.suggest_float("x", 0.0, 1.0),
            trials,
            lambda number: optuna.samplers.RandomSampler(seed=number),
            lambda *seen: None,
        )
        return [trial.params["x"] for trial in shared.done()]

    first = work(2)
    lines = place.read_bytes().splitlines(keepends=True)
    end = {"in the middle": len(lines[-1]) // 2, "at a character": 1, "everything": 0}[cut]
    place.write_bytes(b"".join(lines) + b'{"op_code":' + b"9" * 5000 + lines[-1][:end])
    assert work(2) == first
    assert work(3)[:2] == first
    for line in place.read_text().splitlines():
        json.loads(line)


def test_a_full_disk_takes_nothing_of_a_study(tmp_path, monkeypatch):
    from anharmonic.train import study

    place = tmp_path / "journal"
    made = {"study_name": "one", "direction": "minimize"}

    def work():
        shared = study.SharedStudy(place, tmp_path, **made)
        shared.work(
            lambda trial: trial.suggest_float("x", 0.0, 1.0),
            4,
            lambda number: optuna.samplers.RandomSampler(seed=number),
            lambda *seen: None,
        )
        return [trial.params["x"] for trial in shared.done()]

    real, calls = os.fsync, []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) > 9:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="journal must take more lines; got No space left") as error:
        work()
    assert error.value.errno == errno.ENOSPC
    monkeypatch.undo()
    before = place.read_bytes()
    assert before.endswith(b"\n")
    interrupted = work()
    assert place.read_bytes().startswith(before)
    place.unlink()
    assert interrupted == work()
