"""Plots: lines, histograms, graphs. matplotlib is imported when needed.

Curves differ in colour and dashes. The colours are Okabe and Ito's, which suit all colour vision
and print in grey.
"""

from __future__ import annotations

import io
import itertools
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from anharmonic import _checks
from anharmonic._files import write_atomically

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#AA4499", "#000000", "#56B4E9", "#B8860B")
"""Blue, vermilion, green, purple, black, sky, dark yellow."""
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1, 1.2)),
    (0, (6, 2, 1, 2)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (9, 2)),
)
FORMATS = ("svg", "png")
# Wider matrices name only some rows and show no numbers.
_NAMES_SHOWN, _NUMBERS_SHOWN = 30, 12
# Characters that an SVG cannot hold, such as control characters.
_NOT_IN_SVG = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_TICKS, _INSIDE = 6, 6  # places named one by one; names that a panel has room for
_STYLE = {
    "font.size": 9,
    "font.sans-serif": ["DejaVu Sans"],
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.92",
    "axes.axisbelow": True,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.8,
    "svg.hashsalt": "anharmonic",
    "svg.fonttype": "none",
}

Curve = tuple[Sequence[float], Sequence[float]]
"""x positions and values."""
Log = Literal["", "x", "y", "xy"]


def panels(count: int, *, width: float = 7.0, height: float = 2.9) -> tuple[Any, list[Any]]:
    """Return an empty figure with panels, at most three per row.

    Args:
        count: Number of panels, >= 1.
        width: Width of the figure in inches.
        height: Height of each row.

    Returns:
        The figure of matplotlib and its axes.

    Raises:
        ImportError: If matplotlib is missing.
    """
    _checks.positive_int("count", count)
    matplotlib = _matplotlib()
    columns = count if count <= 3 else 2 if count == 4 else 3
    rows = math.ceil(count / columns)
    with matplotlib.rc_context(_STYLE):
        figure = matplotlib.figure.Figure(
            figsize=(width, height * rows), dpi=150, layout="constrained"
        )
        axes = figure.subplots(rows, columns, squeeze=False).flatten().tolist()
    for spare in axes[count:]:
        spare.set_visible(False)
    return figure, axes[:count]


def lines(
    axes: Any,
    curves: Mapping[str, Curve],
    *,
    x: str,
    y: str,
    title: str = "",
    log: Log = "",
    low: float | None = None,
    legend: bool = True,
) -> None:
    """Draw curves with a legend.

    Args:
        axes: The axes.
        curves: Curves by name; empty curves are left out. Logarithmic axes leave out values that
            are not positive.
        x: Name of the x axis, with unit.
        y: Name of the y axis, with unit.
        title: Above the panel.
        log: Which axes are logarithmic.
        low: Lower end of the y axis; below the smallest value if None.
        legend: Whether to show a legend for several curves.
    """
    matplotlib = _matplotlib()
    with matplotlib.rc_context(_STYLE):
        axes.set(xlabel=x, ylabel=y, title=title)
        axes.grid(visible=True, color="0.92")
        styles = zip(itertools.cycle(COLOURS), itertools.cycle(DASHES), strict=False)
        for (name, (at, values)), (colour, dash) in zip(curves.items(), styles, strict=False):
            shown = [
                (a, v)
                for a, v in zip(at, values, strict=True)
                if (v > 0 or "y" not in log) and (a > 0 or "x" not in log)
            ]
            if shown:
                places, heights = zip(*shown, strict=True)
                axes.plot(places, heights, color=colour, linestyle=dash, lw=1.5, label=name)
        if all(place == int(place) for at, _ in curves.values() for place in at):
            axes.xaxis.get_major_locator().set_params(integer=True)
        for axis in log:
            getattr(axes, f"set_{axis}scale")("log")
        if low is not None:
            axes.set_ylim(bottom=low)
        measured = sorted({place for at, _ in curves.values() for place in at})
        if "x" in log and len(measured) <= _TICKS:
            axes.set_xticks(measured, [f"{place:g}" for place in measured])
            axes.set_xticks([], minor=True)
        if legend and len(curves) > _INSIDE:
            axes.legend(handlelength=2.6, loc="center left", bbox_to_anchor=(1.01, 0.5))
        elif legend and len(curves) > 1:
            axes.legend(handlelength=2.6)


