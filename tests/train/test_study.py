"""Several workers on one study: no trial twice, and those of the dead are taken up again."""

import json
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

    from anharmonic.train import Range, Run, RunEnvironment, search
    from anharmonic.train import study

    module = sys.modules["anharmonic.train.search"]
    out, place, fate = sys.argv[1:]
    study._HEARTBEAT = 1
    study._WAIT = 0.1
    real = module.fit

    def hangs(run, environment, told=None):
        print(json.dumps(run.lr), flush=True)
        time.sleep(600)

    if fate == "hangs":
        module.fit = hangs
    task = {"length": 10, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2}
    run = Run("adding", "LEM", task, {"hidden_size": 4}, epochs=1)
    space = {"lr": Range(1e-3, 1e-1, log=True)}
    told = []
    best = search(run, space, 5, RunEnvironment(out=out, progress=False, threads=1), place,
                  told=lambda *seen: told.append(seen))
    print(json.dumps([best.trials, best.values["lr"], best.valid, len(told)]))
    """
)


def worker(folder, place, fate):
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(folder), place, fate],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("kind", ["journal", "database"])
def test_two_workers_share_a_study_and_a_dead_ones_trial_is_taken_up(tmp_path, kind):
    path = tmp_path / "shared.study"
    place = str(path) if kind == "journal" else f"sqlite:///{path}"
    dead = worker(tmp_path, place, "hangs")
    begun = float(dead.stdout.readline())
    alive = [worker(tmp_path, place, "works") for _ in range(2)]
    dead.kill()
    dead.communicate()
    found = []
    for one in alive:
        out, err = one.communicate(timeout=200)
        assert one.returncode == 0, err
        found.append(json.loads(out))
    results = read_results(tmp_path / "results.jsonl")
    rates = [result.run.lr for result in results]
    # All different, that of the dead worker among them; two may begin the last at the same moment.
    assert len(set(rates)) == len(rates) and begun in rates
    assert 5 <= len(rates) == sum(one[3] for one in found) <= 6
    assert min(one[2] for one in found) == min(result.valid for result in results)
    assert not list(tmp_path.glob("*.worker"))


def test_a_proxy_is_an_address(tmp_path):
    from anharmonic.train.study import SharedStudy

    with pytest.raises(ValueError, match=r"storage must be grpc://HOST:PORT; got 'grpc://here'"):
        SharedStudy("grpc://here", tmp_path)


def test_a_study_on_optunas_proxy(tmp_path):
    pytest.importorskip("grpc", reason="the proxy needs the packages grpcio and protobuf")
    server = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, socket, optuna\n"
            "from optuna.storages import RDBStorage, run_grpc_proxy_server\n"
            "with socket.socket() as s:\n"
            "    s.bind(('localhost', 0)); port = s.getsockname()[1]\n"
            "print(port, flush=True)\n"
            "run_grpc_proxy_server(RDBStorage(sys.argv[1]), host='localhost', port=port)",
            f"sqlite:///{tmp_path / 'behind.db'}",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        place = f"grpc://localhost:{server.stdout.readline().strip()}"
        out, err = worker(tmp_path, place, "works").communicate(timeout=200)
        assert json.loads(out)[0] == 5, err
    finally:
        server.kill()
        server.communicate()
