"""Reader of `.tsf` files, the format of the Monash archive of forecasts."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from anharmonic._checks import message, require
from anharmonic._files import existing
from anharmonic.data.sequences import Floats, Sequences
from anharmonic.data.ts import text_encoding

_TAGS = ("relation", "frequency", "horizon", "missing", "equallength")
_KINDS = ("string", "numeric", "date")
_SECONDS = {
    "seconds": 1, "minutes": 60, "minutely": 60, "half_hourly": 1800, "hourly": 3600,
    "daily": 86400, "weekly": 604800, "monthly": 2629746, "quarterly": 7889238, "yearly": 31556952,
}  # fmt: skip
_ADVICE = "check that it is a .tsf file of the Monash archive"


def read_tsf(path: Path | str) -> Sequences:
    """Read one `.tsf` file: a series in every line after `@data`.

    A line holds the attributes declared by `@attribute NAME string|numeric|date` lines, then the
    values, separated by colons. The first attribute names the series; a date attribute is its start
    time. Series may differ in length. `?` and `NaN` are missing values (NaN).

    Args:
        path: The file.

    Returns:
        The series, without targets.

    Raises:
        FileNotFoundError: If the file is missing.
        ValueError: If the file breaks these rules; the message names the line.
    """
    path = existing(path)
    kinds: list[str] = []
    interval: float | None = None
    names: list[str] = []
    begins: list[np.datetime64] = []
    series: list[Floats] = []
    started = False
    with path.open(encoding=text_encoding(path), newline=None) as lines:
        for number, raw in enumerate(lines, start=1):
            line = raw.strip()
            if not line or line.startswith("#"):
                continue
            where = f"line {number} of {path.name}"
            if not started:
                tag, *values = line.lower().split()
                known = [f"@{name}" for name in (*_TAGS, "attribute", "data")]
                require(tag in known, f"the tag in {where}", tag, f"one of {known}", _ADVICE)
                if tag == "@attribute":
                    kind = values[-1] if values else ""
                    require(kind in _KINDS, f"the kind in {where}", kind, f"{_KINDS}", _ADVICE)
                    kinds.append(kind)
                elif tag == "@frequency" and values:
                    interval = _interval(values[0])
                started = tag == "@data"
                continue
            cells = line.split(":")
            came = f"{len(cells)} parts"
            expected = f"{len(kinds)} attributes and the values, separated by colons"
            require(len(cells) == len(kinds) + 1, where, came, expected, "check its colons")
            series.append(_values(cells[-1], where))
            if kinds:
                names.append(cells[0])
            if "date" in kinds:
                begins.append(_date(cells[kinds.index("date")], where))
    require(started, path.name, "no line @data", "a header that ends with @data", _ADVICE)
    flat = np.concatenate(series) if series else np.empty((0, 1), np.float32)
    offsets = np.cumsum([0, *map(len, series)], dtype=np.int64)
    return Sequences(
        path.name,
        flat,
        offsets,
        times=np.array(begins, "M8[ns]") if begins else None,
        channels=("value",),
        interval=interval,
        ids=np.array(names) if names else None,
    )


def _interval(word: str) -> float | None:
    """Return the seconds of a step such as "10_minutes", "half_hourly" or "4_seconds"."""
    found = re.fullmatch(r"(?:(\d+)_)?(.+)", word)
    seconds = None if found is None else _SECONDS.get(found[2])
    return None if seconds is None or found is None else float(seconds * int(found[1] or 1))


def _values(text: str, where: str) -> Floats:
    try:
        if "_" in text:  # Python would accept it in numbers
            raise ValueError(f"could not read {text[:40]!r}")
        values = np.array(text.replace("?", "nan").split(","), dtype=np.float64)
    except ValueError as error:
        advice = "correct it; a missing value is written ?"
        expected = f"{where} must end with numbers separated by commas"
        raise ValueError(message(expected, str(error).rstrip("."), advice)) from error
    with np.errstate(over="ignore"):  # too large numbers become infinite and are refused later
        return values.astype(np.float32)[:, None]


def _date(text: str, where: str) -> np.datetime64:
    day, _, clock = text.strip().partition(" ")
    try:
        return np.datetime64(f"{day}T{clock.replace('-', ':') or '00:00:00'}", "ns")
    except ValueError as error:
        expected = f"the date in {where} must be like 1979-01-31 00-00-00"
        raise ValueError(message(expected, repr(text), "correct it")) from error
