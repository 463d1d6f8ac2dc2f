"""``fit(run)``: train a run."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from anharmonic import _checks
from anharmonic._files import write_atomically
from anharmonic._processes import rank
from anharmonic.data.base import Loaders, Task
from anharmonic.data.options import DataOptions
from anharmonic.data.own import SequencesTask
from anharmonic.data.scores import ScoreTable
from anharmonic.diagnostics import machine
from anharmonic.nn.registry import model_kind, source_digest
from anharmonic.nn.store import save_pretrained
from anharmonic.ops import use_precision
from anharmonic.train import folder as folders
from anharmonic.train import results
from anharmonic.train.folder import random_states, restore_random_states
from anharmonic.train.loop import Callback, Loop
from anharmonic.train.losses import DivergedError
from anharmonic.train.optim import learning_rate
from anharmonic.train.options import check_readout, frozen_defaults
from anharmonic.train.processes import (
    TERMINATED,
    broadcast,
    check_processes,
    end_processes,
    join,
    signals,
    threads_of,
)
from anharmonic.train.results import Result, result_of, rounded
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.scoring import MOST_KEPT, evaluate
from anharmonic.train.trained import write_task
from anharmonic.train.watching import LOGS, OnEpochEnd, Progress, Reporter, check_logger, say

# With fewer validation sequences the choice of an epoch is random: the standard error of an
# accuracy of 90 % exceeds 5 points.
_FEW = 36


def fit(
    run: Run,
    environment: RunEnvironment | None = None,
    task: Task | None = None,
    on_epoch_end: OnEpochEnd | None = None,
) -> Result:
    """Train a run, continue an interrupted run, or return the result of a finished run.

    Training runs on Linux and macOS.

    The run's folder is ``environment.out / "<task>-<model>-<hash>"``. A ``resume.ckpt`` is saved
    there after every epoch, at most once a second. After any interruption, start the same run
    again. It ends with the same bits, given the same machine, versions, device kind and thread
    count. A finished folder holds ``best`` (the model, see ``anharmonic.from_pretrained``) and
    ``result.json``. The results file gets one line.

    Args:
        run: What to train.
        environment: Where to train; the default trains on the CPU and writes to ``runs``.
        task: The run's task if it is in memory, such as an ``anharmonic.data.SequencesTask`` for
            the task "file". Its ``Sequences.digest`` is the run's ``sha256``.
        on_epoch_end: Called after each epoch with its number, from 1, and a dict of values as in
            ``Result.curve``, such as "train_loss" and "valid" (the validation metric, if there is a
            validation set). For a resumed or finished run it is first called for the earlier
            epochs. An exception ends the training; another call of ``fit`` continues it.

    Returns:
        The result, the same as in the results file.

    Raises:
        TypeError: If `run` is not a Run or `environment` not a RunEnvironment.
        ValueError: If options conflict, the device is missing, the folder belongs to another run or
            the resume file is damaged.
        DivergedError: If a loss or validation value is infinite or NaN.
        RuntimeError: If another process trains this run, or on Windows.
        OSError: If a file cannot be written; the last good state stays.
        ImportError: If an extra is missing.
        KeyboardInterrupt: After Ctrl-C; the same command continues.
        SystemExit: After SIGTERM, with code 143; the same command continues.

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
    is_first = rank() == 0
    states = random_states()
    try:
        task = _checked_task(run, environment, task)
        with (
            machine.torch_settings(device, threads_of(environment)) as unfixed,
            use_precision(run.precision),
            contextlib.ExitStack() as held,
        ):
            # Before any file is read or written, because the model checks its options here.
            model = _seeded_model(run, task)
            if is_first:
                held.enter_context(folders.locked(folder))
                folders.claim(folder, run)
                folders.remove_temporary(folder)
            if (found := _finished(run, environment, folder, is_first)) is not None:
                return _reported(found, on_epoch_end)
            code = source_digest(run.model)
            expected = f"{code!r}, the code of {run.model} as it is now"
            _checks.require(
                run.code in ("", code), "code of the run", run.code, expected, "make the run anew"
            )
            if is_first:
                write_task(folder / folders.TASK, task)
            loaders = _checked_loaders(run, environment, task)
            if model_kind(run.model) == "fitted":
                result, report = _fitted(run, environment, task, loaders, model)
                _write(model, result, report, folder, environment.results_path)
                return _reported(result, on_epoch_end)
            if not (folder / folders.RESUME).exists():
                _begin(model, run, environment, task)
            join(environment, device)
            resume, circumstances = folder / folders.RESUME, _circumstances(environment, device)
            loop = Loop(run, task, loaders, model, environment, resume, circumstances)
            _train(loop, environment, folder, on_epoch_end)
            done = None
            if is_first:
                done, report = _tested(loop, unfixed)
                _write(model, done, report, folder, environment.results_path)
            shared: Result = broadcast(done, loop.world)
            return shared
    finally:
        restore_random_states(states)


