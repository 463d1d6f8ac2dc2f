"""Callbacks of a training: progress, logs and the caller's own function."""

from __future__ import annotations

import csv
import importlib.util
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import torch

from anharmonic import _checks
from anharmonic._files import write_atomically
from anharmonic.train import results
from anharmonic.train.loop import Callback, Loop
from anharmonic.train.notices import Notices
from anharmonic.train.optim import learning_rate

_LINES = 20
# Seconds of steps for the estimate of the total, and the smallest total worth a line.
_WATCHED, _LONG = 2.0, 30.0

OnEpochEnd = Callable[[int, dict[str, float]], None]
"""Called with the epoch, from 1, and its values: "train_loss", "valid", "valid_loss" ..."""


class Progress(Callback):
    """Shows model, task, epoch, training loss and validation metric on standard error.

    On a terminal this is one bar for the whole run, elsewhere a line from time to time.
    """

    def __init__(self) -> None:
        self._bar: Any = None

    def on_start(self, loop: Loop) -> None:
        """Report a resumed run, and open the bar at its position."""
        run = loop.run
        self._title, self._notices = f"{run.model} on {run.task}", Notices(run)
        self._first_step, self._total = loop.step, run.epochs * loop.steps_per_epoch
        self._lines = loop.step * _LINES // self._total
        self._began = self._warm = time.monotonic()
        self._estimated = False
        if loop.epoch:
            say(f"Going on after epoch {loop.epoch} of {run.epochs} ({self._title}).")
        if sys.stderr.isatty():
            from tqdm import tqdm  # absent where only the extra "sklearn" is installed

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
            # (The line for an epoch's last step follows its validation.)
            self._line(loop, loop.epoch + 1)

    def on_epoch_end(self, loop: Loop) -> None:
        """Show the validation value and print notices."""
        text = self._notices.of(loop.curve)
        if self._bar is not None:
            if text:
                self._bar.write(text, file=sys.stderr)
            self._bar.set_postfix_str(_numbers(loop, loop.epoch))
            return
        if text:
            say(text)
        if self._crosses_a_line(loop):
            self._line(loop, loop.epoch)

    def on_end(self, loop: Loop, finished: bool) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.close()

    def _estimate(self, loop: Loop) -> None:
        """Print the estimated duration once, if it is long and there is no bar."""
        now, done = time.monotonic(), loop.step - self._first_step
        if done == 1:  # the first step loads and allocates
            self._warm = now
        elif now - self._warm >= _WATCHED:
            self._estimated = True
            steps = self._total - self._first_step
            seconds = (now - self._warm) / (done - 1) * steps
            if seconds > _LONG and self._bar is None:
                # Threads without cores of their own wait for each other.
                load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
                is_slowed = torch.get_num_threads() > 1 and load > 1.5 * (os.cpu_count() or 1)
                hint = " Other programs use the cores: --threads 1 may be faster." * is_slowed
                say(f"{self._title}: {in_words(seconds)} for {steps} steps.{hint}")

    def _crosses_a_line(self, loop: Loop) -> bool:
        """Whether another 5 % of the steps are done since the last line."""
        before, self._lines = self._lines, loop.step * _LINES // self._total
        return self._lines > before

    def _line(self, loop: Loop, epoch: int) -> None:
        took = time.monotonic() - self._began
        left = took / (loop.step - self._first_step) * (self._total - loop.step)
        share = 100 * loop.step // self._total
        numbers = _numbers(loop, epoch)
        say(f"{self._title} {share:3d} %: {numbers}; {took:.0f} s, {left:.0f} s left")


def say(text: str) -> None:
    """Print a line to standard error at once."""
    print(text, file=sys.stderr, flush=True)


def _numbers(loop: Loop, epoch: int) -> str:
    text = f"epoch {epoch}/{loop.run.epochs}"
    if not math.isnan(loop.last_loss):  # (on a GPU it is read from time to time only)
        text += f", loss {loop.last_loss:.4g}"
    if valid := loop.curve.get("valid"):
        kept = valid[loop.chosen_epoch - 1]
        by = ", by loss" if loop.run.select == "loss" else ""
        text += f", valid {loop.task.metric} {valid[-1]:.4g}"
        text += f" (kept: epoch {loop.chosen_epoch} with {kept:.4g}{by})"
    return text


class Reporter(Callback):
    """Calls the caller's function after every epoch, starting with those before a resume."""

    def __init__(self, on_epoch_end: OnEpochEnd) -> None:
        self._call = on_epoch_end

    def on_start(self, loop: Loop) -> None:
        """Report the epochs of earlier sessions."""
        results.report_curve(loop.curve, self._call)

    def on_epoch_end(self, loop: Loop) -> None:
        """Report the epoch."""
        newest = {name: values[-1] for name, values in loop.curve.items() if name != "epoch"}
        self._call(loop.epoch, newest)


class Log(Callback):
    """Writes the curves into a folder after every epoch, and the run before the first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def on_start(self, loop: Loop) -> None:
        """Open the log and write the epochs of earlier sessions."""
        with loop.paused():
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._folder / "run.json", loop.run.to_json(indent=2) + "\n")
            self._open()
            for place in range(loop.epoch):
                self._add(loop, place)

    def on_epoch_end(self, loop: Loop) -> None:
        """Write the epoch, which is already saved."""
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


def check_logger(name: str) -> None:
    """Check that the package of a logger is installed."""
    if name != "tensorboard" or importlib.util.find_spec("tensorboard"):
        return
    expected = "logger='tensorboard' (--logger tensorboard) needs the package tensorboard"
    advice = "run: pip install tensorboard, or choose --logger csv"
    raise ImportError(_checks.message(expected, "an environment without it", advice))


def in_words(seconds: float) -> str:
    """Format a time with suitable precision.

    Example:
        >>> [in_words(s) for s in (4, 45, 200, 5000, 30000)]
        ['a few seconds', 'about 50 s', 'about 3 min', 'about 83 min', 'about 8 h']
    """
    if seconds < 10:
        return "a few seconds"
    if seconds < 60:
        return f"about {max(10, 10 * round(seconds / 10 + 0.4))} s"
    if seconds < 2 * 3600:
        return f"about {round(seconds / 60)} min"
    return f"about {round(seconds / 3600)} h"
