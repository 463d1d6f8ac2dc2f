"""Draw the papers' figures from stored numbers."""

from __future__ import annotations

import math
import textwrap
from typing import Any

from anharmonic import pages
from anharmonic_papers.figures.base import Figure, Measured


def picture(figure: Figure, found: Measured) -> Any:
    """Draw a figure with its training budget below, for ``pages.save``."""
    drawn = _lines(figure, found) if figure.draw is None else figure.draw(figure, found)
    if found.budget:
        said = textwrap.fill(f"Trained for this picture: {found.budget}.", 110)
        drawn.supxlabel(said, fontsize=7, color="0.35")
    return drawn


def _until_low(figure: Figure, found: Measured, name: str) -> tuple[list[float], list[float]]:
    """Return a curve up to its first value below the axis; later values are rounding errors."""
    pairs = list(zip(found.at(name), found.curves[name], strict=True))
    floor = figure.low if figure.low is not None and "y" in figure.log else -math.inf
    end = next((k + 1 for k, (_, value) in enumerate(pairs) if value < floor), len(pairs))
    return [at for at, _ in pairs[:end]], [value for _, value in pairs[:end]]


def _lines(figure: Figure, found: Measured) -> Any:
    parts = figure.panels or {"": list(found.curves)}
    drawn, axes = pages.panels(len(parts), height=3.6 if len(parts) == 1 else 2.7)
    shown = [{name.removeprefix(f"{t}: "): name for name in names} for t, names in parts.items()]
    # Panels with the same curves share a legend.
    shared = len(parts) > 1 and len({tuple(curves) for curves in shown}) == 1
    for axis, title, curves in zip(axes, parts, shown, strict=True):
        pages.lines(
            axis,
            {short: _until_low(figure, found, name) for short, name in curves.items()},
            x=figure.x,
            y=figure.y,
            title=title,
            log=figure.log,
            low=figure.low,
            legend=not shared,
        )
    drawn.suptitle(figure.title + "\n" * shared, fontsize=10.5)
    if shared:  # on the second line of the title
        drawn.legend(
            *axes[0].get_legend_handles_labels(), loc="upper center", ncols=4,
            bbox_to_anchor=(0.5, 0.975), frameon=False, fontsize=8, handlelength=2.6,
        )  # fmt: skip
    return drawn
