"""Diagnostics and their results: numbers with text, and curves to plot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

Curve = tuple[Sequence[float], Sequence[float]]
"""x positions and values."""
Log = list[dict[str, Any]]
"""Measurements of a diagnostic during training, each with "epoch" (0 before training)."""


@dataclass(frozen=True)
class Probe:
    """The data for diagnostics of a model.

    Args:
        inputs: The model's arguments: (x, ...) for sequences, x [B, T, F] without padding; (x,) for
            rows of numbers, x [B, F]; (x, graph, ...) for graphs.
        loss: Maps a prediction [B, O] (for sequences, at the last step) to the summed loss of the
            batch; None without targets.
    """

    inputs: tuple[Any, ...]
    loss: Callable[[Tensor], Tensor] | None = None


@dataclass(frozen=True)
class Panel:
    """Curves on shared axes.

    Args:
        curves: Curves by name.
        x: Name of the x axis, with unit.
        y: Name of the y axis, with unit.
        log: Names of logarithmic axes.
        low: Lower end of the y axis; below the smallest value if None.
    """

    curves: Mapping[str, Curve]
    x: str
    y: str
    log: Literal["", "x", "y", "xy"] = ""
    low: float | None = None


@dataclass(frozen=True)
class Matrix:
    """Counts of pairs, shaded by their share of the row.

    Args:
        counts: Integers, row by row.
        names: Names of rows and columns.
        x: Meaning of the columns.
        y: Meaning of the rows.
    """

    counts: Sequence[Sequence[int]]
    names: Sequence[str]
    x: str
    y: str


@dataclass(frozen=True)
class Section:
    """Findings of a diagnostic on a trained model.

    Args:
        title: Its heading.
        about: Description in one or two sentences.
        numbers: Names and values.
        panels: Plots, if any: panels only, or one matrix.
        head: Names of the columns of a table, if there is one.
        rows: Its rows.
        found: Problems and remedies, one or two sentences each; empty if there are none.
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
    """A diagnostic. Add a new one as an entry of ``registry.DIAGNOSTICS``.

    Args:
        about: Description of the measurement.
        fits: Whether it applies to a class of models.
        measure: Measures a model with a probe, for a line of a log: numbers, tensors, lists and
            strings.
        describe: Analyses a trained model and its log.
    """

    about: str
    fits: Callable[[type], bool]
    measure: Callable[[Any, Probe], dict[str, Any]]
    describe: Callable[[Any, Probe, Log], Section]


def steps_of(values: Sequence[float] | Tensor, first: int = 0) -> Curve:
    """Return a curve of values at the integers from ``first`` on.

    Example:
        >>> steps_of([0.5, 0.25])
        ([0.0, 1.0], [0.5, 0.25])
    """
    shown = values.tolist() if isinstance(values, Tensor) else list(values)
    return [float(first + n) for n in range(len(shown))], shown
