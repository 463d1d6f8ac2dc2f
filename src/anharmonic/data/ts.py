"""Reader of `.ts` files, the format of the UEA and UCR time series archives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import choice, message, require
from anharmonic._files import existing
from anharmonic.data.sequences import Floats, Sequences, usual_step

_TAGS = (
    "problemname",
    "timestamps",
    "missing",
    "univariate",
    "dimension",
    "dimensions",
    "equallength",
    "serieslength",
    "classlabel",
    "targetlabel",
    "data",
)
_PAIR = re.compile(r"\(\s*([^(),]*),\s*([^(),]*)\)")
_ADVICE = "check that it is a .ts file of the UEA or UCR archive"


@dataclass
class _Header:
    univariate: bool | None = None
    dimensions: int | None = None
    classes: tuple[str, ...] | None = None
    targets: bool = False
    timed: bool = False
    tags: list[str] = field(default_factory=list)

    @property
    def labelled(self) -> bool:
        return self.classes is not None or self.targets


def read_ts(path: Path | str) -> Sequences:
    """Read one `.ts` file.

    Header lines start with `@`, comments with `#`. After `@data` every line is one case. Colons
    separate its dimensions, commas its values. The class or target value comes last, if the header
    has `@classLabel true A B ...` or `@targetLabel true`. Cases may differ in length, the
    dimensions of one case may not. With `@timestamps true` values are written `(time,value)`, and
    all dimensions of a case have the same times, as numbers or dates. `?` and `NaN` are missing
    values (NaN). `@equalLength`, `@seriesLength` and `@missing` are ignored. `y` holds class names
    (strings), target values (float64) or is None.
    """
    path = existing(path)
    header = _Header()
    cases: list[Floats] = []
    clocks: list[NDArray[Any]] = []
    labels: list[str] = []
    started = False
    for line, where in lines_of(path):
        if not started:
            started = _read_tag(header, line, where)
            continue
        # Dates in brackets may contain colons.
        values = re.split(r":(?![^()]*\))", line) if header.timed else line.split(":")
        if header.labelled:
            labels.append(_label(header, values.pop().strip(), where))
        if header.timed:
            clock, values = _timed(values, where)
            clocks.append(clock)
        cases.append(_case(header, values, where))
        size, first = cases[-1].shape[1], cases[0].shape[1]
        expected = f"{first}, as in the first case"
        require(size == first, f"dimensions in {where}", size, expected, "check its colons")
    require(started, f"tags of {path.name}", header.tags, "followed by a line @data", _ADVICE)
    y: NDArray[Any] | None = None
    if header.labelled:
        y = np.array(labels) if header.classes is not None else np.array(labels, np.float64)
    flat = np.concatenate(cases) if cases else np.empty((0, 1), np.float32)
    ends = np.cumsum([0, *(len(case) for case in cases)])
    if not clocks:
        return Sequences(path.name, flat, ends, y)
    elapsed, interval = _sampling(clocks)
    times = np.array([clock[0] for clock in clocks])
    return Sequences(path.name, flat, ends, y, elapsed=elapsed, times=times, interval=interval)


def _timed(dimensions: list[str], where: str) -> tuple[NDArray[Any], list[str]]:
    """Return the times of a case, and its dimensions without them."""
    clocks, values = [], []
    for text in dimensions:
        pairs = _PAIR.findall(text)
        if not pairs or _PAIR.sub("", text).strip(" ,"):
            expected = f"{where} must hold pairs (time,value), as @timestamps says"
            raise ValueError(message(expected, text[:40], "correct it"))
        clocks.append([time.strip() for time, _ in pairs])
        values.append(",".join(value for _, value in pairs))
    if any(clock != clocks[0] for clock in clocks):
        advice = "give all dimensions the same times; a missing value is written ?"
        came = "others in some of them"
        raise ValueError(message(f"dimensions in {where} must have equal times", came, advice))
    try:
        clock: NDArray[Any] = np.array([float(time) for time in clocks[0]])
    except ValueError:
        try:
            clock = np.array([time.replace(" ", "T") for time in clocks[0]], "M8[ns]")
        except ValueError as error:
            expected = f"times in {where} must be numbers or dates like 2024-01-31 12:30:00"
            raise ValueError(message(expected, str(error)[:80], "correct them")) from error
    gaps = np.diff(clock)
    if not (gaps > gaps[:1] * 0).all():
        came = "some that do not rise"
        raise ValueError(message(f"times in {where} must rise", came, "sort them"))
    return clock, values


def _sampling(clocks: list[NDArray[Any]]) -> tuple[Floats | None, float | None]:
    """Return the time since the previous sample (None for equal spacing) and the usual step."""
    seconds = np.timedelta64(1, "s")
    gaps = [np.diff(c) / (seconds if c.dtype.kind == "M" else 1) for c in clocks]
    inner = np.concatenate(gaps)
    usual, even = usual_step(inner)
    if even:
        return None, usual
    return np.concatenate([[0, *gap] for gap in gaps]).astype(np.float32), usual


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file without blank ones and comments, and their places in words."""
    with path.open(encoding=_encoding(path), newline=None) as lines:
        for number, raw in enumerate(lines, start=1):
            line = raw.strip()
            if line and not line.startswith("#"):
                yield line, f"line {number} of {path.name}"


