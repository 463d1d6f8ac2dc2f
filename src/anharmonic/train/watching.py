"""What watches a training: a progress bar, logs, diagnostics, the caller's own function."""

from __future__ import annotations

import csv
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from torch import Tensor
from tqdm import tqdm

from anharmonic._files import append_line, write_atomically
from anharmonic.diagnostics.base import Probe
from anharmonic.diagnostics.registry import measure
from anharmonic.ops.graph import Adjacency
from anharmonic.train import results
from anharmonic.train.estimate import in_words
from anharmonic.train.loop import Callback, Loop
from anharmonic.train.notices import Notices
from anharmonic.train.optim import learning_rate

_LINES = 20
# Seconds of steps from which the whole is estimated, and how long that must be to be worth a line.
_WATCHED, _LONG = 2.0, 30.0

OnEpochEnd = Callable[[int, dict[str, float]], None]
"""Takes an epoch, from 1, and its values by name: "train_loss", "valid", "valid_loss" ..."""


class Progress(Callback):
    """Shows model, task, epoch, training loss and validation metric on standard error.

    On a terminal that is one bar for the whole run, elsewhere a line now and then.
    """

    def __init__(self) -> None:
        self._bar: Any = None

    def on_start(self, loop: Loop) -> None:
        """Say that a run goes on, and open the bar where it stands."""
        run = loop.run
        self._title, self._notices = f"{run.model} on {run.task}", Notices(run)
        self._first_step, self._total = loop.step, run.epochs * loop.steps_per_epoch
        self._lines = loop.step * _LINES // self._total
        self._began = self._warm = time.monotonic()
        self._estimated = False
        if loop.epoch:
            _say(f"Going on after epoch {loop.epoch} of {run.epochs} ({self._title}).")
        if sys.stderr.isatty():
            self._bar = tqdm(
                total=self._total,
                initial=loop.step,
                desc=self._title,
                unit="step",
                dynamic_ncols=True,
                smoothing=0.1,
            )

    def on_step(self, loop: Loop) -> None:
        """Count the step."""
        if not self._estimated:
            self._estimate(loop)
        if self._bar is not None:
            if self._bar.update():
                self._bar.set_postfix_str(_numbers(loop, loop.epoch + 1), refresh=False)
        elif loop.step % loop.steps_per_epoch and self._crosses_a_line(loop):
            # (The line of an epoch's last step waits for the epoch's validation.)
            self._line(loop, loop.epoch + 1)

    def on_epoch_end(self, loop: Loop) -> None:
        """Show the validation value, and say what looks wrong."""
        if text := self._notices.of(loop.curve):
            tqdm.write(text, file=sys.stderr)
        if self._bar is not None:
            self._bar.set_postfix_str(_numbers(loop, loop.epoch))
        elif self._crosses_a_line(loop):
            self._line(loop, loop.epoch)

    def on_end(self, loop: Loop, finished: bool) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.close()

    def _estimate(self, loop: Loop) -> None:
        """Say once how long the steps will take, if that is long; a bar shows it anyway."""
        now, done = time.monotonic(), loop.step - self._first_step
        if done == 1:  # the first step loads and allocates
            self._warm = now
        elif now - self._warm >= _WATCHED:
            self._estimated = True
            steps = self._total - self._first_step
            seconds = (now - self._warm) / (done - 1) * steps
            if seconds > _LONG and self._bar is None:
                _say(f"{self._title}: {in_words(seconds)} for {steps} steps.")

    def _crosses_a_line(self, loop: Loop) -> bool:
        """Whether a further twentieth of the steps is done since the last line."""
        before, self._lines = self._lines, loop.step * _LINES // self._total
        return self._lines > before

    def _line(self, loop: Loop, epoch: int) -> None:
        took = time.monotonic() - self._began
        left = took / (loop.step - self._first_step) * (self._total - loop.step)
        share = 100 * loop.step // self._total
        numbers = _numbers(loop, epoch)
        _say(f"{self._title} {share:3d} %: {numbers}; {took:.0f} s, {left:.0f} s left")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _numbers(loop: Loop, epoch: int) -> str:
    text = f"epoch {epoch}/{loop.run.epochs}"
    if not math.isnan(loop.last_loss):  # (on a GPU it is read now and then only)
        text += f", loss {loop.last_loss:.4g}"
    if valid := loop.curve.get("valid"):
        best = valid[loop.best_epoch - 1]
        text += f", valid {loop.task.metric} {valid[-1]:.4g}"
        text += f" (best {best:.4g}, epoch {loop.best_epoch})"
    return text


