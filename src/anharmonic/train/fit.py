"""``fit(run)``: the one way to train anything."""

from __future__ import annotations

import contextlib
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from anharmonic import _checks, _processes
from anharmonic.data.base import Loaders, Task
from anharmonic.diagnostics.machine import hardware
from anharmonic.diagnostics.registry import check_applicable
from anharmonic.nn.ode.network import NeuralODENetwork
from anharmonic.nn.registry import model_kind
from anharmonic.nn.resonators.model import Resonators
from anharmonic.nn.store import save_pretrained
from anharmonic.train import folder as folders
from anharmonic.train import machine, results
from anharmonic.train.checkpoint import random_states, restore_random_states
from anharmonic.train.finish import finish, remove_leftovers, tested, write
from anharmonic.train.fitted import fit_at_once
from anharmonic.train.loop import Callback, Loop
from anharmonic.train.ode_curves import OdeCurves
from anharmonic.train.options import check_readout
from anharmonic.train.predict import predict
from anharmonic.train.probes import probe_of
from anharmonic.train.processes import (
    TERMINATED,
    broadcast,
    check_processes,
    end_processes,
    join,
    signals,
    threads_of,
)
from anharmonic.train.results import Result
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.trained import write_task
from anharmonic.train.watching import LOGS, Diagnostics, OnEpochEnd, Progress, Reporter

__all__ = ["fit", "fit_in_memory", "predict"]

# Fewer validation sequences than this rank epochs by chance: the standard error of an accuracy of
# 90 % is more than 5 points.
_FEW = 36


def fit(
    run: Run,
    environment: RunEnvironment | None = None,
    task: Task | None = None,
    on_epoch_end: OnEpochEnd | None = None,
) -> Result:
    """Train a run, or continue it where it was interrupted, or return its result if it is finished.

    Training runs on Linux and macOS.

    The run's folder is ``environment.out / "<task>-<model>-<hash>"``. After every epoch (but at
    most once a second) it gets a ``resume.ckpt``; start the same run again after an
    interruption of any kind, and it ends with the same bits (same machine, versions, device kind
    and thread count). At the end it holds ``best`` (the model, see ``anharmonic.from_pretrained``)
    and ``result.json``, and the results file gets one line.

    Args:
        run: What to train.
        environment: Where to train; the default trains on the CPU and writes to ``runs``.
        task: The run's task if it is in memory, such as an ``anharmonic.data.SequencesTask`` for
            the task "file"; the run knows it by its ``Sequences.digest``, as ``sha256``.
        on_epoch_end: Called after every epoch with its number, from 1, and its values by name:
            those of ``Result.curve``, such as "train_loss" and "valid" (the validation metric,
            where there is a validation set). For a run that goes on or is finished it is first
            called with the epochs before. What it raises ends the training, which another call
            of ``fit`` continues.

    Returns:
        The result, the same as in the results file.

    Raises:
        TypeError: If `run` is no Run or `environment` is no RunEnvironment.
        ValueError: If options do not fit each other, the device is missing, the folder belongs to
            another run or the resume file is damaged.
        DivergedError: If a loss or validation value is infinite or NaN.
        RuntimeError: If another process trains this run, or on Windows.
        OSError: If a file cannot be written; the last good state stays.
        ImportError: If an extra is missing.
        KeyboardInterrupt: After Ctrl-C; the same command continues.
        SystemExit: After SIGTERM, with code 143; likewise.

    Example:
        >>> import tempfile
        >>> task = {"length": 10, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2}
        >>> run = Run("adding", "LEM", task, {"hidden_size": 4}, epochs=1)
        >>> result = fit(run, RunEnvironment(out=tempfile.mkdtemp(), progress=False))
        >>> result.epochs_run, result.metric, result.stopped
        (1, 'mse', 'finished')
    """
    environment = RunEnvironment() if environment is None else environment
    device = _check(run, environment)
    folder = folders.run_folder(run, environment)
    if (found := _among_results(run, environment)) is not None:
        return _reported(found, on_epoch_end)
    check_processes(environment)
    is_first = _processes.rank() == 0
    states = random_states()
    try:
        task = _checked_task(run, environment, task)
        with (
            machine.torch_settings(device, threads_of(environment)) as unfixed,
            contextlib.ExitStack() as held,
        ):
            # Before anything is written or read: here the model says what it does not take.
            model = _seeded_model(run, task)
            if is_first:
                held.enter_context(folders.locked(folder))
                folders.claim(folder, run)
                folders.remove_temporary(folder)
            if (found := _finished(run, environment, folder, is_first)) is not None:
                return _reported(found, on_epoch_end)
            if is_first:
                write_task(folder / folders.TASK, task)
            loaders = _checked_loaders(run, environment, task)
            if isinstance(model, Resonators):
                result = _fitted(run, environment, task, loaders, model)
                save_pretrained(model, folder / folders.BEST)
                write(result, folder, environment.results_path)
                return _reported(result, on_epoch_end)
            join(environment, device)
            resume, circumstances = folder / folders.RESUME, _circumstances(environment, device)
            loop = Loop(run, task, loaders, model, environment, resume, circumstances)
            _train(loop, environment, folder, on_epoch_end)
            done = None
            if is_first:
                done = finish(loop, unfixed, folder, environment.results_path)
            shared: Result = broadcast(done, loop.world)
            return shared
    finally:
        restore_random_states(states)