def fit_in_memory(
    run: Run,
    environment: RunEnvironment,
    task: Task,
    on_epoch_end: OnEpochEnd | None = None,
    start: nn.Module | None = None,
) -> tuple[nn.Module, Result]:
    """Train a run in this process like `fit`, without writing or resuming files.

    Args:
        run: What to train.
        environment: Device, threads and whether to show progress.
        task: The run's task.
        on_epoch_end: As in `fit`.
        start: A model with the initial weights; None for those of the run.

    Returns:
        The trained model, in evaluation mode on the CPU, and the result.

    Raises:
        ValueError: If options conflict or the device is missing.
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
        with (
            machine.torch_settings(device, environment.threads) as unfixed,
            use_precision(run.precision),
        ):
            model = _seeded_model(run, task)
            loaders = _checked_loaders(run, environment, task)
            if model_kind(run.model) == "fitted":
                result, _ = _fitted(run, environment, task, loaders, model)
                return model.eval(), _reported(result, on_epoch_end)
            _begin(model, run, environment, task, start)
            loop = Loop(run, task, loaders, model, environment)
            _train(loop, environment, None, on_epoch_end)
            result, _ = _tested(loop, unfixed)
            return model.eval(), result
    finally:
        restore_random_states(states)


def _check(run: Run, environment: RunEnvironment) -> str:
    """Check everything that needs no work, and return the device."""
    _check_type("run", run, Run, "Run(task, model, ...) or Run.from_json(text)")
    _check_type("environment", environment, RunEnvironment, "RunEnvironment(out=..., ...)")
    machine.check_system()
    fitted = model_kind(run.model) == "fitted"
    device = "cpu" if fitted else machine.choose_device(environment.device)
    check_logger(environment.logger)
    several = f"devices={environment.devices}"
    if environment.num_nodes > 1:
        several += f" times num_nodes={environment.num_nodes}"
    fits, advice = run.batch_size % environment.world_size == 0, "change one of them"
    _checks.require(fits, "batch_size", run.batch_size, f"a multiple of {several}", advice)
    if environment.diagnose:
        from anharmonic.diagnostics.registry import check_applicable  # loads every diagnostic

        check_applicable(run.model, environment.diagnose)
    return device


def _checked_task(run: Run, environment: RunEnvironment, task: Task | None) -> Task:
    """Return the task after checking that it fits the run; make it if None."""
    if task is None:
        task = run.make_task(environment)
    _checks.require(
        task.name == run.task, "task", task.name, f"{run.task!r}, as in the run", "give that"
    )
    if isinstance(task, SequencesTask):
        _check_options(run, task)
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


def _check_options(run: Run, task: SequencesTask) -> None:
    """Refuse data in memory that were prepared otherwise than the run says."""
    options = frozen_defaults("task", run.task) | run.task_options
    digest = options.pop("sha256")
    fits, advice = task.digest in (None, digest), "give the file of the run"
    _checks.require(fits, "digest of task", task.digest, f"{digest!r}, as in the run", advice)
    asked = DataOptions(**options)
    for field in dataclasses.fields(asked):
        expected, came = getattr(asked, field.name), getattr(task.options, field.name)
        advice = "give task.with_options(...) with the run's task_options"
        _checks.require(
            came == expected, f"{field.name} of task", came, f"{expected!r}, as in the run", advice
        )


def _checked_loaders(run: Run, environment: RunEnvironment, task: Task) -> Loaders[Any]:
    """Return the task's batches and report how the data were read."""
    loaders = task.loaders(run.seed, run.batch_size)
    texts = [task.summary(), task.hint]
    if model_kind(run.model) != "fitted":  # fitted models have no epochs to choose from
        _check_selection(run, loaders)
        texts.append(_few_to_choose_by(run, task))
    for text in texts:
        if text:
            _say(environment, text)
    return loaders