def numbers_of(text: str, where: str) -> Floats:
    """Return numbers separated by commas; "?" and NaN are missing, too large ones infinite."""
    try:
        if "_" in text:  # Python would accept it in numbers
            raise ValueError(f"could not read {text[:40]!r}")
        values = np.array(text.replace("?", "nan").split(","), dtype=np.float64)
    except ValueError as error:
        expected = f"{where} must hold numbers separated by commas"
        advice = "correct it; a missing value is written ?"
        raise ValueError(message(expected, str(error).rstrip("."), advice)) from error
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _encoding(path: Path) -> str:
    """Return UTF-8 if the whole file is valid UTF-8, otherwise Latin-1."""
    try:
        with path.open(encoding="utf-8-sig") as text:
            while text.read(1 << 20):
                pass
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8-sig"


def _read_tag(header: _Header, line: str, where: str) -> bool:
    """Parse a header line and return whether the data follow."""
    require(line[0] == "@", where, line[:40], "a tag (@) or comment (#) before @data", _ADVICE)
    tag, *values = line[1:].split() or [""]
    tag = choice(f"tag in {where}", tag.lower(), _TAGS)
    header.tags.append(tag)
    if tag == "timestamps":
        header.timed = _flag(values, where)
    if tag == "univariate":
        header.univariate = _flag(values, where)
    if tag in ("dimension", "dimensions"):
        header.dimensions = _count(values, where)
    if tag == "classlabel" and _flag(values, where):
        header.classes = tuple(values[1:])
    if tag == "targetlabel":
        header.targets = _flag(values, where)
    if header.univariate and header.dimensions not in (None, 1):
        came, expected = f"@univariate true and @dimensions {header.dimensions}", "in agreement"
        require(False, f"tags up to {where}", came, expected, "correct one of them")
    return tag == "data"


def _flag(values: list[str], where: str) -> bool:
    return choice(f"value in {where}", (values or [""])[0].lower(), ("true", "false")) == "true"


def _count(values: list[str], where: str) -> int:
    fits = len(values) == 1 and values[0].isdecimal()
    require(fits, f"value in {where}", " ".join(values), "one whole number", "correct it")
    return int(values[0])


def _label(header: _Header, label: str, where: str) -> str:
    if header.classes is not None:
        known = not header.classes or label in header.classes
        expected = f"one of {', '.join(header.classes)}"
        advice = "correct it, or the list after @classLabel true"
        require(known, f"the class in {where}", label, expected, advice)
        return label
    try:
        value = float(label)
    except ValueError:
        value = np.nan
    finite = bool(np.isfinite(value))
    require(finite, f"the target in {where}", label, "a finite number", "correct it")
    return label


def _case(header: _Header, dimensions: list[str], where: str) -> Floats:
    wanted = 1 if header.univariate else header.dimensions
    fits = len(dimensions) == wanted if wanted is not None else bool(dimensions)
    expected = f"{wanted or 'at least 1'}, as the header says"
    advice = "check its colons, @univariate and @classLabel"
    require(fits, f"dimensions in {where}", len(dimensions), expected, advice)
    channels = [numbers_of(text, where) for text in dimensions]
    sizes = [len(channel) for channel in channels]
    advice = "cut or resample them to one length"
    require(len(set(sizes)) == 1, f"lengths of the dimensions in {where}", sizes, "equal", advice)
    return np.stack(channels, axis=1)