class Reporter(Callback):
    """Calls the caller's function after every epoch, and first for those before a resume."""

    def __init__(self, on_epoch_end: OnEpochEnd) -> None:
        self._call = on_epoch_end

    def on_start(self, loop: Loop) -> None:
        """Report the epochs of earlier sittings."""
        results.report_curve(loop.curve, self._call)

    def on_epoch_end(self, loop: Loop) -> None:
        """Report the epoch."""
        newest = {name: values[-1] for name, values in loop.curve.items() if name != "epoch"}
        self._call(loop.epoch, newest)


class Diagnostics(Callback):
    """Adds a line to a file before training and after epochs; changes neither weights nor clock.

    Args:
        path: The run's ``diagnostics.jsonl``.
        probe: The data that the model is looked at with.
        names: What to measure.
        every: Epochs from one measurement to the next; before the first and after the last epoch
            there is one in any case.
    """

    def __init__(self, path: Path, probe: Probe, names: tuple[str, ...], every: int) -> None:
        self._path, self._probe, self._names, self._every = path, probe, names, every

    def on_start(self, loop: Loop) -> None:
        """Measure the initial weights."""
        if loop.epoch == 0:
            self._measure(loop)

    def measure(self, loop: Loop) -> dict[str, float]:
        """Measure before the epoch is saved: killed in between, both are done again."""
        if loop.epoch % self._every == 0 or loop.epoch == loop.run.epochs:
            self._measure(loop)
        return {}

    def _measure(self, loop: Loop) -> None:
        with loop.paused():
            inputs = tuple(
                entry.to(loop.device) if isinstance(entry, Tensor | Adjacency) else entry
                for entry in self._probe.inputs
            )
            found = measure(loop.model, Probe(inputs, self._probe.loss), self._names)
            line = json.dumps({"epoch": loop.epoch, **found}, allow_nan=False)
            append_line(self._path, line)


class Log(Callback):
    """Writes the curves into a folder after every epoch, and the run before the first.

    Args:
        folder: The folder; what an earlier sitting wrote is replaced by the same.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def on_start(self, loop: Loop) -> None:
        """Open the log and write the epochs of earlier sittings."""
        with loop.paused():
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._folder / "run.json", loop.run.to_json(indent=2) + "\n")
            self._open()
            for place in range(loop.epoch):
                self._add(loop, place)

    def on_epoch_end(self, loop: Loop) -> None:
        """Write the epoch; it is saved by now."""
        with loop.paused():
            self._add(loop, -1)

    def _add(self, loop: Loop, place: int) -> None:
        values = {name: entries[place] for name, entries in loop.curve.items()}
        epoch = int(values["epoch"])
        last_step = epoch * loop.steps_per_epoch - 1
        values["lr"] = learning_rate(loop.run, last_step, loop.steps_per_epoch)
        self._write(epoch, values)

    def _open(self) -> None:
        raise NotImplementedError

    def _write(self, epoch: int, values: dict[str, float]) -> None:
        raise NotImplementedError


class CsvLog(Log):
    """Writes ``metrics.csv``, a row for each epoch."""

    _file: TextIO | None = None

    def _open(self) -> None:
        self._file = (self._folder / "metrics.csv").open("w", newline="", encoding="utf-8")
        self._names: list[str] = []

    def _write(self, epoch: int, values: dict[str, float]) -> None:
        assert self._file is not None
        writer = csv.writer(self._file)
        if not self._names:
            self._names = sorted(values)
            writer.writerow(["step", *self._names])
        writer.writerow([epoch, *(values[name] for name in self._names)])
        self._file.flush()

    def on_end(self, loop: Loop, finished: bool) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class TensorBoardLog(Log):
    """Writes TensorBoard's scalars."""

    _writer: Any = None

    def _open(self) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self._folder), purge_step=0)

    def _write(self, epoch: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, epoch)
        self._writer.flush()

    def on_end(self, loop: Loop, finished: bool) -> None:
        """Close the files."""
        if self._writer is not None:
            self._writer.close()


LOGS = {"csv": CsvLog, "tensorboard": TensorBoardLog}
"""The logs by name."""
