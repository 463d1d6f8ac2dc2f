"""Several processes: who started them, and that a signal ends and a new start continues them."""

import concurrent.futures
import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from anharmonic import _processes
from anharmonic._processes import find_launch, rank
from anharmonic.train import RunEnvironment, fit, read_results, run_folder
from anharmonic.train import folder as folders
from anharmonic.train.processes import check_processes, signals, threads_of

SLURM = {
    **{"SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "train", "SLURM_NODELIST": "node[17-18]"},
    **{"SLURM_NTASKS": "4", "SLURM_PROCID": "3", "SLURM_LOCALID": "1"},
}
TORCHRUN = {"WORLD_SIZE": "4", "RANK": "2", "LOCAL_RANK": "0"}


@pytest.fixture
def given(monkeypatch):
    """Sets variables of the environment."""
    return lambda variables: [monkeypatch.setenv(*pair) for pair in variables.items()]


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        (SLURM, ("SLURM", 4, 3, 1)),
        (SLURM | {"SLURM_JOB_NAME": "interactive"}, None),
        ({"RANK": "1"}, None),
        ({"RANK": "", "WORLD_SIZE": ""}, None),
        (SLURM | {"SLURM_NTASKS": "2"} | TORCHRUN, ("torchrun", 4, 2, 0)),
    ],
    ids=["SLURM", "a shell of SLURM", "a rank alone", "empty words", "torchrun inside SLURM"],
)
def test_the_launcher_says_how_many_processes_there_are(given, variables, found):
    given(variables)
    launch = find_launch()
    if found is None:
        assert launch is None
        assert rank() == int(variables.get("SLURM_PROCID", 0))  # the others only follow
        return
    assert (launch.launcher, launch.world_size, launch.rank, launch.local_rank) == found
    assert rank() == launch.rank
    check_processes(RunEnvironment(devices=2, num_nodes=2))
    said = rf"must be 4.*{launch.launcher}.*got 'devices=2, num_nodes=1'.*--num"
    with pytest.raises(ValueError, match=said):
        check_processes(RunEnvironment(devices=2))


