"""The example that makes a job of each training, with stand-ins for SLURM's commands."""

import dataclasses
import os
import runpy
from pathlib import Path

import pytest

from anharmonic.train import Row, read_results

submitit = pytest.importorskip("submitit", reason="the jobs of the example are submitit's")
EXAMPLE = Path(__file__).parents[2] / "examples" / "jobs_on_slurm.py"
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


@pytest.fixture
def example():
    return runpy.run_path(str(EXAMPLE))


@pytest.mark.slow
def test_jobs_give_what_one_after_the_other_gives(example, tiny, environment):
    good, bad = Row("good", tiny()), Row("bad", tiny(model_options={"dropout": 2.0}))
    found = dict(example["submit"]([bad, good], environment, "local"))
    (result,) = read_results(environment.results_path)
    assert found[good] == result.test and result.run == good.run
    assert found[bad].startswith("failed (") and Path(found[bad].rpartition(" ")[2]).exists()
    assert dict(example["submit"]([good], environment, "local")) == {}  # nothing to do


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["slurm", "local"])
def test_a_job_of_two_processes(example, tiny, environment, tmp_path, monkeypatch, cluster):
    """SLURM's commands are stand-ins, which run the processes of a job on this machine."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("sacct", "#!/bin/sh\n")):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    two = dataclasses.replace(environment, devices=2)
    ((_, value),) = example["submit"]([Row("one", tiny())], two, cluster)
    (result,) = read_results(environment.results_path)
    assert result.devices == 2 and value == result.test


def test_a_job_that_slurm_takes_away_is_put_back_as_it_was(example, tiny, environment):
    arguments = (tiny(epochs=1), environment)
    again = example["Job"]().checkpoint(*arguments)
    assert again.args == arguments
    assert again.function(*again.args) == read_results(environment.results_path)[0].test
