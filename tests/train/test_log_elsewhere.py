"""The example that logs to W&B and MLflow, with stand-ins for the two packages."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from anharmonic.train import fit

EXAMPLE = Path(__file__).parents[2] / "examples" / "log_elsewhere.py"


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location("log_elsewhere", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class WandB:
    """What the example calls of wandb; a run of one id continues, as W&B's does."""

    def __init__(self):
        self.rows, self.config, self.open = {}, {}, 0

    def init(self, project, id, resume, config):
        assert (project, resume) == ("anharmonic", "allow")
        rows = self.rows.setdefault(id, [])
        self.config[id] = config
        self.open += 1

        def log(values, step):
            rows.append((step, values))

        def finish():
            self.open -= 1

        return SimpleNamespace(step=rows[-1][0] + 1 if rows else 0, log=log, finish=finish)


class MLflow:
    """What the example calls of mlflow."""

    def __init__(self):
        self.rows, self.config, self.current = {}, {}, None

    def set_experiment(self, name):
        assert name == "anharmonic"

    def search_runs(self, filter_string, output_format):
        hash = filter_string.split("'")[1]
        found = SimpleNamespace(info=SimpleNamespace(run_id=hash))
        return [found] if hash in self.rows else []

    def start_run(self, run_id, run_name, tags):
        assert run_id in (None, tags["run"]) and tags["run"] in run_name
        self.current = tags["run"]
        self.rows.setdefault(self.current, [])
        return SimpleNamespace(info=SimpleNamespace(run_id=self.current))

    def log_params(self, settings):
        self.config[self.current] = settings

    def log_metrics(self, values, step):
        self.rows[self.current].append((step, values))

    def MlflowClient(self):
        def get_metric_history(run_id, name):
            return [values[name] for _, values in self.rows[run_id]]

        return SimpleNamespace(get_metric_history=get_metric_history)

    def end_run(self):
        self.current = None

    @property
    def open(self):
        return int(self.current is not None)


@pytest.mark.parametrize(("name", "stub"), [("wandb", WandB), ("mlflow", MLflow)])
def test_every_epoch_is_logged_once(
    tiny, environment, example, interrupted, monkeypatch, name, stub
):
    package, run = stub(), tiny()
    monkeypatch.setitem(sys.modules, name, package)

    on_epoch_end, close = example.LOGS[name](run)
    interrupted(run, environment, "train 2 3", on_epoch_end=on_epoch_end)
    close()
    on_epoch_end, close = example.LOGS[name](run)
    result = fit(run, environment, on_epoch_end=on_epoch_end)
    close()
    assert package.open == 0
    assert [step for step, _ in package.rows[run.hash]] == [1, 2, 3, 4]
    logged = [values["valid"] for _, values in package.rows[run.hash]]
    assert logged == pytest.approx(result.curve["valid"], rel=1e-5)
    assert package.config[run.hash]["model_options"]["dropout"] == 0.3
