"""``fit(run)``: the one way to train anything."""

from __future__ import annotations

import contextlib
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from anharmonic import _checks, _processes
from anharmonic.data.base import Loaders, Task
from anharmonic.diagnostics.machine import hardware
from anharmonic.diagnostics.registry import check_applicable
from anharmonic.nn.registry import model_kind
from anharmonic.nn.resonators.model import Resonators
from anharmonic.nn.store import save_pretrained
from anharmonic.train import folder as folders
from anharmonic.train import machine, results
from anharmonic.train.finish import PreparedRun, finish, remove_leftovers, write
from anharmonic.train.fitted import fit_at_once
from anharmonic.train.options import check_readout
from anharmonic.train.predict import predict
from anharmonic.train.probes import probe_of
from anharmonic.train.results import Result
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.trained import write_task

__all__ = ["fit", "predict"]

# Fewer validation sequences than this rank epochs by chance: the standard error of an accuracy of
# 90 % is more than 5 points.
_FEW = 36


def fit(
    run: Run,
    environment: RunEnvironment | None = None,
    task: Task | None = None,
    told: Callable[[int, float], None] | None = None,
) -> Result:
    """Trains a run, or goes on where it was interrupted, or returns its result if it is finished.

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
        told: Is called after every epoch with its number, from 1, and the validation metric, NaN
            where there is none; of a run that goes on or is finished, first after those it has
            done. What it raises ends the training, which another call continues.

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
    is_first = _processes.rank() == 0
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
    folder = folders.run_folder(run, environment)
    if (found := _among_results(run, environment)) is not None:
        return _told_of(found, told)
    try:
        import lightning  # noqa: F401

        from anharmonic.train.launch import check_processes
    except ImportError as error:
        raise _checks.missing_extra("lightning", "train", "training") from error
    from anharmonic.train.resume import random_states, restore_random_states

    check_processes(environment)
    states = random_states()
    try:
        if task is None:
            task = run.make_task(environment)
        _checks.require(
            task.name == run.task, "task", task.name, f"{run.task!r}, as in the run", "give that"
        )
        check_readout(run.task, task.readout, run.readout)
        _check_loss(run, task)
        _checks.require(
            (task.kind != "graph" and not fitted) or environment.world_size == 1,
            f"devices of {run.model}" if fitted else "devices of a graph task",
            environment.world_size,
            "1",
            "leave devices and num_nodes out",
        )
        with (
            machine.torch_settings(device, environment.threads) as unfixed,
            contextlib.ExitStack() as held,
        ):
            # Before anything is written or read: here the model says what it does not take.
            model = _seeded_model(run, task)
            if is_first:
                held.enter_context(folders.locked(folder))
                folders.claim(folder, run)
                folders.remove_temporary(folder)
            if (found := _finished(run, environment, folder, is_first)) is not None:
                return _told_of(found, told)
            if is_first:
                write_task(folder / folders.TASK, task)
            loaders = task.loaders(run.seed, run.batch_size)
            if not fitted:
                _check_selection(run, loaders)
            if is_first and environment.progress:
                _say(environment, task.summary())
                for text in (task.hint, "" if fitted else _few_to_choose_by(run, task)):
                    if text:
                        _say(environment, text)
            if isinstance(model, Resonators):
                result = fit_at_once(run, task, loaders, model)
                _say(environment, f"{run.model} fitted in {result.seconds:.1f} s")
                save_pretrained(model, folder / folders.BEST)
                write(result, folder, environment.results_path)
                return _told_of(result, told)
            prepared = PreparedRun(run, environment, device, folder, task, loaders, model, is_first)
            return _train(prepared, unfixed, told)
    finally:
        restore_random_states(states)


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


def _told_of(result: Result, told: Callable[[int, float], None] | None) -> Result:
    if told is not None:
        results.tell_curve(result.curve, told)
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
    prepared: PreparedRun, unfixed: set[str], told: Callable[[int, float], None] | None
) -> Result:
    from anharmonic.train.diagnostics_callback import DiagnosticsCallback
    from anharmonic.train.launch import TERMINATED, EpochTrainer, launcher, strategy_of
    from anharmonic.train.lightning_messages import hide_lightning_messages
    from anharmonic.train.module import TrainingModule
    from anharmonic.train.ode_curves import ode_curves_of
    from anharmonic.train.progress_bar import ProgressBar
    from anharmonic.train.resume import AtomicCheckpointIO
    from anharmonic.train.training_state import EpochTeller, TrainingState

    run, environment = prepared.run, prepared.environment
    resume = prepared.folder / folders.RESUME
    # Without a validation set the first training batch is what is looked at.
    looked_at = prepared.loaders.valid or prepared.loaders.train(0)
    watch = ode_curves_of(prepared.model, prepared.task, looked_at)
    state = TrainingState(
        prepared.loaders.valid, prepared.task, resume, _circumstances(prepared), watch
    )
    # The diagnostics before the state: killed in between, the epoch is done and measured again.
    callbacks: list[Any] = [state]
    if environment.diagnose:
        callbacks.insert(
            0,
            DiagnosticsCallback(state, probe_of(looked_at, prepared.task.loss), prepared),
        )
    if environment.logger != "none":
        from anharmonic.train.loggers import EpochLogger

        callbacks.append(EpochLogger(state, prepared))
    if environment.progress:
        callbacks.append(ProgressBar(run, state))
    if told is not None:
        callbacks.append(EpochTeller(state, told))
    module = TrainingModule(
        run,
        prepared.model,
        prepared.task,
        prepared.loaders.train,
        prepared.class_weights,
        str(resume),
        environment.workers,
    )
    plugins: list[Any] = [AtomicCheckpointIO()]
    if (found := launcher()) is not None:
        plugins.append(found)
    with hide_lightning_messages():
        trainer = EpochTrainer(
            accelerator="gpu" if prepared.device == "cuda" else "cpu",
            devices=environment.devices,
            num_nodes=environment.num_nodes,
            strategy=strategy_of(environment, prepared.device),
            max_epochs=run.epochs,
            callbacks=callbacks,
            plugins=plugins,
            default_root_dir=prepared.folder,
            reload_dataloaders_every_n_epochs=1,
            use_distributed_sampler=False,
            num_sanity_val_steps=0,
            limit_val_batches=0,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        ctrl_c = signal.getsignal(signal.SIGINT)
        try:
            trainer.fit(module, ckpt_path=resume if resume.exists() else None)
        except SystemExit as left:
            if not (state.interrupted or trainer.received_sigterm or left.code == TERMINATED):
                raise
            signal.signal(signal.SIGINT, ctrl_c)
            text = (
                f"Interrupted after {module.saved_epoch} of {run.epochs} epochs; "
                f"the same command continues (state: {resume})."
            )
            _say(environment, text)
            # Lightning's exit says 0, as if the work were done.
            stop = KeyboardInterrupt(text) if state.interrupted else SystemExit(TERMINATED)
            if not state.interrupted:
                stop.add_note(text)
            vars(stop)["said"] = environment.progress
            raise stop from None
    if module.average is not None:
        prepared.model.load_state_dict(module.average.module.state_dict())
    if environment.world_size == 1:
        return finish(prepared, state, unfixed)
    tested = finish(prepared, state, unfixed) if prepared.is_first_process else None
    result: Result = trainer.strategy.broadcast(tested, src=0)  # type: ignore[assignment]
    return result


def _circumstances(prepared: PreparedRun) -> dict[str, str]:
    """What has to be the same when a run is resumed, for the same bits."""
    found = machine.versions()
    return {
        "torch": found["torch"],
        "device": prepared.device,
        "hardware": hardware(prepared.device),
        "devices": str(prepared.environment.world_size),
        "threads": str(torch.get_num_threads()),
    }


def _say(environment: RunEnvironment, text: str) -> None:
    if environment.progress:
        print(text, file=sys.stderr, flush=True)
