"""Curves for TensorBoard, W&B, MLflow or a CSV file, written by Lightning's loggers.

Only ``fit`` imports it, because it needs Lightning. The loggers are called here and not by the
trainer, so that a training does the same steps with and without them.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import Logger

from anharmonic.train.finish import PreparedRun
from anharmonic.train.optim import learning_rate
from anharmonic.train.resume import random_states, restore_random_states
from anharmonic.train.training_state import TrainingState

PROJECT = "anharmonic"
"""Name of the project of W&B and of the experiment of MLflow."""


class EpochLogger(Callback):
    """Logs the curves of a run after every epoch, and its settings before the first.

    A run that goes on writes to the same log, whose version is the run's hash. Random states are
    given back, and the time it takes is no part of the run's seconds.

    Args:
        state: Has the curves and the clock.
        prepared: Gives the run, the kind of logger and the folder.
    """

    def __init__(self, state: TrainingState, prepared: PreparedRun) -> None:
        self._state, self._run, self._environment = state, prepared.run, prepared.environment
        self._logger: Any = None  # (Lightning's base class does not know `experiment`.)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Opens the log and brings it up to where a resumed run stands."""
        if not trainer.is_global_zero:
            return
        with _Aside(self._state):
            self._logger, holds_epochs = self._opened()
            self._logger.log_hyperparams(json.loads(self._run.to_json()))
            if not holds_epochs:
                for place in range(len(self._state.curve["epoch"])):
                    self._log(place, int(trainer.num_training_batches))
            self._logger.save()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Logs the epoch; it is saved by now."""
        if self._logger is not None:
            with _Aside(self._state):
                self._log(-1, int(trainer.num_training_batches))
                self._logger.save()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Closes the log."""
        self._close("success")

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Closes the log."""
        self._close("failed")

    def _opened(self) -> tuple[Logger, bool]:
        """The logger, and whether it has the epochs before this sitting."""
        name, out = self._environment.logger, self._environment.out
        run_name, version = f"{self._run.task}-{self._run.model}", self._run.hash
        if name == "csv":
            from lightning.pytorch.loggers import CSVLogger

            return CSVLogger(out / "logs", run_name, version), False
        if name == "tensorboard":
            from lightning.pytorch.loggers import TensorBoardLogger

            # What an earlier sitting wrote is replaced by the same.
            return TensorBoardLogger(out / "logs", run_name, version, purge_step=0), False
        if name == "wandb":
            from lightning.pytorch.loggers import WandbLogger

            out.mkdir(parents=True, exist_ok=True)
            project = os.environ.get("WANDB_PROJECT", PROJECT)
            wandb = WandbLogger(f"{run_name}-{version}", out, version, project=project)
            return wandb, bool(getattr(wandb.experiment, "resumed", False))
        from lightning.pytorch.loggers import MLFlowLogger

        uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{(out / 'mlflow.db').absolute()}"
        found = _mlflow_run(uri, version)
        tags = {"anharmonic_run": version}
        return MLFlowLogger(PROJECT, f"{run_name}-{version}", uri, tags, run_id=found), bool(found)

    def _log(self, place: int, batches: int) -> None:
        values = {name: entries[place] for name, entries in self._state.curve.items()}
        epoch = int(values["epoch"])
        values["lr"] = learning_rate(self._run, epoch * batches - 1, batches)
        self._logger.log_metrics(values, step=epoch)

    def _close(self, status: str) -> None:
        if self._logger is None:
            return
        self._logger.finalize(status)
        if self._environment.logger == "wandb":  # else the next run of this process goes on in it
            self._logger.experiment.finish(exit_code=int(status != "success"))
        self._logger = None


def _mlflow_run(uri: str, version: str) -> str | None:
    """The run that an earlier sitting began, if there is one."""
    from mlflow.tracking import MlflowClient

    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name(PROJECT)
    if experiment is None:
        return None
    wanted = f"tags.anharmonic_run = '{version}'"
    runs = client.search_runs([experiment.experiment_id], wanted, max_results=1)
    return runs[0].info.run_id if runs else None


class _Aside:
    """Work that leaves random states and the run's clock as they were, and warns of nothing."""

    def __init__(self, state: TrainingState) -> None:
        self._state = state

    def __enter__(self) -> None:
        self._began, self._random = time.monotonic(), random_states()
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("ignore")  # of logs that are there already

    def __exit__(self, *error: Any) -> None:
        self._warnings.__exit__(*error)
        restore_random_states(self._random)
        self._state.exclude(time.monotonic() - self._began)
