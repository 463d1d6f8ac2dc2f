"""When a model counts as having learned: one rule for test metrics and training losses."""

from __future__ import annotations

from anharmonic.data.metrics import PERCENT

LEAST = 0.05
"""Share of the way from the baseline to a perfect answer that a model has to go."""


def has_learned(
    value: float, baseline: float, metric: str, higher_is_better: bool, spread: float = 0.0
) -> bool:
    """Whether a value is better than the baseline's by more than a little and its own spread.

    Args:
        value: What the model reached.
        baseline: What the trivial answer reaches.
        metric: Name of the metric, or "loss".
        higher_is_better: Whether larger values are better.
        spread: How much the value varies, for example its standard deviation over seeds.

    Example:
        >>> has_learned(56.0, 55.0, "accuracy", True), has_learned(0.5, 1.0, "mse", False)
        (False, True)
    """
    perfect = 100.0 if metric in PERCENT else float(higher_is_better)
    gain = value - baseline if higher_is_better else baseline - value
    return gain > max(LEAST * abs(perfect - baseline), spread)
