"""Figures of the papers: curves that a command computes, by training if needed, and draws."""

from __future__ import annotations

import itertools
import json
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from anharmonic import pages, train
from anharmonic._checks import message
from anharmonic.diagnostics import hardware
from anharmonic.train import RunEnvironment, write_atomically
from anharmonic_papers.report.text import markdown_table

_MANY = 12


@dataclass(frozen=True)
class Curves:
    """The curves of one measurement of a figure.

    Args:
        values: The values of each curve, by its name.
        places: The x coordinates of the curves for which they are not 0, 1, 2, ...
        budget: A description of the training budget; empty if nothing was trained.
    """

    values: Mapping[str, Sequence[float]]
    places: Mapping[str, Sequence[float]] = field(default_factory=dict)
    budget: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure of a paper: its measurement and the reported outcomes.

    Args:
        id: The name on the command line.
        title: The title.
        source: The paper and the figure number.
        x: The quantity on the x axis, with its unit.
        y: The measured quantity, with its unit.
        outcomes: The paper's statement about each curve, by the name of the curve.
        measure: Computes the curves, and trains in the given environment.
        marks: The x coordinates that a table shows.
        note: Remarks for readers.
        panels: The titles of the picture's panels and the curves in each. If empty, one panel shows
            all curves.
        log: The logarithmic axes.
        low: The lower end of the y axis of the picture; None puts it below the smallest value. On a
            logarithmic axis curves end there.
        draw: Draws a picture that does not consist of lines.
    """

    id: str
    title: str
    source: str
    x: str
    y: str
    outcomes: Mapping[str, str]
    measure: Callable[[RunEnvironment], Curves]
    marks: tuple[float, ...]
    note: str = ""
    panels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    log: Literal["", "x", "y", "xy"] = ""
    low: float | None = None
    draw: Callable[[Figure, Measured], Any] | None = None


@dataclass(frozen=True)
class Measured:
    """The curves of a figure, and the machine and versions that computed them.

    Args:
        curves: The values of each curve by its name, up to the first that is not finite.
        hardware: The processor.
        versions: The versions of the packages.
        commit: The commit, if known.
        date: The date.
        places: See ``Curves``.
        budget: See ``Curves``.
    """

    curves: dict[str, list[float]]
    hardware: str
    versions: dict[str, str]
    commit: str | None
    date: str
    places: dict[str, list[float]] = field(default_factory=dict)
    budget: str = ""

    def at(self, name: str) -> list[float]:
        """Return the x coordinates of the values of a curve."""
        return self.places.get(name) or [float(n) for n in range(len(self.curves[name]))]


def path_of(figure: Figure, folder: Path) -> Path:
    """Return the path of a figure's stored curves."""
    return folder / f"{figure.id}.json"


def measure(figure: Figure, folder: Path, environment: RunEnvironment | None = None) -> Measured:
    """Measure a figure and store its curves, or read curves that are already stored."""
    path = path_of(figure, folder)
    if path.exists():
        return read(path)
    folder.mkdir(parents=True, exist_ok=True)
    found = figure.measure(RunEnvironment() if environment is None else environment)
    curves = {name: _finite(values) for name, values in found.values.items()}
    measured = Measured(
        curves,
        hardware("cpu"),
        train.versions(),
        train.commit(),
        datetime.now(UTC).date().isoformat(),
        {k: _finite(v)[: len(curves[k])] for k, v in found.places.items()},
        found.budget,
    )
    write_atomically(path, json.dumps({"figure": figure.id, **vars(measured)}) + "\n")
    return measured


def _finite(values: Sequence[float]) -> list[float]:
    """Round each value to six digits, up to the first that is not finite."""
    return [float(f"{value:.6g}") for value in itertools.takewhile(math.isfinite, values)]


def read(path: Path) -> Measured:
    """Read the stored curves of a figure."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        content.pop("figure")
        return Measured(**content)
    except (ValueError, KeyError, TypeError) as error:
        came, advice = f"{type(error).__name__}: {error}", "remove it and run the command again"
        expected = f"{path} must hold the curves of a figure"
        raise ValueError(message(expected, came, advice)) from error


def rows(figure: Figure, found: Measured) -> list[list[str]]:
    """Return the table of a figure: a header, then the values at the marks and reported outcomes.

    If there are more than a dozen curves, the table has only those with a reported outcome.
    """
    many = len(found.curves) > _MANY
    table = [["curve", *(f"{figure.x} {mark:g}" for mark in figure.marks), "reported"]]
    for name, values in found.curves.items():
        if name in figure.outcomes or not many:
            shown = (_at(found.at(name), values, mark) for mark in figure.marks)
            table.append([name, *shown, figure.outcomes.get(name, "-")])
    return table


def _at(places: Sequence[float], values: Sequence[float], mark: float) -> str:
    """Format the value nearest to an x coordinate; ``-`` if the curve does not reach it."""
    if not values or not min(places) <= mark <= max(places):
        return "-"
    nearest = min(range(len(values)), key=lambda n: abs(places[n] - mark))
    return f"{values[nearest]:.1e}"


def remarks(figure: Figure, found: Measured) -> list[str]:
    """Return the remarks below the numbers."""
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    out = [figure.note] if figure.note else []
    out += [f"Trained for it: {found.budget}."] if found.budget else []
    out.append(f"Ran on: {found.hardware}. Versions: {versions}. Date: {found.date}.")
    return [*out, f"Commit: {found.commit[:12]}."] if found.commit else out


def terminal(figure: Figure, found: Measured) -> str:
    """Format the figure's numbers as plain text."""
    head, *body = rows(figure, found)
    return pages.text(
        f"{figure.id}: {figure.title}",
        f"{figure.y}. Source: {figure.source}.",
        "",
        pages.grid(head, body),
        pages.bullets(remarks(figure, found)),
    )


def markdown(figure: Figure, found: Measured) -> str:
    """Format the figure's numbers as a Markdown section."""
    head, *body = rows(figure, found)
    lines = [f"## {figure.title}", "", f"`{figure.id}` · {figure.y}. Source: {figure.source}.", ""]
    lines += [markdown_table(head, body), "", *(f"- {r}" for r in remarks(figure, found))]
    return "\n".join(lines) + "\n"


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
        until = {short: _until_low(figure, found, name) for short, name in curves.items()}
        pages.lines(
            axis, until, x=figure.x, y=figure.y, title=title, log=figure.log, low=figure.low,
            legend=not shared,
        )  # fmt: skip
    drawn.suptitle(figure.title + "\n" * shared, fontsize=10.5)
    if shared:  # on the second line of the title
        drawn.legend(
            *axes[0].get_legend_handles_labels(), loc="upper center", ncols=4,
            bbox_to_anchor=(0.5, 0.975), frameon=False, fontsize=8, handlelength=2.6,
        )  # fmt: skip
    return drawn
