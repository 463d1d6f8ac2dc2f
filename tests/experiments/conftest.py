from dataclasses import replace

import pytest

from anharmonic.experiments.base import Row, Table
from anharmonic.models.heads import SequenceModel
from anharmonic.tasks.registry import make_task
from anharmonic.training.results import Result
from anharmonic.training.run import Run


@pytest.fixture
def run():
    return Run("adding", "LEM", {"length": 500}, {"hidden_size": 8}, epochs=4, batch_size=50)


@pytest.fixture
def table(run):
    return Table(
        id="test-table",
        title="A <b>title</b> & more",
        source="Document, Table 1",
        task="adding problem",
        metric="MSE",
        unit="x 1e-2",
        scale=100.0,
        form=".3f",
        direction="lower",
        baseline=(16.7, "always predicting 1"),
        rows=(
            Row("LEM", reported="0.2", spread="0.05", parameters="1k", run=run, seeds=(0, 1, 2)),
            Row("CoRNN", reported="0.4", run=replace(run, model="CoRNN"), settings="ours"),
            Row("expRNN", reported="2.3", outcome="learns slowly"),
        ),
        note="A note | with a bar.",
    )


@pytest.fixture
def make_result():
    def make(run, test=0.002, seconds=30.0, valid=(0.5, 0.1, 0.004), **changes):
        values = {
            "run": run,
            "hash": run.hash,
            "test": test,
            "valid": valid[-1],
            "metric": "mse",
            "higher_is_better": False,
            "parameters": 1234,
            "seconds": seconds,
            "memory_mb": 300.0,
            "epochs_run": len(valid),
            "best_epoch": len(valid),
            "stopped": "finished",
            "device": "cpu",
            "devices": 1,
            "threads": 1,
            "hardware": "A Processor <x>",
            "versions": {"anharmonic": "0.1.0", "torch": "2.13.0"},
            "commit": "0123456789abcdef",
            "started": "2026-01-02T03:04:05+00:00",
            "curve": {
                "epoch": list(range(1, len(valid) + 1)),
                "train_loss": [1.0] * len(valid),
                "valid": list(valid),
            },
        }
        return Result(**{**values, **changes})

    return make


@pytest.fixture
def parameters():
    """Counts the parameters of a run's model, without reading data."""

    def count(run):
        task = make_task(run.task, dict(run.task_options))
        model = SequenceModel(
            run.model, task.input_size, task.output_size, readout=task.readout, **run.model_options
        )
        return sum(p.numel() for p in model.parameters())

    return count
