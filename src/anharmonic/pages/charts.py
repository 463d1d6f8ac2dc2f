"""Charts of results: learning curves of several models, predicted against true values.

Each chart is a narrow figure, so that a page can show two side by side, or one on a phone.
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from anharmonic.pages.plots import COLOURS, DASHES, Curve, panels

WIDTH, _HEIGHT = 4.4, 3.1
"""Width of a figure in inches, chosen for readable text on a phone."""
_GAP = 0.075
_MOST_POINTS = 600


def learning_curves(
    runs: Mapping[str, Sequence[Curve]],
    *,
    y: str,
    level: tuple[str, float] | None = None,
    quartiles: bool = False,
    width: float = WIDTH,
) -> Any:
    """Plot the median over runs and the range from smallest to largest, by epoch.

    The y axis is logarithmic if positive values span more than a factor of 30. For more than six
    models draw several figures.

    Args:
        runs: The curves of every model's runs, as epochs and values.
        y: Name of the values.
        level: Name and value of a horizontal line, such as the baseline.
        quartiles: Whether the band shows the quartiles of the runs instead.
        width: Width of the figure in inches.

    Returns:
        The figure, or None if no curve has three epochs.
    """
    found = {name: _band(curves, quartiles) for name, curves in runs.items() if curves}
    if not any(len(band[0]) >= 3 for band in found.values()):
        return None
    figure, (axes,) = panels(1, width=width, height=_HEIGHT)
    ends: list[tuple[float, str, str]] = []
    styles = zip(itertools.cycle(COLOURS), itertools.cycle(DASHES), strict=False)
    for (name, (at, low, middle, high)), (colour, dash) in zip(found.items(), styles, strict=False):
        axes.fill_between(at, low, high, color=colour, alpha=0.16, lw=0)
        axes.plot(at, middle, color=colour, ls=dash, lw=1.6)
        ends.append((middle[-1], name, colour))
    values = [value for band in found.values() for part in band[1:] for value in part]
    if level is not None:
        axes.axhline(level[1], color="0.45", lw=1, ls=(0, (4, 2)))
        ends.append((level[1], level[0], "0.35"))
        values.append(level[1])
    if min(values) > 0 and max(values) > 30 * min(values):
        axes.set_yscale("log")
    axes.set(xlabel="epoch", ylabel=y)
    axes.margins(x=0.01)
    axes.xaxis.get_major_locator().set_params(integer=True)
    _label(axes, ends)
    return figure


def _band(
    curves: Sequence[Curve], quartiles: bool
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return the epochs that most curves have, with lower end, median and upper end."""
    tables = [dict(zip(at, values, strict=True)) for at, values in curves]
    count = Counter(epoch for table in tables for epoch in table)
    shared = sorted(epoch for epoch, number in count.items() if 2 * number > len(tables))
    low, middle, high = [], [], []
    for epoch in shared:
        values = [table[epoch] for table in tables if epoch in table]
        ends = min(values), max(values)
        if quartiles and len(values) > 1:
            first, _, third = statistics.quantiles(values, n=4, method="inclusive")
            ends = first, third
        low.append(ends[0])
        middle.append(statistics.median(values))
        high.append(ends[1])
    return [float(epoch) for epoch in shared], low, middle, high


def _label(axes: Any, ends: Sequence[tuple[float, str, str]]) -> None:
    """Label every line at its end, avoiding overlaps."""
    to_axes = axes.transData + axes.transAxes.inverted()
    right = axes.get_xlim()[1]
    heights = [float(to_axes.transform((right, value))[1]) for value, _, _ in ends]
    order = sorted(range(len(ends)), key=heights.__getitem__)
    sizes = [_GAP * (1 + ends[index][1].count("\n")) for index in order]
    gaps = [(a + b) / 2 for a, b in itertools.pairwise(sizes)]
    placed = [heights[order[0]]]
    for index, gap in zip(order[1:], gaps, strict=True):
        placed.append(max(heights[index], placed[-1] + gap))
    placed[-1] = min(placed[-1], max(1.0, sum(gaps)))
    for rank in reversed(range(len(gaps))):  # what went above the frame is pushed down again
        placed[rank] = min(placed[rank], placed[rank + 1] - gaps[rank])
    for height, index in zip(placed, order, strict=True):
        _, name, colour = ends[index]
        axes.text(1.02, height, name, color=colour, transform=axes.transAxes, va="center")


def predicted_against_true(true: Sequence[float], predicted: Sequence[float]) -> Any:
    """Plot predicted against true values, with the line of equality.

    Args:
        true: The true values; at most 600 evenly spread ones are drawn.
        predicted: The predictions.
    """
    stride = -(-len(true) // _MOST_POINTS)
    figure, (axes,) = panels(1, width=WIDTH, height=0.85 * WIDTH)
    axes.scatter(true[::stride], predicted[::stride], s=9, color=COLOURS[0], alpha=0.45, lw=0)
    ends = min(*true, *predicted), max(*true, *predicted)
    axes.plot(ends, ends, color="0.3", lw=1)
    axes.annotate(
        "equal", ends[1:] * 2, xytext=(-4, -10), textcoords="offset points", ha="right", color="0.3"
    )
    axes.set(xlabel="true", ylabel="predicted")
    return figure
