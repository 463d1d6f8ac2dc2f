"""One-line notices on a training and its result: has the model learned?"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise

from anharmonic.data.base import counted
from anharmonic.data.metrics import PERCENT, accuracy_interval
from anharmonic.train.options import model_option_parameters
from anharmonic.train.results import Result
from anharmonic.train.run import Run

# Ratio of an epoch's largest gradient to the run's median; rarely above 20 in stable training. A
# single step with 20,000 ended a coRNN's training on the adding problem.
_SPIKE = 100.0
# Rise of an epoch's mean loss above the minimum, relative to the total gain and to the minimum. A
# loss that has hardly fallen fluctuates by more than its gain.
_JUMP, _JUMP_OF_LOSS = 0.5, 0.1


LEAST = 0.05
"""Share of the way from the baseline to a perfect prediction that counts as learning."""


def has_learned(
    value: float, baseline: float, metric: str, higher_is_better: bool, spread: float = 0.0
) -> bool:
    """Whether a value beats the baseline by a relevant margin and more than its own spread.

    Args:
        value: The model's value.
        baseline: The baseline's value.
        metric: Name of the metric, or "loss".
        higher_is_better: Whether larger values are better.
        spread: Variation of the value, for example its standard deviation over seeds.

    Example:
        >>> has_learned(56.0, 55.0, "accuracy", True), has_learned(0.5, 1.0, "mse", False)
        (False, True)
    """
    perfect = 100.0 if metric in PERCENT else float(higher_is_better)
    gain = value - baseline if higher_is_better else baseline - value
    return gain > max(LEAST * abs(perfect - baseline), spread)


class Notices:
    """Checks the curves after every epoch.

    Example:
        >>> notices = Notices(Run("adding", "LEM"))
        >>> curve = {"epoch": [1, 2], "train_loss": [1.0, 0.9]}
        >>> notices.of(curve | {"grad_norm": [0.1, 0.1], "grad_norm_max": [0.2, 0.3]})
        ''
        >>> notices.of(curve | {"grad_norm": [0.1, 0.1], "grad_norm_max": [0.2, 1830.0]})[:44]
        'Epoch 2: one gradient has norm 1.83e+03, the'
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._said: set[str] = set()

    def of(self, curve: Mapping[str, Sequence[float]]) -> str:
        """Return a notice on the newest epoch, or "" for none and for a repeated kind."""
        found = {"spike": self._spike(curve), "jump": self._jump(curve)}
        new = [text for kind, text in found.items() if text and kind not in self._said]
        self._said |= {kind for kind, text in found.items() if text}
        return "\n".join(new)

    def _spike(self, curve: Mapping[str, Sequence[float]]) -> str:
        if "grad_norm" not in curve:
            return ""
        usual, largest = statistics.median(curve["grad_norm"]), curve["grad_norm_max"][-1]
        clip = self._run.clip_norm
        if min(largest, math.inf if clip is None else clip) <= _SPIKE * usual:
            return ""
        remedy = "set clip_norm" if clip is None else f"lower clip_norm ({clip:g})"
        return (
            f"Epoch {curve['epoch'][-1]:.0f}: one gradient has norm {largest:.3g}, the median is "
            f"{usual:.3g}. Such a step can undo the training: {remedy} to about "
            f"{10 * usual:.1g}, or lower lr ({self._run.lr:g})."
        )

    def _jump(self, curve: Mapping[str, Sequence[float]]) -> str:
        losses = curve["train_loss"]
        if len(losses) < 3:
            return ""
        least = min(losses)
        gained = losses[0] - least
        if gained <= 0 or losses[-1] - least < max(_JUMP * gained, _JUMP_OF_LOSS * abs(least)):
            return ""
        return (
            f"Epoch {curve['epoch'][-1]:.0f}: the training loss jumped from {least:.3g} to "
            f"{losses[-1]:.3g}. Likely the learning rate is too high: lower lr "
            f"({self._run.lr:g}), let it fall (schedule), or average the weights (ema_decay)."
        )


def interval(result: Result) -> tuple[float, float, str] | None:
    """Return the 95 % interval of a test accuracy and what it counts; None for other metrics.

    The answers of one sequence depend on each other, so the interval counts sequences if every step
    has an answer.
    """
    if result.metric != "accuracy" or not result.tested:
        return None
    several = result.tested_sequences is not None
    count = result.tested_sequences or result.tested
    low, high = accuracy_interval(result.test, count)
    return low, high, counted(count, "sequence" if several else "answer")


def not_learned(result: Result) -> str:
    """Return a notice with remedies if a model did not learn its training data, or "".

    The check compares the training loss of the chosen or last epoch with that of the best
    prediction that ignores the inputs.

    Args:
        result: Result of a finished run.

    Example:
        >>> import tempfile
        >>> from anharmonic.train import Run, RunEnvironment, fit
        >>> run = Run("digits", "LEM", model_options={"hidden_size": 4}, epochs=1)
        >>> environment = RunEnvironment(out=tempfile.mkdtemp(), progress=False)
        >>> result = fit(run, environment)
        >>> not_learned(result)
        ''
    """
    curve, run = result.curve, result.run
    if "train_loss" not in curve:  # fitted in one pass
        return ""
    chosen = curve["epoch"].index(result.best_epoch)
    loss = min(curve["train_loss"][chosen], curve["train_loss"][-1])
    # (The mean over a single epoch says little about its end.)
    if result.trivial_loss is None or result.epochs_run < 2:
        return ""
    if has_learned(loss, result.trivial_loss, "loss", higher_is_better=False):
        return ""
    step = ", a smaller dt" if "dt" in model_option_parameters(run.model) else ""
    advice = f"try a lower lr than {run.lr:g}{step}, or train longer"
    if all(after < before for before, after in pairwise(curve["train_loss"])):
        advice = f"the loss still falls: train longer, or try a lower lr than {run.lr:g}{step}"
    return (
        f"the model did NOT learn its training data (loss {loss:.3g}, baseline "
        f"{result.trivial_loss:.3g}): {advice}"
    )


def no_stream(run: Run) -> str:
    """Return why a trained model cannot run sample by sample and what to do; "" if it can."""
    if run.model_options.get("bidirectional") is not True:
        return ""
    return "not possible, because the model reads in both directions: train with --streaming"
