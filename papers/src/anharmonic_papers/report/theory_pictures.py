"""Draw measured curves against their bounds, with a panel per statement."""

import textwrap
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from anharmonic import pages
from anharmonic._checks import require
from anharmonic_papers.theory.statements import Check

_POINTS = 100
_SIGNS = {"<=": "≤ bound", ">=": "≥ bound", "==": "= formula"}


def has_curve(check: Check) -> bool:
    """Return whether a check has a few curves over steps, layers, times or sizes to draw.

    Matrices, values by node and identities up to rounding appear only in the table.
    """
    shape = check.measured.shape
    least = 5 if check.places is None else 3
    if len(shape) not in (1, 2) or shape[-1] < least:
        return False
    if len(shape) == 2 and shape[1] <= 2 * shape[0]:
        return False
    by_entry = check.axis.split()[:1] in (["node"], ["entry"], ["column"])
    return not by_entry and bool(check.bound.abs().max() > 1e-10)


def panels(checks: Sequence[Check]) -> Any:
    """Draw a picture with one panel per check, in order, for ``pages.save``."""
    require(len(checks) > 0, "checks", checks, "at least one", "pass those with has_curve")
    drawn, axes = pages.panels(len(checks), height=2.4, width=9.0)
    for axis, check in zip(axes, checks, strict=True):
        _draw(axis, check)
    drawn.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False
    )
    return drawn


def _draw(axis: Any, check: Check) -> None:
    x, measured, bound = _tracks(check)
    values = torch.cat([measured.flatten(), bound.flatten()])
    values = values[values.isfinite()]
    low, high = float(values.min()), float(values.max())
    styles = (("measured", "-"), ("bound, or the value of the formula", (0, (5, 3))))
    for curves, (name, dash), colour in zip((measured, bound), styles, pages.COLOURS, strict=False):
        for number, row in enumerate(curves.tolist()):
            axis.plot(x, row, color=colour, ls=dash, lw=1.4, label="_" if number else name)
    if high - low < 1e-3 * max(abs(low), abs(high)):  # rounding errors are not blown up
        axis.set_ylim(min(0.0, 1.1 * low), max(0.0, 1.1 * high))
    elif low > 0 and high > 30 * low:
        axis.set_yscale("log")
    if axis.get_yscale() == "linear":
        axis.ticklabel_format(axis="y", scilimits=(-2, 4))
    steps = x.diff().abs()
    if 0 < 20 * float(x.min()) <= float(x.max()) and bool(steps.max() > 1.5 * steps.min()):
        axis.set_xscale("log")
    elif bool((x == x.round()).all()):
        axis.xaxis.get_major_locator().set_params(integer=True)
    said = check.statement
    axis.set_title("" if said is None else f"{said.id}\n{said.number}, {said.state}", fontsize=8)
    axis.set_xlabel(check.axis)
    quantity = textwrap.fill(f"{check.quantity} ({_SIGNS[check.relation]})", 34)
    axis.set_ylabel(quantity, fontsize=7)


def _tracks(check: Check) -> tuple[Tensor, Tensor, Tensor]:
    """Return x coordinates and both sides as rows, thinned to the resolution of a panel."""
    measured = check.measured.reshape(-1, check.measured.shape[-1])
    bound = check.bound.reshape(measured.shape)
    x = torch.arange(measured.shape[1]).double() if check.places is None else check.places.double()
    if len(x) > 2 and float(x[0]) == 0 and bool((x[-1] - x[-2]) > 100 * (x[1] - x[0])):
        x, measured, bound = x[1:], measured[:, 1:], bound[:, 1:]  # times over powers of ten
    shown = torch.linspace(0, len(x) - 1, min(len(x), _POINTS)).round().long()
    return x[shown], measured[:, shown], bound[:, shown]