def _fitted(
    run: Run, environment: RunEnvironment, task: Task, loaders: Loaders[Any], model: Any
) -> tuple[Result, ScoreTable | None]:
    """Fit a model that has no epochs."""
    from anharmonic.train.fitted import fit_at_once  # loads the models that are fitted

    result, report = fit_at_once(run, task, loaders, model)
    _say(environment, f"{run.model} fitted in {result.seconds:.1f} s")
    return result, report


def _begin(
    model: nn.Module,
    run: Run,
    environment: RunEnvironment,
    task: Task,
    start: nn.Module | None = None,
) -> None:
    """Load the initial weights of a new model, if there are any."""
    if start is None and run.initial is None:
        return
    from anharmonic.train.warm import load_initial, take_weights  # few runs need this

    if start is None:
        load_initial(model, run, environment, task)
    else:
        take_weights(model, start.state_dict(), new_head=False, where="the model before")


def _check_type(name: str, value: object, kind: type, maker: str) -> None:
    good, expected = isinstance(value, kind), f"a {kind.__name__}"
    _checks.require(good, name, value, expected, f"make one with {maker}", TypeError)


def _check_loss(run: Run, task: Task) -> None:
    """Refuse options for classification on other tasks."""
    classes, advice = task.loss == "cross_entropy", "leave it out"
    for name, default in (("label_smoothing", 0.0), ("class_weights", "none")):
        value, expected = getattr(run, name), f"{default!r} where no classes are predicted"
        _checks.require(classes or value == default, name, value, expected, advice)


def _check_selection(run: Run, loaders: Loaders[Any]) -> None:
    """Refuse to choose an epoch without a validation set."""
    if len(loaders.valid):
        return
    advice = 'say --select last (select="last"), or keep a validation set'
    _checks.require(
        run.select == "last", "select", run.select, '"last" without a validation set', advice
    )
    _checks.require(
        run.patience is None, "patience", run.patience, "None without a validation set", advice
    )


