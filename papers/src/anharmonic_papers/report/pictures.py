"""Pictures of a comparison as HTML fragments: points (ours, reported) and learning curves.

Words and markers are HTML, lines are SVG that stretches with the page, so that the text keeps its
size on every screen; colours are the page's variables, so that both themes work.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from anharmonic.train import Result
from anharmonic_papers.report.compare import Line, Ours, reported
from anharmonic_papers.tables.base import Table

COLOURS = 7
"""How many line colours the page's style defines."""


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis that maps values to 0 .. 100 (percent of the picture).

    Args:
        low: Value at 0.
        high: Value at 100; above ``low``.
        log: Whether it is logarithmic; then ``low`` > 0.

    Example:
        >>> Axis(1.0, 100.0, log=True).at(10.0)
        50.0
    """

    low: float
    high: float
    log: bool = False

    @classmethod
    def around(cls, values: Sequence[float], bounds: tuple[float, float] | None = None) -> Axis:
        """An axis that shows all values with some room; logarithmic if they span a factor of 30.

        Args:
            values: At least one finite value.
            bounds: What the axis never passes, for example 0 and 100 percent.
        """
        low, high = min(values), max(values)
        if low > 0 and 30 < high / low < 1e30:
            room = (high / low) ** 0.06
            return cls(low / room, high * room, log=True)
        if 0 < low < 0.35 * high:
            low = 0.0
        room = 0.08 * (high - low) or abs(high) * 0.1 or 1.0
        low, high = low - room, high + room
        if bounds is not None:
            low, high = max(low, bounds[0]), min(high, bounds[1])
        return cls(low, high) if high > low else cls(low - 1.0, high + 1.0)

    def at(self, value: float) -> float:
        """Where a value lies, in percent; values outside lie on the edge."""
        value = min(max(value, self.low), self.high)
        if self.log:
            return 100 * math.log(value / self.low) / math.log(self.high / self.low)
        return 100 * (value - self.low) / (self.high - self.low)

    def ticks(self, number: int = 5) -> list[float]:
        """About ``number`` round values on the axis."""
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            stride = max(1, round((last - first) / number))
            powers = [10.0**k for k in range(first, last + 1, stride)]
            if len(powers) >= 2:
                return powers
            coarse = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
            return [v for v in coarse if self.low <= v <= self.high]
        raw = (self.high - self.low) / number
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


def label(value: float) -> str:
    """A tick's text.

    Example:
        >>> label(0.00001), label(97.5), label(100.0), label(0.0)
        ('1e-5', '97.5', '100', '0')
    """
    if value and not 1e-3 <= abs(value) < 1e4:
        mantissa, exponent = f"{value:e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:.6g}"


def _bounds(table: Table) -> tuple[float, float] | None:
    return (0.0, 100.0) if table.unit == "%" else (0.0, math.inf)


def points(table: Table, lines: Iterable[Line]) -> str:
    """Reported and ours on one axis, a row per model; empty if no row has a number.

    Reduced runs are left out. Ours carries its interval (see ``Ours.interval``).
    """
    shown = [ln for ln in lines if ln.row.value is not None or ln.full is not None]
    values = [ln.row.value for ln in shown if ln.row.value is not None]
    for line in shown:
        if line.full is not None:
            values += [line.full.mean, *line.full.interval]
    values = [v for v in values if math.isfinite(v)]
    if not values:
        return ""
    base = [table.baseline[0]] if table.baseline else []
    axis = Axis.around(values + base, _bounds(table))
    grid = "".join(f'<u style="left:{axis.at(v):.2f}%"></u>' for v in base)
    grid += "".join(f'<i style="left:{axis.at(t):.2f}%"></i>' for t in axis.ticks())
    out = []
    for line in shown:
        marks = ""
        if line.full is not None and math.isfinite(line.full.mean):
            low, high = (axis.at(v) for v in line.full.interval)
            if high - low > 0:
                marks += f'<s style="left:{low:.2f}%;width:{high - low:.2f}%"></s>'
            marks += f'<b class="ours" style="left:{axis.at(line.full.mean):.2f}%"></b>'
        if line.row.value is not None:
            marks += f'<b class="theirs" style="left:{axis.at(line.row.value):.2f}%"></b>'
        said = {}
        if line.full is not None:
            said["mine"] = f"ours {line.full.text}"
        if line.row.value is not None:
            said["printed"] = f"reported {reported(line.row)}"
        words = ", ".join(said.values())
        parts = " ".join(f'<span class="{k}">{escape(v)}</span>' for k, v in said.items())
        kind = "" if line.full is not None else ' class="quiet"'
        out.append(
            f'<div role="listitem"{kind}><span class="name">{escape(line.row.label)}</span>'
            f'<span class="track" role="img" aria-label="{escape(words)}">{grid}{marks}</span>'
            f'<span class="said">{parts}</span></div>'
        )
    scale = "".join(
        f'<i style="left:{axis.at(t):.2f}%">{escape(label(t))}</i>' for t in axis.ticks()
    )
    note = " (log scale)" if axis.log else ""
    unit = f", {table.unit}" if table.unit else ""
    caption = f"{table.metric}{unit}{note}, {table.direction} is better"
    if table.baseline:
        caption += f"; dotted: {table.baseline[1]}"
    return (
        f'<figure class="points"><div role="list">{"".join(out)}</div>'
        f'<div class="foot"><span></span><span class="scale">{scale}</span><span></span></div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def curves(table: Table, lines: Iterable[Line]) -> str:
    """The table's measure against epochs, one colour per model; empty if nothing ran.

    One line per seed, or with ``Table.quartiles`` the median in a band between the quartiles. Runs
    on a reduced budget are dashed and named so.
    """
    measure = table.measure if table.measure != "test" else "valid"
    drawn: list[tuple[str, int, bool, Ours]] = []
    # Every row that can run has its colour, whether it ran or not: no later result changes it.
    for place, line in enumerate(ln for ln in lines if ln.row.run is not None):
        if line.full:
            drawn.append((line.row.label, place % COLOURS, False, line.full))
        for ours in line.reduced:
            name = f"{line.row.label} [{ours.budget}]"
            drawn.append((name, place % COLOURS, True, ours))
    tracks = [
        (colour, dashed, track)
        for _, colour, dashed, ours in drawn
        for track in (_quartiles if table.quartiles else _by_seed)(ours.results, measure, table)
    ]
    values = [v for _, _, track in tracks for _, *levels in track for v in levels]
    if not values:
        return ""
    base = [table.baseline[0]] if table.baseline else []
    y = Axis.around([*values, *base], _bounds(table))
    last = max(point[0] for _, _, track in tracks for point in track)
    first = min(point[0] for _, _, track in tracks for point in track)
    x = Axis(first, last) if last > first else Axis(first - 1, first + 1)
    body = "".join(
        f'<line class="grid" x1="0" x2="100" y1="{100 - y.at(t):.2f}" y2="{100 - y.at(t):.2f}"/>'
        for t in y.ticks()
    )
    for level in base:
        body += (
            f'<line class="base" x1="0" x2="100" y1="{100 - y.at(level):.2f}" '
            f'y2="{100 - y.at(level):.2f}"/>'
        )
    dots = ""
    for colour, dashed, track in tracks:
        path = " ".join(f"{x.at(e):.2f},{100 - y.at(v):.2f}" for e, v, *_ in track)
        if table.quartiles:
            edge = [(e, low) for e, _, low, _ in track] + [(e, high) for e, _, _, high in track][
                ::-1
            ]
            around = " ".join(f"{x.at(e):.2f},{100 - y.at(v):.2f}" for e, v in edge)
            body += f'<polygon class="band c{colour}" points="{around}"/>'
        kind = f"c{colour}{' dashed' * dashed}"
        body += f'<polyline class="{kind}" points="{path}"/>'
        if track:
            epoch, value, *_ = track[-1]
            dots += (
                f'<b class="end c{colour}" '
                f'style="left:{x.at(epoch):.2f}%;bottom:{y.at(value):.2f}%"></b>'
            )
    left = "".join(f'<i style="bottom:{y.at(t):.2f}%">{escape(label(t))}</i>' for t in y.ticks())
    whole = [t for t in x.ticks() if t == int(t)] or [first]
    below = "".join(f'<i style="left:{x.at(t):.2f}%">{escape(label(t))}</i>' for t in whole)
    legend = "".join(
        f'<span><b class="key c{colour}{" dashed" * dashed}"></b>{escape(name)}</span>'
        for name, colour, dashed, _ in drawn
    )
    if base:
        meaning = table.baseline[1] if table.baseline else ""
        legend += f'<span><b class="key base"></b>{escape(meaning)}</span>'
    note = ", log scale" if y.log else ""
    said = f"{table.metric} on the validation set" if measure == "valid" else table.metric
    said += ", median and quartiles of the seeds" if table.quartiles else ""
    return (
        '<figure class="curves"><div class="plot">'
        f'<div class="yaxis">{left}</div><div class="area">'
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" '
        f'aria-label="learning curves">{body}</svg>{dots}</div>'
        f'<div class="xaxis">{below}</div></div>'
        f'<div class="legend">{legend}</div>'
        f"<figcaption>{escape(said)}{note}, against epochs</figcaption></figure>"
    )


Track = list[tuple[float, ...]]
"""Points of a line: epoch and value, with a band its lower and upper edge too."""


def _by_seed(results: Sequence[Result], measure: str, table: Table) -> list[Track]:
    """One line per seed."""
    return [
        [*_finite(result.curve["epoch"], result.curve.get(measure, []), table.scale)]
        for result in results
    ]


def _quartiles(results: Sequence[Result], measure: str, table: Table) -> list[Track]:
    """One line: median, lower and upper quartile over the seeds that have the epoch."""
    by_epoch: dict[float, list[float]] = {}
    for track in _by_seed(results, measure, table):
        for epoch, value in track:
            by_epoch.setdefault(epoch, []).append(value)
    out: Track = []
    for epoch, values in sorted(by_epoch.items()):
        low, middle, high = (
            statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
        )
        out.append((epoch, middle, low, high))
    return [out]


def _finite(
    epochs: Sequence[float], values: Sequence[float | None], scale: float
) -> list[tuple[float, float]]:
    return [
        (float(e), v * scale)
        for e, v in zip(epochs, values, strict=False)
        if v is not None and math.isfinite(v)
    ]