def fit_in_memory(
    run: Run, environment: RunEnvironment, task: Task, on_epoch_end: OnEpochEnd | None = None
) -> tuple[nn.Module, Result]:
    """Train a run in this process as `fit` does, without a folder: nothing is written or resumed.

    Args:
        run: What to train.
        environment: Device, threads and whether progress is shown.
        task: The run's task.
        on_epoch_end: As of `fit`.

    Returns:
        The trained model, in evaluation mode on the CPU, and the result.

    Raises:
        ValueError: If options do not fit each other or the device is missing.
        DivergedError: If a loss or validation value is infinite or NaN.

    Example:
        >>> from anharmonic.data import make_task
        >>> options = {"length": 10, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2}
        >>> run = Run("adding", "LEM", options, {"hidden_size": 4}, epochs=1)
        >>> here = RunEnvironment(progress=False)
        >>> model, result = fit_in_memory(run, here, make_task("adding", options))
        >>> result.epochs_run, model.training
        (1, False)
    """
    device = _check(run, environment)
    states = random_states()
    try:
        task = _checked_task(run, environment, task)
        with machine.torch_settings(device, environment.threads) as unfixed:
            model = _seeded_model(run, task)
            loaders = _checked_loaders(run, environment, task)
            if isinstance(model, Resonators):
                result = _fitted(run, environment, task, loaders, model)
                return model.eval(), _reported(result, on_epoch_end)
            loop = Loop(run, task, loaders, model, environment)
            _train(loop, environment, None, on_epoch_end)
            result = tested(loop, unfixed)
            return model.eval(), result
    finally:
        restore_random_states(states)


def _check(run: Run, environment: RunEnvironment) -> str:
    """Refuse what can be refused before any work, and return the device."""
    _check_type("run", run, Run, "Run(task, model, ...) or Run.from_json(text)")
    _check_type("environment", environment, RunEnvironment, "RunEnvironment(out=..., ...)")
    machine.check_system()
    fitted = model_kind(run.model) == "fitted"
    device = "cpu" if fitted else machine.choose_device(environment.device)
    machine.check_logger(environment.logger)
    several = f"devices={environment.devices}"
    if environment.num_nodes > 1:
        several += f" times num_nodes={environment.num_nodes}"
    _checks.require(
        run.batch_size % environment.world_size == 0,
        "batch_size",
        run.batch_size,
        f"a multiple of {several}",
        "change one of them",
    )
    if environment.diagnose:
        check_applicable(run.model, environment.diagnose)
    return device


def _checked_task(run: Run, environment: RunEnvironment, task: Task | None) -> Task:
    """The task, made if it is None, which has to fit the run."""
    if task is None:
        task = run.make_task(environment)
    _checks.require(
        task.name == run.task, "task", task.name, f"{run.task!r}, as in the run", "give that"
    )
    check_readout(run.task, task.readout, run.readout)
    _check_loss(run, task)
    fitted = model_kind(run.model) == "fitted"
    _checks.require(
        (task.kind != "graph" and not fitted) or environment.world_size == 1,
        f"devices of {run.model}" if fitted else "devices of a graph task",
        environment.world_size,
        "1",
        "leave devices and num_nodes out",
    )
    return task


def _checked_loaders(run: Run, environment: RunEnvironment, task: Task) -> Loaders[Any]:
    """The task's batches; says how the data were understood."""
    loaders = task.loaders(run.seed, run.batch_size)
    texts = [task.summary(), task.hint]
    if model_kind(run.model) != "fitted":  # which have no epochs to choose from
        _check_selection(run, loaders)
        texts.append(_few_to_choose_by(run, task))
    for text in texts:
        if text:
            _say(environment, text)
    return loaders


def _fitted(
    run: Run, environment: RunEnvironment, task: Task, loaders: Loaders[Any], model: Resonators
) -> Result:
    """Fit a model that has no epochs."""
    result = fit_at_once(run, task, loaders, model)
    _say(environment, f"{run.model} fitted in {result.seconds:.1f} s")
    return result


def _check_type(name: str, value: object, kind: type, maker: str) -> None:
    good, expected = isinstance(value, kind), f"a {kind.__name__}"
    _checks.require(good, name, value, expected, f"make one with {maker}", TypeError)


def _check_loss(run: Run, task: Task) -> None:
    """Refuses what is for classes only on other tasks."""
    classes, advice = task.loss == "cross_entropy", "leave it out"
    for name, default in (("label_smoothing", 0.0), ("class_weights", "none")):
        value, expected = getattr(run, name), f"{default!r} where no classes are predicted"
        _checks.require(classes or value == default, name, value, expected, advice)


