"""Pictures of a comparison: points (ours, reported) and learning curves."""

import itertools
import math
import textwrap
from collections.abc import Iterable
from typing import Any

from anharmonic import pages
from anharmonic.pages import COLOURS
from anharmonic.train import Result
from anharmonic_papers.report.compare import Line
from anharmonic_papers.report.text import reported
from anharmonic_papers.tables.base import Table

WIDE = 30
"""The ratio of the largest to the smallest value from which an axis is logarithmic."""
MOST = 6
"""The largest number of curves in a picture."""


def points(table: Table, lines: Iterable[Line]) -> Any | None:
    """Draw our and the reported values on one axis, a row per model; None if no row ran in full.

    Our values have an interval (see ``Ours.interval``). Rows on a reduced budget are left out. The
    table defines the unit, baseline and direction.
    """
    shown = [ln for ln in lines if ln.row.value is not None or ln.full is not None][::-1]
    ours = {k: ln.full for k, ln in enumerate(shown) if ln.full and math.isfinite(ln.full.mean)}
    if not ours:
        return None
    theirs = {k: ln.row.value for k, ln in enumerate(shown) if ln.row.value is not None}
    drawn, [axis] = pages.panels(1, height=0.9 + 0.27 * len(shown))
    means = [one.mean for one in ours.values()]
    ends = [one.interval for one in ours.values()]
    around = [(one.mean - one.interval[0], one.interval[1] - one.mean) for one in ours.values()]
    style = {"fmt": "o", "color": COLOURS[0], "label": "ours"}
    axis.errorbar(means, [*ours], xerr=[*zip(*around, strict=True)], **style)
    if theirs:
        style = {"mfc": "none", "color": COLOURS[1], "label": "reported"}
        axis.plot([*theirs.values()], [*theirs], "D", **style)
    values = [*theirs.values(), *itertools.chain(*ends)]
    if 0 < WIDE * min(values) < max(values):
        axis.set_xscale("log")
    if table.baseline:
        axis.axvline(table.baseline[0], color="0.5", ls=":", label=table.baseline[1])
    axis.set_yticks(range(len(shown)), [line.row.label for line in shown])
    axis.set_ylim(-0.6, len(shown) - 0.4)
    unit = f", {table.unit}" if table.unit else ""
    axis.set_xlabel(f"{table.metric}{unit}, {table.direction} is better")
    drawn.legend(loc="outside upper right", ncols=3, frameon=False)
    return drawn


def in_words(lines: Iterable[Line]) -> str:
    """Describe the picture of ``points`` as alternative text."""
    said = []
    for line in lines:
        parts = [f"ours {line.full.text}"] if line.full else []
        parts += [f"reported {reported(line.row)}"] if line.row.value is not None else []
        said += [f"{line.row.label}: {', '.join(parts)}"] if parts else []
    return "; ".join(said)


def curves(table: Table, lines: Iterable[Line]) -> list[Any]:
    """Draw the table's measure against epochs: the median and range over seeds.

    Each curve is labelled at its end. With ``Table.quartiles`` the band lies between the quartiles.
    Labels mark runs on a reduced budget. A picture shows at most six rows. Runs of fewer than three
    epochs are not drawn.
    """
    measure = table.measure if table.measure != "test" else "valid"
    runs: dict[str, list[tuple[list[float], list[float]]]] = {}
    for line in lines:
        for ours in line.ours:
            name = f"{line.row.label} [{ours.budget}]" if ours.budget else line.row.label
            tracks = [_finite(result, measure, table.scale) for result in ours.results]
            drawable = [([e for e, _ in track], [v for _, v in track]) for track in tracks if track]
            runs[textwrap.fill(name, 22)] = drawable
    said = f"{table.metric}, validation" if measure == "valid" else table.metric
    level = (textwrap.fill(table.baseline[1], 22), table.baseline[0]) if table.baseline else None
    named = [pair for pair in runs.items() if pair[1]]
    parts = [dict(named[first : first + MOST]) for first in range(0, len(named), MOST)]
    drawn = [
        pages.learning_curves(part, y=said, level=level, quartiles=table.quartiles, width=7.5)
        for part in parts
    ]
    return [figure for figure in drawn if figure is not None]


def _finite(result: Result, measure: str, scale: float) -> list[tuple[float, float]]:
    """Return the finite points of a curve."""
    return [
        (float(epoch), value * scale)
        for epoch, value in zip(result.curve["epoch"], result.curve.get(measure, []), strict=False)
        if value is not None and math.isfinite(value)
    ]
