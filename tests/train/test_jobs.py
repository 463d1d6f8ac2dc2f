"""Rows several at a time: the results of one after the other, whatever is killed."""

import dataclasses
import os
import signal
import subprocess
import sys
import time

import pytest

from anharmonic.train.jobs import Jobs, RowJob
from anharmonic.train.results import read_results
from anharmonic.train.rows import Row, fit_rows, without_results
from anharmonic.train.run import RunEnvironment


@pytest.mark.parametrize("cluster", ["none", "local"])
def test_two_at_a_time_give_what_one_after_the_other_gives(tiny, environment, tmp_path, cluster):
    if cluster == "local":
        pytest.importorskip("submitit", reason="jobs of a cluster are submitit's")
    good = [Row(f"seed {seed}", tiny(epochs=2, seed=seed)) for seed in (0, 1)]
    assert fit_rows(good, environment, say=lambda line: None) == []
    bad = Row("bad", tiny(model_options={"dropout": 2.0}))
    elsewhere = RunEnvironment(out=tmp_path / "jobs", threads=1, progress=False)
    said = []
    failed = fit_rows([bad, *good], elsewhere, Jobs(2, cluster), say=said.append)
    assert len(failed) == 1 and failed[0].startswith("bad: dropout must be")
    assert len(said) == 3 and said[2].startswith("[3/3] ")
    found = {result.hash: result for result in read_results(elsewhere.results_path)}
    assert len(found) == 2
    for result in read_results(environment.results_path):
        assert (found[result.hash].curve, found[result.hash].test) == (result.curve, result.test)
    assert without_results(good, found.values()) == []


SBATCH = """#!/bin/bash
export SLURM_JOB_ID=$$ SLURM_JOB_NAME=anharmonic
for script; do :; done
export SLURM_NTASKS_PER_NODE=$(sed -n 's/^#SBATCH --ntasks-per-node=//p' "$script")
bash "$script" > /dev/null 2>&1 &
echo "Submitted batch job $$"
"""
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do
  case $1 in --output) out=$2; shift;; --error) err=$2; shift;; esac
  shift
done
export SLURM_NTASKS=$SLURM_NTASKS_PER_NODE SLURM_NNODES=1 SLURM_JOB_NUM_NODES=1 SLURM_NODEID=0
export SLURM_NODELIST=localhost SLURM_JOB_NODELIST=localhost
for ((rank = 0; rank < SLURM_NTASKS; rank++)); do
  to=${out//%j/$SLURM_JOB_ID} errors=${err//%j/$SLURM_JOB_ID}
  SLURM_PROCID=$rank SLURM_LOCALID=$rank "$@" > "${to//%t/$rank}" 2> "${errors//%t/$rank}" &
done
wait
"""


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["slurm", "local"])
def test_a_job_of_two_processes(tiny, environment, tmp_path, monkeypatch, cluster):
    """SLURM's commands are stand-ins, which run the processes of a job on this machine."""
    pytest.importorskip("submitit", reason="jobs of a cluster are submitit's")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("sacct", "#!/bin/sh\n")):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    two = dataclasses.replace(environment, devices=2)
    said = []
    assert fit_rows([Row("one", tiny())], two, Jobs(1, cluster), say=said.append) == []
    (result,) = read_results(environment.results_path)
    assert result.devices == 2 and said[0].startswith("[1/1] one: test mse")


def test_a_job_that_slurm_takes_away_is_put_back_as_it_was(tiny, environment):
    pytest.importorskip("submitit", reason="jobs of a cluster are submitit's")
    arguments = (Row("one", tiny(epochs=1)), environment, str, False)
    again = RowJob().checkpoint(*arguments)
    assert again.args == arguments
    assert "test mse" in again.function(*again.args).text


def test_bad_jobs(monkeypatch):
    with pytest.raises(ValueError, match="jobs must be an int >= 1; got jobs=0"):
        Jobs(0)
    with pytest.raises(ValueError, match="cluster must be one of"):
        Jobs(cluster="pbs")
    with pytest.raises(ValueError, match="cluster_options must be empty without a cluster"):
        Jobs(cluster_options={"mem_gb": 4})
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(ImportError, match=r'pip install "anharmonic\[cluster\]"'):
        Jobs(cluster="slurm")


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
