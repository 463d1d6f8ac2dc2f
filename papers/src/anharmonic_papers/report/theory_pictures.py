"""Pictures of statements as SVG: measured curves against their bounds, a panel per statement.

Words are text, numbers stand on the axes, and the two colours (blue, vermilion) and dashes tell
measured from bound apart for every kind of sight, in print too.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import torch
from torch import Tensor

from anharmonic_papers.report.pictures import Axis, label
from anharmonic_papers.theory.statements import Check

WIDTH, HEIGHT = 270, 200
"""Size of a panel in pixels."""

_COLUMNS = 3
_LEFT, _RIGHT, _TOP, _BOTTOM = 42, 14, 46, 34
_MEASURED, _BOUND = "#0072b2", "#d55e00"
_POINTS = 150
_STYLE = (
    "text{font:10px system-ui,sans-serif;fill:#333}.title{font-weight:600;font-size:11px;fill:#111}"
    ".grid{stroke:#ddd}.frame{fill:none;stroke:#888}"
    f".m{{fill:none;stroke:{_MEASURED};stroke-width:1.6}}"
    f".b{{fill:none;stroke:{_BOUND};stroke-width:1.6;stroke-dasharray:5 3}}"
)


def has_curve(check: Check) -> bool:
    """Whether there is something to draw: one curve or a few over steps, layers, times or sizes.

    Matrices, values by node and identities up to rounding are left to the table.

    Example:
        >>> has_curve(Check(torch.tensor(1.0), torch.tensor(2.0)))
        False
    """
    shape = check.measured.shape
    least = 5 if check.places is None else 3
    if len(shape) not in (1, 2) or shape[-1] < least:
        return False
    if len(shape) == 2 and shape[1] <= 2 * shape[0]:
        return False
    by_entry = check.axis.split()[:1] in (["node"], ["entry"], ["column"])
    return not by_entry and bool(check.bound.abs().max() > 1e-10)


def panels(checks: Sequence[Check]) -> str:
    """One SVG with a panel for every check, in order.

    Args:
        checks: Checks with curves, from the register.

    Raises:
        ValueError: If there is none.

    Example:
        >>> from anharmonic_papers.theory import all_statements
        >>> svg = panels([all_statements()["cornn-energy-explicit"].example()])
        >>> svg.count("<polyline")
        2
    """
    if not checks:
        raise ValueError("there must be a curve to draw; got none; pass checks with has_curve")
    rows = -(-len(checks) // _COLUMNS)
    width, height = min(len(checks), _COLUMNS) * WIDTH, rows * HEIGHT + 22
    width = max(width, 2 * WIDTH)
    body = "".join(
        f'<g transform="translate({k % _COLUMNS * WIDTH},{k // _COLUMNS * HEIGHT})">'
        f"{_panel(check)}</g>"
        for k, check in enumerate(checks)
    )
    y = height - 8
    key = (
        f'<path class="m" d="M{_LEFT} {y - 3}h28"/><text x="{_LEFT + 34}" y="{y}">measured</text>'
        f'<path class="b" d="M{_LEFT + 110} {y - 3}h28"/>'
        f'<text x="{_LEFT + 144}" y="{y}">bound, or the value of the formula</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img"><title>Measured against bound</title>'
        f'<style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>{body}{key}</svg>\n'
    )


def _panel(check: Check) -> str:
    x, measured, bound = _tracks(check)
    values = torch.cat([measured.flatten(), bound.flatten()])
    values = values[values.isfinite()]
    across, up = _across(x), _up(values)
    wide, high = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def place(v: float, w: float) -> tuple[float, float]:
        return _LEFT + wide * across.at(v) / 100, _TOP + high * (1 - up.at(w) / 100)

    out = []
    for tick in _few(up.ticks(4), 5):
        _, y = place(across.low, tick)
        out.append(
            f'<path class="grid" d="M{_LEFT} {y:.1f}h{wide}"/>'
            f'<text x="{_LEFT - 4}" y="{y + 3:.1f}" text-anchor="end">{label(tick)}</text>'
        )
    whole = bool((x == x.round()).all())
    for tick in _few([t for t in across.ticks(4) if t == round(t) or not whole], 5):
        px, _ = place(tick, up.low)
        out.append(
            f'<text x="{px:.1f}" y="{_TOP + high + 12}" text-anchor="middle">{label(tick)}</text>'
        )
    out.append(f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{wide}" height="{high}"/>')
    for kind, curves in (("m", measured), ("b", bound)):
        for curve in curves:
            points = [
                "{:.1f},{:.1f}".format(*place(a, b))
                for a, b in zip(x.tolist(), curve.tolist(), strict=True)
                if b == b and abs(b) != float("inf") and (b > 0 or not up.log)
            ]
            out.append(f'<polyline class="{kind}" points="{" ".join(points)}"/>')
    statement = check.statement
    name = "" if statement is None else f"{statement.number}, {statement.state}"
    title = "" if statement is None else statement.id
    sign = {"<=": "≤", ">=": "≥", "==": "="}[check.relation]
    says = f"{check.quantity} ({sign} {'formula' if sign == '=' else 'bound'})"
    scales = f"{check.axis}{', log scale' if across.log else ''}"
    out.append(
        f'<text class="title" x="6" y="12">{escape(title)}</text>'
        f'<text x="6" y="25">{escape(name)}</text>'
        f'<text x="6" y="38"{_fitted(says)}>{escape(says)}</text>'
        f'<text x="{_LEFT + wide}" y="{_TOP + high + 26}" text-anchor="end">{escape(scales)}</text>'
    )
    return "".join(out)


def _tracks(check: Check) -> tuple[Tensor, Tensor, Tensor]:
    """Places and both sides as rows, thinned out to what a panel can show."""
    measured = check.measured.reshape(-1, check.measured.shape[-1])
    bound = check.bound.reshape(measured.shape)
    x = torch.arange(measured.shape[1]).double() if check.places is None else check.places.double()
    if _slow(x):
        x, measured, bound = x[1:], measured[:, 1:], bound[:, 1:]
    keep = torch.linspace(0, len(x) - 1, min(len(x), _POINTS)).round().long()
    return x[keep], measured[:, keep], bound[:, keep]


def _slow(x: Tensor) -> bool:
    """Whether places from zero are spread over several powers of ten."""
    return len(x) > 2 and float(x[0]) == 0 and bool((x[-1] - x[-2]) > 100 * (x[1] - x[0]))


def _fitted(text: str) -> str:
    """Narrows a line that is wider than a panel."""
    squeeze = f' textLength="{WIDTH - 14}" lengthAdjust="spacingAndGlyphs"'
    return squeeze if len(text) > 46 else ""


def _across(x: Tensor) -> Axis:
    low, high = float(x.min()), float(x.max())
    steps = x.diff().abs()
    return Axis(low, high, log=0 < 20 * low <= high and bool(steps.max() > 1.5 * steps.min()))


def _up(values: Tensor) -> Axis:
    """Around the values; rounding errors of a constant are not blown up to a picture."""
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-3 * max(abs(low), abs(high)):
        return Axis.around([0.0, low, high])
    return Axis.around(values.tolist())


def _few(ticks: list[float], number: int) -> list[float]:
    return ticks[:: -(-len(ticks) // number)] if ticks else []
