"""Figures of the documents that need no training: curves that a command measures and keeps."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from anharmonic._checks import message
from anharmonic.diagnostics.machine import hardware
from anharmonic.training import machine
from anharmonic.training.files import write_atomically

WIDTH = 100


@dataclass(frozen=True)
class Figure:
    """A figure of the documents: what is measured, and what was reported.

    Args:
        id: Its name on the command line.
        title: What it shows.
        source: Document and figure number.
        x: What the curves run over; the first value is that of 0.
        y: What is measured.
        outcomes: What the documents say of every curve, by its name.
        measure: Computes the curves by name.
        marks: The places on the x axis that a table shows.
        note: What a reader has to know.
    """

    id: str
    title: str
    source: str
    x: str
    y: str
    outcomes: Mapping[str, str]
    measure: Callable[[], dict[str, list[float]]]
    marks: tuple[int, ...]
    note: str = ""


@dataclass(frozen=True)
class Measured:
    """The curves of a figure, and where they were measured.

    Args:
        curves: Values by name of the curve.
        hardware: The processor.
        versions: Versions of what computed them.
        commit: The commit, if it is known.
        date: The day.
    """

    curves: dict[str, list[float]]
    hardware: str
    versions: dict[str, str]
    commit: str | None
    date: str


def path_of(figure: Figure, folder: Path) -> Path:
    """Where a figure's curves are kept.

    Args:
        figure: The figure.
        folder: The folder of results.
    """
    return folder / f"{figure.id}.json"


def measure(figure: Figure, folder: Path) -> Measured:
    """Measures a figure and keeps it; reads it where it is kept already.

    Args:
        figure: The figure.
        folder: The folder of results, made if it is missing.

    Raises:
        ValueError: If the file there is damaged.
        OSError: If it cannot be written.
    """
    path = path_of(figure, folder)
    if path.exists():
        return read(path)
    curves = {
        name: [float(f"{value:.6g}") for value in values]
        for name, values in figure.measure().items()
    }
    found = Measured(
        curves,
        hardware("cpu"),
        machine.versions(),
        machine.commit(),
        datetime.now(UTC).date().isoformat(),
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps({"figure": figure.id, **vars(found)}) + "\n")
    return found


def read(path: Path) -> Measured:
    """Reads kept curves.

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

    Args:
        figure: The figure.
        found: Its curves.
    """
    head = ["model", *(f"{figure.x} {mark}" for mark in figure.marks), "reported"]
    body = [
        [
            name,
            *(f"{values[mark]:.1e}" if mark < len(values) else "-" for mark in figure.marks),
            figure.outcomes.get(name, "-"),
        ]
        for name, values in found.curves.items()
    ]
    return [head, *body]


def remarks(figure: Figure, found: Measured) -> list[str]:
    """What is said below the numbers.

    Args:
        figure: The figure.
        found: Its curves.
    """
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    out = [figure.note] if figure.note else []
    out.append(f"Ran on: {found.hardware}. Versions: {versions}. Date: {found.date}.")
    return [*out, f"Commit: {found.commit[:12]}."] if found.commit else out


def terminal(figure: Figure, found: Measured) -> str:
    """The figure's numbers as plain text.

    Args:
        figure: The figure.
        found: Its curves.
    """
    table = rows(figure, found)
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]

    def text(row: Sequence[str]) -> str:
        return "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()

    said = [textwrap.fill(f"* {r}", WIDTH, subsequent_indent="  ") for r in remarks(figure, found)]
    head = [f"{figure.id}: {figure.title}", f"{figure.y}. Source: {figure.source}.", ""]
    return "\n".join([*head, *(text(row) for row in table), *said])


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
