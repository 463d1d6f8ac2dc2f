"""Pictures of a comparison: points (ours, reported) and learning curves."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from anharmonic import pages
from anharmonic.pages import COLOURS
from anharmonic.train import Result
from anharmonic_papers.report.compare import Line, Ours, reported
from anharmonic_papers.tables.base import Table

WIDE = 30
"""An axis is logarithmic where its largest value is so many times the smallest."""


def points(table: Table, lines: Iterable[Line]) -> Any | None:
    """Reported and ours on one axis, a row per model; None if no row ran in full.

    Ours carries its interval (see ``Ours.interval``).

    Args:
        table: Gives unit, baseline and direction.
        lines: The rows; those on a reduced budget are left out.

    Returns:
        A figure of matplotlib, for ``pages.image``.
    """
    shown = [ln for ln in lines if ln.row.value is not None or ln.full is not None][::-1]
    ours = {k: ln.full for k, ln in enumerate(shown) if ln.full and math.isfinite(ln.full.mean)}
    if not ours:
        return None
    theirs = {k: ln.row.value for k, ln in enumerate(shown) if ln.row.value is not None}
    drawn, [axis] = pages.panels(1, height=0.9 + 0.27 * len(shown))
    means = [one.mean for one in ours.values()]
    ends = [one.interval for one in ours.values()]
    around = [
        [mean - low for mean, (low, _) in zip(means, ends, strict=True)],
        [high - mean for mean, (_, high) in zip(means, ends, strict=True)],
    ]
    axis.errorbar(means, [*ours], xerr=around, fmt="o", color=COLOURS[0], label="ours")
    axis.plot([*theirs.values()], [*theirs], "D", mfc="none", color=COLOURS[1], label="reported")
    log = _is_wide([*theirs.values(), *itertools.chain(*ends)])
    axis.set_xscale("log" if log else "linear")
    if table.baseline:
        axis.axvline(table.baseline[0], color="0.5", ls=":", label=table.baseline[1])
    axis.set_yticks(range(len(shown)), [line.row.label for line in shown])
    axis.set_ylim(-0.6, len(shown) - 0.4)
    unit = f", {table.unit}" if table.unit else ""
    axis.set_xlabel(f"{table.metric}{unit}, {table.direction} is better")
    drawn.legend(loc="outside upper right", ncols=3, frameon=False)
    return drawn


def in_words(lines: Iterable[Line]) -> str:
    """What ``points`` shows, for those who cannot see it.

    Args:
        lines: The rows.
    """
    said = []
    for line in lines:
        parts = [f"ours {line.full.text}"] if line.full else []
        parts += [f"reported {reported(line.row)}"] if line.row.value is not None else []
        said += [f"{line.row.label}: {', '.join(parts)}"] if parts else []
    return "; ".join(said)


def curves(table: Table, lines: Iterable[Line]) -> Any | None:
    """The table's measure against epochs, one colour per model; None if nothing ran.

    One line per seed, or with ``Table.quartiles`` the median in a band between the quartiles. Runs
    on a reduced budget are dashed and named so.

    Args:
        table: Gives the measure.
        lines: The rows.

    Returns:
        A figure of matplotlib, for ``pages.image``.
    """
    measure = table.measure if table.measure != "test" else "valid"
    lines = list(lines)
    if not any(line.full or line.reduced for line in lines):
        return None
    drawn, [axis] = pages.panels(1, height=3.4)
    values: list[float] = []
    # Every row that can run has its colour, whether it ran or not: no later result changes it.
    colours = zip((ln for ln in lines if ln.row.run is not None), itertools.cycle(COLOURS))
    for line, colour in colours:
        runs = [(line.row.label, "-", line.full)] if line.full else []
        runs += [(f"{line.row.label} [{ours.budget}]", "--", ours) for ours in line.reduced]
        for name, dash, ours in runs:
            values += _draw(axis, table, ours, measure, color=colour, ls=dash, label=name)
    if not values:
        return None
    if table.baseline:
        axis.axhline(table.baseline[0], color="0.5", ls=":", label=table.baseline[1])
    said = f"{table.metric} on the validation set" if measure == "valid" else table.metric
    said += ", median and quartiles of the seeds" if table.quartiles else ""
    axis.set(xlabel="epoch", ylabel=said, yscale="log" if _is_wide(values) else "linear")
    axis.xaxis.get_major_locator().set_params(integer=True)
    drawn.legend(loc="outside lower center", ncols=3, frameon=False)
    return drawn


def _draw(axis: Any, table: Table, ours: Ours, measure: str, **style: Any) -> list[float]:
    """Draws the curves of a row; returns their values."""
    tracks = [_finite(result, measure, table.scale) for result in ours.results]
    if not table.quartiles:
        for track in tracks:
            axis.plot(*zip(*track, strict=True), lw=1.3, **style) if track else None
            style.pop("label", None)
        return [value for track in tracks for _, value in track]
    by_epoch: dict[float, list[float]] = {}
    for epoch, value in itertools.chain(*tracks):
        by_epoch.setdefault(epoch, []).append(value)
    bands = [
        statistics.quantiles(by_epoch[e], n=4, method="inclusive")
        if len(by_epoch[e]) > 1
        else by_epoch[e] * 3
        for e in sorted(by_epoch)
    ]
    if bands:
        low, middle, high = zip(*bands, strict=True)
        axis.plot(sorted(by_epoch), middle, lw=1.5, **style)
        axis.fill_between(sorted(by_epoch), low, high, color=style["color"], alpha=0.16, lw=0)
    return [value for band in bands for value in band]


def _finite(result: Result, measure: str, scale: float) -> list[tuple[float, float]]:
    """The points of a curve, without those that are not finite."""
    return [
        (float(epoch), value * scale)
        for epoch, value in zip(result.curve["epoch"], result.curve.get(measure, []), strict=False)
        if value is not None and math.isfinite(value)
    ]


def _is_wide(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) > WIDE * min(values)
