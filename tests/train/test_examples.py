"""Examples that hand trainings or their logs to others, with stand-ins for what they call."""

import dataclasses
import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from anharmonic.train import Row, fit, read_results

EXAMPLES = Path(__file__).parents[2] / "examples"


def wandb(log):
    def init(project, id, resume, config):
        assert (project, resume) == ("anharmonic", "allow") and log.id in (None, id)
        log.id, log.config, log.is_open = id, config, True
        return SimpleNamespace(
            step=log.rows[-1][0] + 1 if log.rows else 0,
            log=lambda values, step: log.rows.append((step, values)),
            finish=lambda: vars(log).update(is_open=False),
        )

    return SimpleNamespace(init=init)


def mlflow(log):
    def run():
        return SimpleNamespace(info=SimpleNamespace(run_id="theirs"))

    def search_runs(filter_string, output_format):
        return [run()] if log.id and filter_string == f"tags.run = '{log.id}'" else []

    def start_run(run_id, run_name, tags):
        assert run_id == (log.id and "theirs") and tags["run"] in run_name
        log.id, log.is_open = tags["run"], True
        return run()

    def history(run_id, name):
        assert run_id == "theirs"
        return [values[name] for _, values in log.rows]

    return SimpleNamespace(
        set_experiment=lambda name: name == "anharmonic" or pytest.fail(name),
        search_runs=search_runs,
        start_run=start_run,
        log_params=lambda settings: vars(log).update(config=settings),
        log_metrics=lambda values, step: log.rows.append((step, values)),
        MlflowClient=lambda: SimpleNamespace(get_metric_history=history),
        end_run=lambda: vars(log).update(is_open=False),
    )


@pytest.mark.parametrize("package", [wandb, mlflow])
def test_every_epoch_is_logged_once(tiny, environment, interrupted, monkeypatch, package):
    log, run = SimpleNamespace(id=None, rows=[], config=None, is_open=False), tiny()
    monkeypatch.setitem(sys.modules, package.__name__, package(log))
    logs = runpy.run_path(str(EXAMPLES / "log_elsewhere.py"))["LOGS"]
    on_epoch_end, close = logs[package.__name__](run)
    interrupted(run, environment, "train 2 3", on_epoch_end=on_epoch_end)
    close()
    on_epoch_end, close = logs[package.__name__](run)
    assert log.is_open
    result = fit(run, environment, on_epoch_end=on_epoch_end)
    close()
    assert log.id == run.hash and not log.is_open
    assert [step for step, _ in log.rows] == [1, 2, 3, 4]
    logged = [values["valid"] for _, values in log.rows]
    assert logged == pytest.approx(result.curve["valid"], rel=1e-5)
    assert log.config["model_options"]["dropout"] == 0.3


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