def matrix(
    axes: Any, counts: Sequence[Sequence[int]], names: Sequence[str], *, x: str, y: str
) -> None:
    """Draw counts as squares, as dark as their share of the row; with numbers if they are few.

    Args:
        axes: The axes.
        counts: Counts, row by row.
        names: Names of rows and columns; only some are shown if there are many.
        x: Meaning of the columns.
        y: Meaning of the rows.
    """
    matplotlib = _matplotlib()
    shares = [[number / max(1, sum(row)) for number in row] for row in counts]
    size = len(names)
    places = range(0, size, math.ceil(size / _NAMES_SHOWN))
    shown = [names[i] if len(names[i]) <= 14 else f"{names[i][:13]}…" for i in places]
    shown = [_NOT_IN_SVG.sub(lambda c: ascii(c[0])[1:-1], name) for name in shown]
    shown = [name.replace("$", r"\$") for name in shown]  # no formulas
    with matplotlib.rc_context(_STYLE):
        axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
        axes.grid(visible=False)
        axes.set(xlabel=x, ylabel=y)
        long = max(map(len, shown)) * len(shown) > 40
        axes.set_xticks(places, shown, rotation=90 if long else 0)
        axes.set_yticks(places, shown)
        for i, row in enumerate(counts if size <= _NUMBERS_SHOWN else ()):
            for j, number in enumerate(row):
                colour = "white" if shares[i][j] > 0.6 else "0.2"
                axes.text(j, i, str(number), ha="center", va="center", color=colour, fontsize=8)


def network(
    axes: Any,
    positions: Sequence[tuple[float, float]],
    edges: Sequence[tuple[int, int]],
    *,
    kinds: Sequence[str],
    title: str = "",
) -> None:
    """Draw a graph at given positions, its nodes named by kind.

    Args:
        axes: The axes.
        positions: Of the nodes.
        edges: Pairs of nodes.
        kinds: What every node is; those of one kind share a colour and a marker.
        title: Above the panel.
    """
    matplotlib = _matplotlib()
    with matplotlib.rc_context(_STYLE):
        axes.set(xlabel="feature 1", ylabel="feature 2", title=title)
        for i, j in edges:
            (x1, y1), (x2, y2) = positions[i], positions[j]
            axes.plot([x1, x2], [y1, y2], color="0.6", lw=1.2, zorder=1)
        styles = zip(itertools.cycle(COLOURS), itertools.cycle("os^Dv"), strict=False)
        for kind, (colour, marker) in zip(dict.fromkeys(kinds), styles, strict=False):
            here = [p for p, k in zip(positions, kinds, strict=True) if k == kind]
            axes.scatter(
                *zip(*here, strict=True), color=colour, marker=marker, s=34, label=kind, zorder=2
            )
        axes.set_aspect("equal", adjustable="datalim")
        axes.legend()


def save(figure: Any, path: Path) -> None:
    """Write a picture, the same bytes for the same numbers.

    Args:
        figure: A figure from ``panels``.
        path: Ends in .svg or .png; its folder is made.

    Raises:
        ValueError: If it has another ending.
    """
    _checks.choice("the picture's ending", path.suffix.lstrip("."), FORMATS)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, encode(figure, path.suffix.lstrip(".")))


def encode(figure: Any, form: str) -> bytes:
    """A picture as the bytes of a file, the same for the same numbers."""
    made = io.BytesIO()
    with _matplotlib().rc_context(_STYLE), warnings.catch_warnings():
        if form == "svg":  # the viewer has other fonts for such characters
            warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure.savefig(made, format=form, metadata={"Date": None} if form == "svg" else None)
    if form == "png":
        return made.getvalue()
    # Hundredths of a point are enough for print. Texts, such as ticks, keep their digits.
    return re.sub(
        rb"<[^>]*>",
        lambda tag: re.sub(rb"(\d\.\d\d)\d+", rb"\1", tag.group()),
        made.getvalue(),
    )


def _matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError as error:
        raise _checks.missing_extra("matplotlib", "train", "drawing") from error
    return matplotlib
