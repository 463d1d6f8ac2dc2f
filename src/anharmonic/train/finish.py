"""The end of a run: test the chosen weights, write model and result."""

from __future__ import annotations

import functools
import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic._files import write_atomically
from anharmonic.data.base import Loaders, Task
from anharmonic.data.trivial import trivial_score
from anharmonic.diagnostics.machine import hardware
from anharmonic.nn.store import save_pretrained
from anharmonic.train import folder as folders
from anharmonic.train import results
from anharmonic.train.evaluate import by_channel, evaluate
from anharmonic.train.losses import DivergedError, balanced_weights, trivial_loss
from anharmonic.train.optim import learning_rate
from anharmonic.train.results import Result
from anharmonic.train.run import Run, RunEnvironment

if TYPE_CHECKING:
    from anharmonic.train.training_state import TrainingState

_CURVE_POINTS = 100


@dataclass(frozen=True)
class PreparedRun:
    """A run in its environment, ready to train."""

    run: Run
    environment: RunEnvironment
    device: str
    folder: Path
    task: Task
    loaders: Loaders[Any]
    model: nn.Module
    is_first_process: bool

    @functools.cached_property
    def class_weights(self) -> Tensor | None:
        """Factors on the classes in the loss, [C]; None for 1. Balanced ones read the targets."""
        if self.run.class_weights == "balanced":
            return balanced_weights(self.loaders.train(0), self.task.output_size)
        given = self.task.class_weights
        return None if given is None else torch.tensor(given)


def finish(prepared: PreparedRun, state: TrainingState, unfixed: set[str]) -> Result:
    """Tests the chosen weights and writes model, result and results line, in this order.

    Killed in between, the next start goes on from the last of these that was written.

    Args:
        prepared: The trained run.
        state: What was kept of the training.
        unfixed: Operations that were not deterministic.

    Raises:
        DivergedError: If the test metric is infinite or NaN.
        OSError: If a file cannot be written.
    """
    run, folder = prepared.run, prepared.folder
    epochs_run = len(state.curve["epoch"])
    seconds = state.seconds
    best_epoch = epochs_run if run.select == "last" else state.best_epoch
    if run.select != "last":
        prepared.model.load_state_dict(state.best_weights)
    device = torch.device(prepared.device)
    prepared.model.to(device)
    task = prepared.task
    test, _, tested = evaluate(prepared.model, prepared.loaders.test, task, device)
    if not math.isfinite(test):
        lr = learning_rate(run, epochs_run - 1, 1)  # about that of the last epoch
        text = _checks.message(
            f"test {prepared.task.metric} must be finite",
            f"{test} with the weights of epoch {best_epoch}",
            "train with a lower lr, or look for extreme values in the test data",
        )
        raise DivergedError(text, step=0, epoch=best_epoch, value=test, lr=lr)
    prepared.model.to("cpu")
    save_pretrained(prepared.model, folder / folders.BEST)
    result = Result(
        run=run,
        hash=run.hash,
        test=test,
        valid=state.curve["valid"][best_epoch - 1] if "valid" in state.curve else None,
        metric=prepared.task.metric,
        higher_is_better=state.higher_is_better,
        trivial=trivial_score(task, prepared.loaders),
        trivial_loss=_rounded(
            trivial_loss(
                prepared.loaders.train(0), task, run.label_smoothing, prepared.class_weights
            )
        ),
        tested=tested,
        by_channel=by_channel(prepared.model, prepared.loaders.test, task),
        parameters=sum(p.numel() for p in prepared.model.parameters() if p.requires_grad),
        seconds=round(seconds, 3),
        memory_mb=round(state.memory_mb(prepared.device), 1),
        epochs_run=epochs_run,
        best_epoch=best_epoch,
        stopped="early" if state.stopped_early else "finished",
        device=prepared.device,
        devices=prepared.environment.world_size,
        threads=torch.get_num_threads(),
        hardware=hardware(prepared.device),
        versions=state.versions,
        commit=state.commit,
        started=state.started,
        curve=_thinned(state.curve, best_epoch),
        nondeterministic=sorted(unfixed),
    )
    write_atomically(folder / folders.RESULT, result.to_json(indent=2) + "\n")
    remove_leftovers(folder)
    results.append(prepared.environment.results_path, result)
    return result


def _thinned(curve: dict[str, list[float]], best_epoch: int) -> dict[str, list[float]]:
    """At most about a hundred epochs of a curve, the best and the last among them, rounded."""
    count = len(curve["epoch"])
    stride = -(-count // _CURVE_POINTS)
    kept = sorted({*range(0, count, stride), best_epoch - 1, count - 1})
    return {name: [_rounded(values[i]) for i in kept] for name, values in curve.items()}


def _rounded(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.6g}")


def remove_leftovers(folder: Path) -> None:
    """Removes what a finished run no longer needs.

    Args:
        folder: The run's folder.
    """
    (folder / folders.RESUME).unlink(missing_ok=True)
    folders.remove_temporary(folder)
    # Of a kill while the model was being written.
    for leftover in folder.glob(f".{folders.BEST}-*"):
        shutil.rmtree(leftover, ignore_errors=True)
