"""The example that logs to W&B and MLflow, with stand-ins for what it calls of the two packages."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from anharmonic.train import fit

EXAMPLE = Path(__file__).parents[2] / "examples" / "log_elsewhere.py"


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
    logs = runpy.run_path(str(EXAMPLE))["LOGS"]
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
