"""Pictures of the documents' figures, from kept numbers."""

from __future__ import annotations

from typing import Any

from anharmonic.diagnostics import plots
from anharmonic.experiments.figures import Figure, Measured


def picture(figure: Figure, found: Measured) -> Any:
    """Draws a figure; what was trained for it stands below.

    Args:
        figure: The figure.
        found: Its curves.

    Returns:
        A figure of matplotlib, for ``plots.save``.

    Raises:
        ImportError: If matplotlib is missing.
    """
    drawn = _lines(figure, found) if figure.draw is None else figure.draw(figure, found)
    if found.budget:
        drawn.supxlabel(f"Trained for this picture: {found.budget}.", fontsize=7, color="0.35")
    return drawn


def _lines(figure: Figure, found: Measured) -> Any:
    parts = figure.panels or {"": list(found.curves)}
    drawn, axes = plots.panels(len(parts), height=3.6 if len(parts) == 1 else 2.7)
    for axis, (title, names) in zip(axes, parts.items(), strict=True):
        curves = {
            name.removeprefix(f"{title}: "): (found.at(name), found.curves[name]) for name in names
        }
        words = {"x": figure.x, "y": figure.y, "title": title}
        plots.lines(axis, curves, **words, log=figure.log, low=figure.low)
    drawn.suptitle(figure.title, fontsize=10.5)
    return drawn