def test_processes_of_a_machine_share_its_cores(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found = [RunEnvironment(), RunEnvironment(devices=4), RunEnvironment(devices=4, threads=3)]
    assert [threads_of(environment) for environment in found] == [None, 2, 3]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads_of(RunEnvironment(devices=4)) is None


def test_several_machines_need_a_launcher(tiny, environment):
    for nodes, said in (
        ({"num_nodes": 2}, "num_nodes must be 1 without torchrun or SLURM"),
        ({"devices": 2, "num_nodes": 3}, "batch_size must be a multiple of devices=2 times num_n"),
    ):
        with pytest.raises(ValueError, match=said):
            fit(tiny(), dataclasses.replace(environment, **nodes))
    assert not environment.out.exists()


def test_torchrun_may_start_one_process(tiny, whole, environment, given, outcome):
    given(TORCHRUN | {"WORLD_SIZE": "1", "RANK": "0"})
    fit(tiny(), environment)
    assert outcome(tiny(), environment) == outcome(tiny(), whole)


def test_slurm_takes_a_job_away_and_gives_it_back(
    tiny, whole, environment, tmp_path, monkeypatch, capsys, hook_batches, given, outcome
):
    """Before the end of its time SLURM sends SIGUSR1, after `scontrol requeue` SIGTERM."""
    tools, calls = tmp_path / "tools", tmp_path / "calls"
    tools.mkdir()
    (tools / "scontrol").write_text(f'#!/bin/sh\necho "$@" >> {calls}\n')
    (tools / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    given(SLURM | {"SLURM_NTASKS": "1", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"})

    def taken_away(name, batch):
        if name == "train 2 3" and not calls.exists():
            os.kill(os.getpid(), signal.SIGUSR1)
            assert calls.read_text() == "requeue 4711\n"
            os.kill(os.getpid(), signal.SIGTERM)

    hook_batches(taken_away)
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as stopped:
        fit(tiny(), dataclasses.replace(environment, progress=True))
    said = "Interrupted after 2 of 4 epochs; the same command continues"
    assert capsys.readouterr().err.count(said) == 1 and said in "".join(stopped.value.__notes__)
    assert stopped.value.code == 143 and signal.getsignal(signal.SIGTERM) == handler
    assert (run_folder(tiny(), environment) / folders.RESUME).exists()
    fit(tiny(), environment)
    assert outcome(tiny(), environment) == outcome(tiny(), whole)


def handler_in_training():
    with signals():
        return signal.getsignal(signal.SIGTERM)


def test_a_thread_and_a_callers_handler_are_left_alone():
    """Ray trains in a thread, where Python sets no handler; process pools and submitit have one."""
    before = signal.getsignal(signal.SIGTERM)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        assert pool.submit(handler_in_training).result() is before
    mine = lambda number, frame: None  # noqa: E731
    signal.signal(signal.SIGTERM, mine)
    try:
        assert handler_in_training() is mine
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_error_that_another_processs_end_brings_ends_as_sigterm_does():
    with pytest.raises(SystemExit) as stopped, signals():
        try:
            signal.raise_signal(signal.SIGTERM)
        except SystemExit:
            raise RuntimeError("connection closed by peer") from None
    assert stopped.value.code == 143


def test_a_follower_takes_the_result_of_a_finished_run(tiny, finished, monkeypatch):
    (done,) = read_results(finished.results_path)
    finished.results_path.unlink()
    follower = _processes.Launch("torchrun", rank=1, local_rank=1, world_size=1)
    monkeypatch.setattr(_processes, "find_launch", lambda: follower)
    assert fit(tiny(), finished) == done
    assert not finished.results_path.exists()  # the first process adds the line


NETWORK = "anharmonic train lstm digits --hidden-size 4 --batch-size 64 --threads 1"


def started(words, **variables):
    return subprocess.Popen(
        [sys.executable, "-m", *words.split()],
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


TASKS = [
    SLURM
    | {"SLURM_NTASKS": "2", "SLURM_PROCID": n, "SLURM_LOCALID": n, "SLURM_NODELIST": "localhost"}
    for n in "01"
]


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [[{}], TASKS], ids=["on its own", "SLURM"])
def test_two_processes_train_like_one(tmp_path, tasks):
    """Two CPU processes; a smaller last batch in every epoch."""
    found = []
    for devices, starts in ((1, [{}]), (2, tasks)):
        out, said = tmp_path / str(devices), []
        words = f"{NETWORK} --epochs 2 --devices {devices} --out {out}"
        for process in [started(words, **variables) for variables in starts]:
            said.append(process.communicate(timeout=300)[0])
            assert process.returncode == 0, said
        assert "".join(said).count("test accuracy") == 1  # one process speaks
        found += read_results(out / "results.jsonl")
    one, two = found
    assert (one.hash, one.devices, two.devices) == (two.hash, 1, 2)
    # The same gradients up to float32 rounding.
    for name in ("train_loss", "valid"):
        assert two.curve[name] == pytest.approx(one.curve[name], rel=1e-4)


def torchrun(out, meeting="--standalone --nproc-per-node 2", processes="--devices 2"):
    deep = "--dropout 0.2 --num-layers 2 --epochs 9"
    return started(f"torch.distributed.run {meeting} -m {NETWORK} {deep} {processes} --out {out}")


def children(process):
    path = f"/proc/{process.pid}/task/{process.pid}/children"
    with open(path, encoding="utf-8") as file:
        return [int(number) for number in file.read().split()]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for child processes in /proc")
def test_two_processes_of_torchrun_killed_and_resumed_end_with_the_same_bits(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    process = torchrun(whole)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert said.count("test accuracy") == 1  # one process speaks

    def saved():
        return max((path.stat().st_mtime_ns for path in cut.glob("*/resume.ckpt")), default=0)

    for kill in (signal.SIGTERM, signal.SIGKILL):
        process = torchrun(cut)
        before = saved()
        while saved() == before:
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.02)
        # SIGTERM goes to all of them, as a queue sends it; SIGKILL hits one.
        os.kill(process.pid if kill is signal.SIGTERM else children(process)[1], kill)
        said, _ = process.communicate(timeout=120)
        assert process.returncode != 0 and saved(), said
    # At last as on two machines, each with its own torchrun.
    with socket.socket() as free:
        free.bind(("localhost", 0))
        endpoint = f"localhost:{free.getsockname()[1]}"
    meeting = f"--nnodes 2 --nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint {endpoint}"
    machines = [torchrun(cut, meeting, "--devices 1 --num-nodes 2") for _ in range(2)]
    for process in machines:
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said
    (one,), (two,) = (read_results(out / "results.jsonl") for out in (whole, cut))
    assert (one.devices, one.curve) == (2, two.curve)
    weights = [path.read_bytes() for path in tmp_path.glob("*/*/best/model.safetensors")]
    assert len(weights) == 2 and weights[0] == weights[1]
