"""What a diagnostic is, and what it tells: numbers in words, and curves for somebody to draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

Curve = tuple[Sequence[float], Sequence[float]]
"""Places on the x axis and values."""
Log = list[dict[str, Any]]
"""What a diagnostic measured while a run trained, each with its "epoch" (0 before training)."""


@dataclass(frozen=True)
class Probe:
    """The data a model is looked at with.

    Args:
        inputs: What the model is called with: (x, ...) for sequences, x [B, T, F] and none padded;
            (x,) for rows of numbers, x [B, F]; (x, graph, ...) for graphs.
        loss: From a prediction (sequences: at the last step) [B, O] to the loss of the batch, a
            sum; None where there is no target.
    """

    inputs: tuple[Any, ...]
    loss: Callable[[Tensor], Tensor] | None = None


@dataclass(frozen=True)
class Panel:
    """Curves on the same axes.

    Args:
        curves: By name.
        x: Name of the x axis, with unit.
        y: Name of the y axis, with unit.
        log: Which axes are logarithmic.
        low: Where the y axis begins; below the smallest value if None.
    """

    curves: Mapping[str, Curve]
    x: str
    y: str
    log: Literal["", "x", "y", "xy"] = ""
    low: float | None = None


@dataclass(frozen=True)
class Matrix:
    """Counts of pairs, as dark as they are many in their row.

    Args:
        counts: Whole numbers, row by row.
        names: Of the rows and the columns.
        x: What the columns are.
        y: What the rows are.
    """

    counts: Sequence[Sequence[int]]
    names: Sequence[str]
    x: str
    y: str


@dataclass(frozen=True)
class Section:
    """What a diagnostic says of a trained model.

    Args:
        title: Its heading.
        about: What is shown, in a sentence or two.
        numbers: Names and values.
        panels: What to draw, if anything: panels only, or one matrix.
        head: Names of the columns of a table, if there is one.
        rows: Its rows.
        found: What is wrong and what helps, a sentence or two each; empty where nothing is.
    """

    title: str
    about: str
    numbers: dict[str, str]
    panels: tuple[Panel | Matrix, ...] = ()
    head: tuple[str, ...] = ()
    rows: Sequence[Sequence[str]] = ()
    found: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnostic:
    """A diagnostic. A new one is an entry of ``registry.DIAGNOSTICS``, nothing else.

    Args:
        about: What it measures, in words.
        fits: Whether a class of models has it.
        measure: Measures a model with a probe, for a line of a log: numbers, tensors, lists and
            texts.
        describe: Looks at a trained model more closely, and at what was logged of it.
    """

    about: str
    fits: Callable[[type], bool]
    measure: Callable[[Any, Probe], dict[str, Any]]
    describe: Callable[[Any, Probe, Log], Section]


def steps_of(values: Sequence[float] | Tensor, first: int = 0) -> Curve:
    """A curve of values at the whole numbers from ``first`` on.

    Example:
        >>> steps_of([0.5, 0.25])
        ([0.0, 1.0], [0.5, 0.25])
    """
    shown = values.tolist() if isinstance(values, Tensor) else list(values)
    return [float(first + n) for n in range(len(shown))], shown
