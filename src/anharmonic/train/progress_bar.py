"""ProgressBar of a run on standard error: a bar on a terminal, else a line now and then.

Imported by ``fit`` only, because it needs Lightning.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from tqdm import tqdm

from anharmonic.train.estimate import in_words
from anharmonic.train.module import TrainingModule
from anharmonic.train.notices import Notices
from anharmonic.train.run import Run
from anharmonic.train.training_state import TrainingState

_LINES = 20
# Seconds of steps from which the whole is estimated, and how long that must be to be worth a line.
_WATCHED, _LONG = 2.0, 30.0


class ProgressBar(Callback):
    """Shows model, task, epoch, training loss and validation metric.

    One bar covers the whole run, so that its remaining time is the run's.

    Args:
        run: The run.
        state: Where the validation values are.
    """

    def __init__(self, run: Run, state: TrainingState) -> None:
        self._run = run
        self._state = state
        self._bar: Any = None
        self._notices = Notices(run)
        self._title = f"{run.model} on {run.task}"
        self._steps = self._lines = 0
        self._total = 1
        self._first_step = 0
        self._began = self._warm = time.monotonic()
        self._estimated = False

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Says that a run goes on; what it resumes from is loaded by now."""
        done = len(self._state.curve["epoch"])
        if done and trainer.is_global_zero:
            text = f"Going on after epoch {done} of {self._run.epochs} ({self._title})."
            print(text, file=sys.stderr, flush=True)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Opens the bar where a resumed run stands."""
        self._total = self._run.epochs * int(trainer.num_training_batches)
        self._steps = self._first_step = trainer.current_epoch * int(trainer.num_training_batches)
        self._lines = self._steps * _LINES // self._total
        self._began = time.monotonic()
        if trainer.is_global_zero and sys.stderr.isatty():
            self._bar = tqdm(
                total=self._total,
                initial=self._steps,
                desc=self._title,
                unit="step",
                dynamic_ncols=True,
                smoothing=0.1,
            )

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Counts a step."""
        self._steps += 1
        if not self._estimated:
            self._estimate(trainer)
        if self._bar is not None:
            if self._bar.update():
                self._bar.set_postfix_str(self._numbers(trainer, pl_module), refresh=False)
        elif batch_idx + 1 < trainer.num_training_batches and self._crosses_a_line():
            # (The line of an epoch's last step waits for the epoch's validation.)
            self._line(trainer, pl_module)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Shows the new validation value, and says what looks wrong."""
        if trainer.is_global_zero and (text := self._notices.of(self._state.curve)):
            tqdm.write(text, file=sys.stderr)
        if self._bar is not None:
            self._bar.set_postfix_str(self._numbers(trainer, pl_module))
        elif self._crosses_a_line():
            self._line(trainer, pl_module)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Closes the bar."""
        self._close()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Closes the bar."""
        self._close()

    def _estimate(self, trainer: Trainer) -> None:
        """Says once how long the steps will take, if that is long; a bar shows it anyway."""
        now, done = time.monotonic(), self._steps - self._first_step
        if done == 1:  # the first step loads and allocates
            self._warm = now
        elif now - self._warm >= _WATCHED:
            self._estimated = True
            steps = self._total - self._first_step
            seconds = (now - self._warm) / (done - 1) * steps
            if seconds > _LONG and self._bar is None and trainer.is_global_zero:
                text = f"{self._title}: {in_words(seconds)} for {steps} steps."
                print(text, file=sys.stderr, flush=True)

    def _crosses_a_line(self) -> bool:
        """Whether a further twentieth of the steps is done since the last line."""
        before, self._lines = self._lines, self._steps * _LINES // self._total
        return self._lines > before

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _numbers(self, trainer: Trainer, pl_module: LightningModule) -> str:
        assert isinstance(pl_module, TrainingModule)
        state = self._state
        epoch = min(trainer.current_epoch + 1, self._run.epochs)
        text = f"epoch {epoch}/{self._run.epochs}"
        if not math.isnan(pl_module.last_loss):  # (on a GPU it is read now and then only)
            text += f", loss {pl_module.last_loss:.4g}"
        if state.best_epoch and "valid" in state.curve:
            text += f", valid {state.metric} {state.curve['valid'][-1]:.4g}"
            text += f" (best {state.best_valid:.4g}, epoch {state.best_epoch})"
        return text

    def _line(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero:
            return
        share = 100 * self._steps // self._total
        took = time.monotonic() - self._began
        left = took / (self._steps - self._first_step) * (self._total - self._steps)
        numbers = self._numbers(trainer, pl_module)
        line = f"{self._title} {share:3d} %: {numbers}; {took:.0f} s, {left:.0f} s left"
        tqdm.write(line, file=sys.stderr)
        sys.stderr.flush()
