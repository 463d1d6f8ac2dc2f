"""The end of a run: test the chosen weights, and write model and result."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import torch

from anharmonic import _checks
from anharmonic._files import write_atomically
from anharmonic.data.trivial import trivial_score
from anharmonic.diagnostics.machine import hardware
from anharmonic.nn.store import save_pretrained
from anharmonic.train import folder as folders
from anharmonic.train import results
from anharmonic.train.evaluate import by_channel, evaluate
from anharmonic.train.loop import Loop
from anharmonic.train.losses import DivergedError, trivial_loss
from anharmonic.train.optim import learning_rate
from anharmonic.train.results import Result

_CURVE_POINTS = 100


def tested(loop: Loop, nondeterministic: set[str]) -> Result:
    """Give the model its chosen weights, test it, move it to the CPU and return the result.

    Args:
        loop: The finished training.
        nondeterministic: Operations that were not deterministic.

    Raises:
        DivergedError: If the test metric is infinite or NaN.
    """
    run, task, loaders, seconds = loop.run, loop.task, loop.loaders, loop.seconds
    epoch = loop.chosen_epoch
    loop.model.load_state_dict(loop.chosen_weights)
    test, _, count = evaluate(loop.model, loaders.test, task, loop.device)
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
    return Result(
        run=run,
        hash=run.hash,
        test=test,
        valid=loop.curve["valid"][epoch - 1] if "valid" in loop.curve else None,
        metric=task.metric,
        higher_is_better=loop.higher_is_better,
        trivial=trivial_score(task, loaders),
        trivial_loss=rounded(constant_loss),
        tested=count,
        by_channel=by_channel(loop.model, loaders.test, task),
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
    result = tested(loop, nondeterministic)
    save_pretrained(loop.model, folder / folders.BEST)
    write(result, folder, results_path)
    return result


def write(result: Result, folder: Path, results_path: Path) -> None:
    """Write a result, after its model: into the run's folder, then as a line of the results.

    Args:
        result: The result.
        folder: The run's folder.
        results_path: The results file.

    Raises:
        OSError: If a file cannot be written.
    """
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
