"""Examples that hand trainings or their logs to others, with stand-ins for what they call."""

import dataclasses
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


@pytest.mark.parametrize(("cluster", "given"), [("slurm", True), ("local", False)])
def test_slurm_starts_the_processes_of_a_job(jobs, tiny, environment, cluster, given):
    two, submitit = dataclasses.replace(environment, devices=2), MagicMock()
    jobs["submit"].__globals__["submitit"] = submitit
    list(jobs["submit"]([Row("one", tiny())], two, cluster, mem_gb=3))
    said = str(submitit.AutoExecutor.mock_calls)
    assert ("tasks_per_node=2, nodes=1" in said) == given and "mem_gb=3" in said


def test_a_job_that_slurm_takes_away_is_put_back_as_it_was(jobs, tiny, environment):
    arguments = (tiny(epochs=1), environment)
    again = jobs["Job"]().checkpoint(*arguments)
    assert again.args == arguments
    assert again.function(*again.args) == read_results(environment.results_path)[0].test
