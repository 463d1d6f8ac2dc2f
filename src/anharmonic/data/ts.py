"""Reader of `.ts` files, the format of the UEA and UCR time series archives."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import choice, message
from anharmonic.data.npz import existing
from anharmonic.data.sequences import Floats, Sequences

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


@dataclass
class _Header:
    univariate: bool | None = None
    dimensions: int | None = None
    classes: tuple[str, ...] | None = None
    targets: bool = False
    tags: list[str] = field(default_factory=list)

    @property
    def labelled(self) -> bool:
        return self.classes is not None or self.targets


def read_ts(path: Path | str) -> Sequences:
    """Reads one `.ts` file.

    Header lines start with `@`, comments with `#`. After `@data` every line is one case: its
    dimensions separated by colons, values by commas, then the class or target value if the header
    says so with `@classLabel true A B ...` or `@targetLabel true`. Cases may have different
    lengths; the dimensions of one case may not. `?` and `NaN` are missing values (NaN).
    `@equalLength`, `@seriesLength` and `@missing` are not relied on.

    Args:
        path: The file.

    Returns:
        The sequences; `y` holds class names (strings), target values (float64) or is None.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file breaks these rules; the message names the line.
    """
    path = existing(path)
    header = _Header()
    cases: list[Floats] = []
    labels: list[str] = []
    started = False
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, raw in enumerate(lines, start=1):
            line = raw.strip()
            if not line or line.startswith("#"):
                continue
            where = f"line {number} of {path.name}"
            if not started:
                started = _read_tag(header, line, where)
            else:
                values = line.split(":")
                if header.labelled:
                    labels.append(_label(header, values.pop().strip(), where))
                cases.append(_case(header, values, where))
                if cases[-1].shape[1] != cases[0].shape[1]:
                    raise ValueError(
                        message(
                            f"{where} must have {cases[0].shape[1]} dimensions, as the first case",
                            f"{cases[-1].shape[1]}",
                            "check its colons",
                        )
                    )
    if not started:
        raise ValueError(
            message(
                f"{path.name} must hold a line @data",
                f"the tags {', '.join(header.tags) or 'none'}",
                "check that it is a .ts file of the UEA or UCR archive",
            )
        )
    y: NDArray[Any] | None = None
    if header.labelled:
        y = np.array(labels) if header.classes is not None else np.array(labels, np.float64)
    flat = np.concatenate(cases) if cases else np.empty((0, 1), np.float32)
    ends = np.cumsum([0, *(len(case) for case in cases)])
    return Sequences(path.name, flat, ends, y)


def _read_tag(header: _Header, line: str, where: str) -> bool:
    """Takes in a header line; says whether the data follow."""
    if not line.startswith("@"):
        raise ValueError(
            message(
                f"{where} must start with @ or #, because @data did not come yet",
                repr(line[:40]),
                "check that it is a .ts file of the UEA or UCR archive",
            )
        )
    tag, *values = line[1:].split()
    tag = choice(f"tag in {where}", tag.lower(), _TAGS)
    header.tags.append(tag)
    if tag == "timestamps" and _flag(values, where):
        raise ValueError(
            message(
                f"{where} must say @timestamps false",
                "true",
                "store the values alone, or resample them to equal steps",
            )
        )
    if tag == "univariate":
        header.univariate = _flag(values, where)
    if tag in ("dimension", "dimensions"):
        header.dimensions = _count(values, where)
    if tag == "classlabel" and _flag(values, where):
        header.classes = tuple(values[1:])
    if tag == "targetlabel":
        header.targets = _flag(values, where)
    return tag == "data"


def _flag(values: list[str], where: str) -> bool:
    return choice(f"value in {where}", (values or [""])[0].lower(), ("true", "false")) == "true"


def _count(values: list[str], where: str) -> int:
    if len(values) != 1 or not values[0].isdecimal():
        raise ValueError(
            message(f"{where} must hold one whole number", repr(" ".join(values)), "correct it")
        )
    return int(values[0])


def _label(header: _Header, label: str, where: str) -> str:
    if header.classes is not None:
        if header.classes and label not in header.classes:
            raise ValueError(
                message(
                    f"the class in {where} must be one of {', '.join(header.classes)}",
                    repr(label),
                    "correct it, or the list after @classLabel true",
                )
            )
        return label
    try:
        value = float(label)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(
            message(f"the target in {where} must be a finite number", repr(label), "correct it")
        )
    return label


def _case(header: _Header, dimensions: list[str], where: str) -> Floats:
    wanted = 1 if header.univariate else header.dimensions
    if not dimensions or (wanted is not None and len(dimensions) != wanted):
        raise ValueError(
            message(
                f"{where} must have {wanted or 'at least 1'} dimensions, as the header says",
                f"{len(dimensions)}",
                "check its colons, @univariate and @classLabel",
            )
        )
    channels = []
    for text in dimensions:
        try:
            values = np.array(text.replace("?", "nan").split(","), dtype=np.float64)
        except ValueError as error:
            raise ValueError(
                message(
                    f"{where} must hold numbers separated by commas",
                    str(error).rstrip("."),
                    "correct it; a missing value is written ?",
                )
            ) from error
        channels.append(values)
    sizes = [len(channel) for channel in channels]
    if len(set(sizes)) > 1:
        raise ValueError(
            message(
                f"all dimensions in {where} must have the same length",
                ", ".join(str(size) for size in sizes),
                "cut or resample them to one length",
            )
        )
    with np.errstate(over="ignore"):  # too large a number becomes infinite and is refused later
        return np.stack(channels, axis=1).astype(np.float32)