def _few_to_choose_by(run: Run, task: Task) -> str:
    """Return a notice if the validation set is too small to choose an epoch, or ""."""
    count = task.sizes["valid"]
    folds = run.task_options.get("folds") is not None  # the notice itself advises them
    if run.select == "last" or folds or task.kind != "sequence" or not 0 < count < _FEW:
        return ""
    share = f", and each is {100 / count:.3g} points of its score" * (task.metric == "accuracy")
    advice = 'Use --select last (select="last")'
    if run.task == "file" and isinstance(task, SequencesTask) and task.can_fold(5):
        advice += ", or cross-validate with --folds 5"
    return (
        f"The validation set, which chooses the epoch, has only {count} sequences{share}. {advice}."
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
    """Look for the run's result, holding the folder's lock or together with the first process.

    Another process may have finished the run since the first look. The run may also have been
    killed before its results line, or the results file may have changed.
    """
    path = folder / folders.RESULT
    if not path.exists():
        return None
    result = Result.from_json(_checks.text_of(path))
    fits, advice = result.run.hash == run.hash, "move this folder away or choose another `out`"
    _checks.require(fits, str(path), result.run.hash, f"the result of run {run.hash}", advice)
    if not is_first:
        return result
    _remove_leftovers(folder)
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
    """Train to the end; on an interruption, report how to continue."""
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
    """Return the callbacks of this process."""
    # Without a validation set, use the first training batch.
    looked_at = loop.loaders.valid or loop.loaders.train(0)
    callbacks: list[Callback] = []
    if loop.run.model == "NeuralODE":
        from anharmonic.train.ode_curves import OdeCurves  # loads the solvers

        callbacks.append(OdeCurves(loop.model, looked_at[0]))  # type: ignore[arg-type]
    if loop.rank > 0:
        return callbacks
    if folder is not None and environment.diagnose:
        from anharmonic.train.probes import Diagnostics, probe_of  # loads every diagnostic

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
    """Return the conditions under which a resumed run gives the same bits."""
    found = machine.versions()
    return {
        "torch": found["torch"],
        "device": device,
        "hardware": machine.hardware(device),
        "devices": str(environment.world_size),
        "threads": str(torch.get_num_threads()),
    }


def _say(environment: RunEnvironment, text: str) -> None:
    if environment.progress:
        say(text)


_CURVE_POINTS = 100


def _tested(loop: Loop, nondeterministic: set[str]) -> tuple[Result, ScoreTable | None]:
    """Load the chosen weights, test the model, and return the result and all test metrics."""
    run, task, loaders, seconds = loop.run, loop.task, loop.loaders, loop.seconds
    epoch = loop.chosen_epoch
    loop.model.load_state_dict(loop.chosen_weights)
    scores = evaluate(loop.model, loaders.test, task, loop.device, MOST_KEPT)
    test = scores.metric
    if not math.isfinite(test):
        lr = learning_rate(run, loop.epoch - 1, 1)  # about the rate of the last epoch
        text = _checks.message(
            f"test {task.metric} must be finite",
            f"{test} with the weights of epoch {epoch}",
            "train with a lower lr, or look for extreme values in the test data",
        )
        raise DivergedError(text, step=0, epoch=epoch, value=test, lr=lr)
    loop.model.to("cpu").zero_grad(set_to_none=True)
    return result_of(
        run,
        task,
        loaders,
        scores,
        loop.class_weights,
        valid=loop.curve["valid"][epoch - 1] if "valid" in loop.curve else None,
        parameters=sum(p.numel() for p in loop.model.parameters() if p.requires_grad),
        seconds=round(seconds, 3),
        memory_mb=round(loop.memory_mb, 1),
        epochs_run=loop.epoch,
        best_epoch=epoch,
        stopped="early" if loop.stopped_early else "finished",
        device=loop.device.type,
        devices=loop.world,
        hardware=machine.hardware(loop.device.type),
        versions=loop.versions,
        commit=loop.commit,
        started=loop.started,
        curve=_thinned(loop.curve, epoch),
        nondeterministic=sorted(nondeterministic),
    )


def _write(
    model: nn.Module, result: Result, report: ScoreTable | None, folder: Path, results_path: Path
) -> None:
    """Write the model, then report and result into the folder, then the line of the results file.

    After a kill in between, the next start continues after the last one written.
    """
    save_pretrained(model, folder / folders.BEST)
    if report is not None:
        write_atomically(folder / folders.REPORT, report.to_json() + "\n")
    write_atomically(folder / folders.RESULT, result.to_json(indent=2) + "\n")
    _remove_leftovers(folder)
    results.append(results_path, result)


def _thinned(curve: dict[str, list[float]], best_epoch: int) -> dict[str, list[float]]:
    """Return about a hundred epochs of a curve, rounded, including the best and the last."""
    count = len(curve["epoch"])
    stride = -(-count // _CURVE_POINTS)
    kept = sorted({*range(0, count, stride), best_epoch - 1, count - 1})
    return {name: [rounded(values[i]) for i in kept] for name, values in curve.items()}


def _remove_leftovers(folder: Path) -> None:
    """Remove files that a finished run no longer needs."""
    (folder / folders.RESUME).unlink(missing_ok=True)
    folders.remove_temporary(folder)
    # Left by a kill while the model was being written.
    for leftover in folder.glob(f".{folders.BEST}-*"):
        shutil.rmtree(leftover, ignore_errors=True)
