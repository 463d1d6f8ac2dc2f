"""Examples that hand trainings or their logs to others, with stand-ins for what they call."""

import dataclasses
import os
import runpy
import sys
from functools import partial
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from anharmonic.train import Row, fit, read_results

EXAMPLES = Path(__file__).parents[2] / "examples"


def wandb(rows):
    package = MagicMock()
    log = package.init.return_value
    log.step = rows[-1][0] + 1 if rows else 0
    log.log.side_effect = lambda values, step: rows.append((step, values))
    return package, log.finish


def mlflow(rows):
    package = MagicMock()
    package.search_runs.return_value = [MagicMock()] if rows else []
    package.MlflowClient.return_value.get_metric_history.return_value = rows
    package.log_metrics.side_effect = lambda values, step: rows.append((step, values))
    return package, package.end_run


@pytest.mark.parametrize(("fake", "again"), [(wandb, "resume='allow'"), (mlflow, "tags.run = ")])
def test_every_epoch_is_logged_once(tiny, environment, interrupted, monkeypatch, fake, again):
    rows, said, run, name = [], [], tiny(), fake.__name__
    log = runpy.run_path(str(EXAMPLES / "log_elsewhere.py"))["LOGS"][name]
    for train in (partial(interrupted, at="train 2 3"), fit):
        package, end = fake(rows)
        monkeypatch.setitem(sys.modules, name, package)
        on_epoch_end, close = log(run)
        result = train(run, environment, on_epoch_end=on_epoch_end)
        close()
        end.assert_called_once_with()
        said.append(str(package.mock_calls))
    assert [step for step, _ in rows] == [1, 2, 3, 4]
    logged = [values["valid"] for _, values in rows]
    assert logged == pytest.approx(result.curve["valid"], rel=1e-5)
    assert "'dropout': 0.3" in said[0] and all(run.hash in one and again in one for one in said)


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
def jobs():
    """What the example that makes a job of each training defines."""
    pytest.importorskip("submitit", reason="the jobs of the example are submitit's")
    return runpy.run_path(str(EXAMPLES / "jobs_on_slurm.py"))


@pytest.mark.slow
def test_jobs_give_what_one_after_the_other_gives(jobs, tiny, environment):
    good, bad = Row("good", tiny()), Row("bad", tiny(model_options={"dropout": 2.0}))
    found = dict(jobs["submit"]([bad, good], environment, "local"))
    (result,) = read_results(environment.results_path)
    assert found[good] == result.test and result.run == good.run
    assert found[bad].startswith("failed (") and Path(found[bad].rpartition(" ")[2]).exists()
    assert dict(jobs["submit"]([good], environment, "local")) == {}  # nothing to do


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["slurm", "local"])
def test_a_job_of_two_processes(jobs, tiny, environment, tmp_path, monkeypatch, cluster):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("sacct", "#!/bin/sh\n")):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    two = dataclasses.replace(environment, devices=2)
    ((_, value),) = jobs["submit"]([Row("one", tiny())], two, cluster)
    (result,) = read_results(environment.results_path)
    assert result.devices == 2 and value == result.test


def test_a_job_that_slurm_takes_away_is_put_back_as_it_was(jobs, tiny, environment):
    arguments = (tiny(epochs=1), environment)
    again = jobs["Job"]().checkpoint(*arguments)
    assert again.args == arguments
    assert again.function(*again.args) == read_results(environment.results_path)[0].test