def _check_selection(run: Run, loaders: Loaders[Any]) -> None:
    """Refuses to choose an epoch where there is no validation set."""
    if len(loaders.valid):
        return
    advice = 'set select="last", or keep a validation set'
    _checks.require(
        run.select == "last", "select", run.select, '"last" without a validation set', advice
    )
    _checks.require(
        run.patience is None, "patience", run.patience, "None without a validation set", advice
    )


def _few_to_choose_by(run: Run, task: Task) -> str:
    """Says that a validation set is too small to choose an epoch by; empty where it is not."""
    count = task.sizes["valid"]
    if run.select == "last" or task.kind != "sequence" or not 0 < count < _FEW:
        return ""
    share = f", one of which is {100 / count:.3g} points" if task.metric == "accuracy" else ""
    return (
        f"Only {count} sequences choose the epoch{share}: the validation score says little. Take "
        'select="last", or folds of your own file (anharmonic train ... --folds 5).'
    )


def _reported(result: Result, on_epoch_end: OnEpochEnd | None) -> Result:
    if on_epoch_end is not None:
        results.report_curve(result.curve, on_epoch_end)
    return result


def _among_results(run: Run, environment: RunEnvironment) -> Result | None:
    for line in results.read_results(environment.results_path):
        if line.hash == run.hash:
            _say(
                environment,
                f"Run {run.hash} is finished already: {environment.results_path} has its result.",
            )
            folder = folders.run_folder(run, environment)
            if not (folder / folders.BEST).is_dir():
                text = (
                    f"Its trained model is not in {folder}. To train it again, remove its line "
                    "from the results file, or choose another --out and --results."
                )
                _say(environment, text)
            return line
    return None


def _finished(run: Run, environment: RunEnvironment, folder: Path, is_first: bool) -> Result | None:
    """Looks for the run's result, as the only process at work in its folder or with its first.

    Another process may have finished the run since the first look; the run may have been killed
    between its result and the results line; or the results file is another one than then.
    """
    path = folder / folders.RESULT
    if not path.exists():
        return None
    result = Result.from_json(_checks.text_of(path))
    _checks.require(
        result.run.hash == run.hash,
        str(path),
        result.run.hash,
        f"the result of run {run.hash}",
        "move this folder away or choose another `out`",
    )
    if not is_first:
        return result
    remove_leftovers(folder)
    if (line := _among_results(run, environment)) is not None:
        return line
    results.append(environment.results_path, result)
    _say(environment, f"Run {run.hash} is finished already: {path} has its result.")
    return result


def _seeded_model(run: Run, task: Task) -> nn.Module:
    random.seed(run.seed)
    np.random.seed(run.seed)  # noqa: NPY002 - the global generator, for other people's code
    torch.manual_seed(run.seed)
    return run.build_model(task)


def _train(
    loop: Loop,
    environment: RunEnvironment,
    folder: Path | None,
    on_epoch_end: OnEpochEnd | None,
) -> None:
    """Train to the end; an interruption says how to continue."""
    callbacks = _callbacks(loop, environment, folder)
    if on_epoch_end is not None:
        callbacks.append(Reporter(on_epoch_end))
    try:
        with signals():
            loop(callbacks)
    except (KeyboardInterrupt, SystemExit) as stop:
        end_processes()
        if loop.resume is None or (isinstance(stop, SystemExit) and stop.code != TERMINATED):
            raise
        text = (
            f"Interrupted after {loop.saved_epoch} of {loop.run.epochs} epochs; "
            f"the same command continues (state: {loop.resume})."
        )
        _say(environment, text)
        end = KeyboardInterrupt(text) if isinstance(stop, KeyboardInterrupt) else stop
        if end is stop:
            end.add_note(text)
        vars(end)["said"] = environment.progress
        raise end from None


def _callbacks(loop: Loop, environment: RunEnvironment, folder: Path | None) -> list[Callback]:
    """What watches the training in this process."""
    # Without a validation set the first training batch is what is looked at.
    looked_at = loop.loaders.valid or loop.loaders.train(0)
    callbacks: list[Callback] = []
    if isinstance(loop.model, NeuralODENetwork):
        callbacks.append(OdeCurves(loop.model, looked_at[0]))
    if loop.rank > 0:
        return callbacks
    if folder is not None and environment.diagnose:
        probe = probe_of(looked_at, loop.task.loss)
        path = folder / folders.DIAGNOSTICS
        callbacks.append(Diagnostics(path, probe, environment.diagnose, environment.diagnose_every))
    if folder is not None and environment.logger != "none":
        run = loop.run
        place = environment.out / "logs" / f"{run.task}-{run.model}" / run.hash
        callbacks.append(LOGS[environment.logger](place))
    if environment.progress:
        callbacks.append(Progress())
    return callbacks


def _circumstances(environment: RunEnvironment, device: str) -> dict[str, str]:
    """What has to be the same when a run is resumed, for the same bits."""
    found = machine.versions()
    return {
        "torch": found["torch"],
        "device": device,
        "hardware": hardware(device),
        "devices": str(environment.world_size),
        "threads": str(torch.get_num_threads()),
    }


def _say(environment: RunEnvironment, text: str) -> None:
    if environment.progress:
        print(text, file=sys.stderr, flush=True)
