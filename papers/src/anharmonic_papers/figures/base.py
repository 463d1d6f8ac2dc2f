"""Figures of the papers: curves that a command measures, or trains for, and keeps."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from anharmonic import pages, train
from anharmonic._checks import message
from anharmonic.diagnostics import hardware
from anharmonic.train import RunEnvironment, write_atomically

_MANY = 12


@dataclass(frozen=True)
class Curves:
    """What a figure's measurement gives.

    Args:
        values: Values by name of the curve.
        places: Where on the x axis they are, for the curves of which it is not 0, 1, 2, ...
        budget: What was trained for them, in words; empty where nothing was.
    """

    values: Mapping[str, Sequence[float]]
    places: Mapping[str, Sequence[float]] = field(default_factory=dict)
    budget: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure of a paper: what is measured, and what was reported.

    Args:
        id: Its name on the command line.
        title: What it shows.
        source: Paper and figure number.
        x: What the curves run over, with unit.
        y: What is measured, with unit.
        outcomes: What the paper says of every curve, by its name.
        measure: Computes the curves; trainings happen in the environment given.
        marks: The places on the x axis that a table shows.
        note: Remarks for readers.
        panels: Titles of the picture's panels and the curves in each; one of all if empty.
        log: Which axes are logarithmic.
        low: Where the y axis of the picture begins, and curves on a logarithmic one end; below the
            smallest value if None.
        draw: Draws the picture where it is not made of lines.
        data: Name of the archive that has to be downloaded first; empty where it need not.
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
    data: str = ""


@dataclass(frozen=True)
class Measured:
    """The curves of a figure, and where they were measured.

    Args:
        curves: Values by name of the curve; they end where they stop being finite.
        hardware: The processor.
        versions: Versions of what computed them.
        commit: The commit, if it is known.
        date: The day.
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
        """Where on the x axis the values of a curve are.

        Args:
            name: The curve.
        """
        return self.places.get(name) or [float(n) for n in range(len(self.curves[name]))]


def path_of(figure: Figure, folder: Path) -> Path:
    """Where a figure's curves are kept.

    Args:
        figure: The figure.
        folder: The folder of results.
    """
    return folder / f"{figure.id}.json"


def measure(figure: Figure, folder: Path, environment: RunEnvironment | None = None) -> Measured:
    """Measure a figure and keep it; reads it where it is kept already.

    Args:
        figure: The figure.
        folder: The folder of results, made if it is missing.
        environment: Where trainings happen.

    Raises:
        ValueError: If the file there is damaged.
        OSError: If it cannot be written.
    """
    path = path_of(figure, folder)
    if path.exists():
        return read(path)
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
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps({"figure": figure.id, **vars(measured)}) + "\n")
    return measured


def _finite(values: Sequence[float]) -> list[float]:
    """Six digits of each value up to the first that is not finite."""
    whole = next((n for n, v in enumerate(values) if not math.isfinite(v)), len(values))
    return [float(f"{value:.6g}") for value in values[:whole]]


def read(path: Path) -> Measured:
    """Read kept curves.

    Args:
        path: What ``measure`` wrote.

    Raises:
        ValueError: If it is damaged.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        content.pop("figure")
        return Measured(**content)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            message(
                f"{path} must hold the curves of a figure",
                f"{type(error).__name__}: {error}",
                "remove it and run the command again",
            )
        ) from error


def rows(figure: Figure, found: Measured) -> list[list[str]]:
    """Head and one line per curve: values at the marks, and what was reported.

    Of more than a dozen curves only those of which the paper says something have a line.

    Args:
        figure: The figure.
        found: Its curves.
    """
    many = len(found.curves) > _MANY
    head = ["curve", *(f"{figure.x} {mark:g}" for mark in figure.marks), "reported"]
    body = [
        [
            name,
            *(_at(found.at(name), values, mark) for mark in figure.marks),
            figure.outcomes.get(name, "-"),
        ]
        for name, values in found.curves.items()
        if name in figure.outcomes or not many
    ]
    return [head, *body]


def _at(places: Sequence[float], values: Sequence[float], mark: float) -> str:
    """The value nearest to a place on the x axis; ``-`` where the curve does not reach it."""
    if not values or not min(places) <= mark <= max(places):
        return "-"
    nearest = min(range(len(values)), key=lambda n: abs(places[n] - mark))
    return f"{values[nearest]:.1e}"


def remarks(figure: Figure, found: Measured) -> list[str]:
    """What is said below the numbers.

    Args:
        figure: The figure.
        found: Its curves.
    """
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    out = [figure.note] if figure.note else []
    out += [f"Trained for it: {found.budget}."] if found.budget else []
    out.append(f"Ran on: {found.hardware}. Versions: {versions}. Date: {found.date}.")
    return [*out, f"Commit: {found.commit[:12]}."] if found.commit else out


def terminal(figure: Figure, found: Measured) -> str:
    """The figure's numbers as plain text.

    Args:
        figure: The figure.
        found: Its curves.
    """
    head, *body = rows(figure, found)
    return pages.text(
        f"{figure.id}: {figure.title}",
        f"{figure.y}. Source: {figure.source}.",
        "",
        pages.grid(head, body),
        pages.bullets(remarks(figure, found)),
    )


def markdown(figure: Figure, found: Measured) -> str:
    """The figure's numbers as a Markdown section.

    Args:
        figure: The figure.
        found: Its curves.
    """
    head, *body = rows(figure, found)
    lines = [f"## {figure.title}", "", f"`{figure.id}` · {figure.y}. Source: {figure.source}.", ""]
    lines += [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body)]
    return "\n".join([*lines, "", *(f"- {r}" for r in remarks(figure, found))]) + "\n"
