"""The end of a run: test the chosen weights, and write model and result."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import torch

from anharmonic import _checks
from anharmonic._files import write_atomically
from anharmonic.data.base import Task
from anharmonic.data.scores import ScoreTable
from anharmonic.data.trivial import trivial_score
from anharmonic.diagnostics.machine import hardware
from anharmonic.nn.store import save_pretrained
from anharmonic.train import folder as folders
from anharmonic.train import results
from anharmonic.train.evaluate import evaluate_fully
from anharmonic.train.loop import Loop
from anharmonic.train.losses import DivergedError, trivial_loss
from anharmonic.train.optim import learning_rate
from anharmonic.train.results import Result

_CURVE_POINTS = 100


def tested(loop: Loop, nondeterministic: set[str]) -> tuple[Result, ScoreTable | None]:
    """Give the model its chosen weights, test it and move it to the CPU.

    Args:
        loop: The finished training.
        nondeterministic: Operations that were not deterministic.

    Returns:
        The result, and all metrics of the test, as of `Scores.report`.

    Raises:
        DivergedError: If the test metric is infinite or NaN.
    """
    run, task, loaders, seconds = loop.run, loop.task, loop.loaders, loop.seconds
    epoch = loop.chosen_epoch
    loop.model.load_state_dict(loop.chosen_weights)
    scores = evaluate_fully(loop.model, loaders.test, task, loop.device)
    test, report = scores.metric, scores.report(task)
    if not math.isfinite(test):
        lr = learning_rate(run, loop.epoch - 1, 1)  # about that of the last epoch
        text = _checks.message(
            f"test {task.metric} must be finite",
            f"{test} with the weights of epoch {epoch}",
            "train with a lower lr, or look for extreme values in the test data",
        )
        raise DivergedError(text, step=0, epoch=epoch, value=test, lr=lr)
    loop.model.to("cpu").zero_grad(set_to_none=True)
    constant_loss = trivial_loss(loaders.train(0), task, run.label_smoothing, loop.class_weights)
    result = Result(
        run=run,
        hash=run.hash,
        test=test,
        valid=loop.curve["valid"][epoch - 1] if "valid" in loop.curve else None,
        metric=task.metric,
        higher_is_better=loop.higher_is_better,
        trivial=trivial_score(task, loaders),
        trivial_loss=rounded(constant_loss),
        tested=scores.entries,
        by_channel=by_channel(task, report),
        parameters=sum(p.numel() for p in loop.model.parameters() if p.requires_grad),
        seconds=round(seconds, 3),
        memory_mb=round(loop.memory_mb, 1),
        epochs_run=loop.epoch,
        best_epoch=epoch,
        stopped="early" if loop.stopped_early else "finished",
        device=loop.device.type,
        devices=loop.world,
        threads=torch.get_num_threads(),
        hardware=hardware(loop.device.type),
        versions=loop.versions,
        commit=loop.commit,
        started=loop.started,
        curve=_thinned(loop.curve, epoch),
        nondeterministic=sorted(nondeterministic),
    )
    return result, report


def by_channel(task: Task, report: ScoreTable | None) -> dict[str, float] | None:
    """The metric of every channel of a forecast, in its own units; None of other tasks or of one.

    Args:
        task: Has the metric.
        report: All metrics.
    """
    if not task.horizon or task.quantiles or report is None or len(report.outputs) < 2:
        return None
    values = {
        one.name: {"rmse": one.rmse, "mse": one.rmse**2, "mae": one.mae} for one in report.outputs
    }
    return {name: known[task.metric] for name, known in values.items()}


def finish(loop: Loop, nondeterministic: set[str], folder: Path, results_path: Path) -> Result:
    """Test the chosen weights and write model, result and results line, in this order.

    Killed in between, the next start goes on from the last of these that was written.

    Args:
        loop: The finished training.
        nondeterministic: Operations that were not deterministic.
        folder: The run's folder.
        results_path: The results file.

    Raises:
        DivergedError: If the test metric is infinite or NaN.
        OSError: If a file cannot be written.
    """
    result, report = tested(loop, nondeterministic)
    save_pretrained(loop.model, folder / folders.BEST)
    write(result, report, folder, results_path)
    return result


def write(result: Result, report: ScoreTable | None, folder: Path, results_path: Path) -> None:
    """Write report and result, after the model: into the folder, then as a line of the results.

    Args:
        result: The result.
        report: All metrics of the test; None if there are none.
        folder: The run's folder.
        results_path: The results file.

    Raises:
        OSError: If a file cannot be written.
    """
    if report is not None:
        write_atomically(folder / folders.REPORT, report.to_json() + "\n")
    write_atomically(folder / folders.RESULT, result.to_json(indent=2) + "\n")
    remove_leftovers(folder)
    results.append(results_path, result)


def _thinned(curve: dict[str, list[float]], best_epoch: int) -> dict[str, list[float]]:
    """At most about a hundred epochs of a curve, the best and the last among them, rounded."""
    count = len(curve["epoch"])
    stride = -(-count // _CURVE_POINTS)
    kept = sorted({*range(0, count, stride), best_epoch - 1, count - 1})
    return {name: [rounded(values[i]) for i in kept] for name, values in curve.items()}


def rounded(value: float) -> float:
    """A value of a result, to six digits."""
    return value if isinstance(value, int) else float(f"{value:.6g}")


def read_report(run_folder: str | Path) -> ScoreTable | None:
    """Read all metrics that a finished run's model has on its test data.

    Args:
        run_folder: The run's folder.

    Returns:
        The metrics; None if the folder holds none: of a run of version 0.1, or one that makes more
        than 20 million numbers for its test data.

    Raises:
        ValueError: If the file is damaged.
    """
    path = Path(run_folder) / folders.REPORT
    return ScoreTable.from_json(_checks.text_of(path)) if path.is_file() else None


def remove_leftovers(folder: Path) -> None:
    """Remove what a finished run no longer needs.

    Args:
        folder: The run's folder.
    """
    (folder / folders.RESUME).unlink(missing_ok=True)
    folders.remove_temporary(folder)
    # Of a kill while the model was being written.
    for leftover in folder.glob(f".{folders.BEST}-*"):
        shutil.rmtree(leftover, ignore_errors=True)
