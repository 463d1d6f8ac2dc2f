"""`.arff` files, as the UCR and UEA archives write them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anharmonic._checks import choice, message, require
from anharmonic.data.tables.cells import MISSING, Table

_ADVICE = "check that it is an .arff file of the UEA or UCR archive"
_ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|\S+)\s+(.+)""", re.IGNORECASE)
_CELL = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,]*?)\s*(?:,|$)""")
_NUMERIC = ("numeric", "real", "integer")


@dataclass
class _Attribute:
    """A column of the file."""

    name: str
    kind: str
    classes: tuple[str, ...] = ()
    cells: list[Any] = field(default_factory=list)

    def arrow(self) -> Any:
        if self.kind == "relational":
            return pa.array([cell.tolist() for cell in self.cells])
        if self.kind == "numeric":
            return pa.array(np.array(self.cells, dtype=np.float64), from_pandas=True)
        return pa.array(self.cells, pa.string())


def read_arff(path: Path) -> Table:
    r"""Reads one `.arff` file: a row per sequence, whose steps are attributes.

    With a relational attribute (several channels) a row holds one quoted text, the channels set
    apart by `\\n`, their values by commas; missing values at the end of all of them end the
    sequence.

    Raises:
        ValueError: If the file breaks these rules; the message names the line.
    """
    attributes: list[_Attribute] = []
    started, inside = False, ""
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        for number, raw in enumerate(lines, start=1):
            line = raw.strip()
            if not line or line.startswith("%"):
                continue
            where = f"line {number} of {path.name}"
            if started:
                _read_row(attributes, line, where)
                continue
            require(line[0] == "@", where, line[:40], "a line with @ before @data", _ADVICE)
            tag = line.split(maxsplit=1)[0].lower()
            choice(f"tag in {where}", tag, ("@relation", "@attribute", "@end", "@data"))
            started = tag == "@data"
            if tag == "@end":
                inside = ""
            if tag == "@attribute" and not inside:
                attributes.append(_attribute(line, where))
                inside = attributes[-1].name if attributes[-1].kind == "relational" else ""
    names = [attribute.name for attribute in attributes]
    require(started, f"tags of {path.name}", names[:5], "followed by a line @data", _ADVICE)
    columns = [attribute.arrow() for attribute in attributes]
    return Table(pa.Table.from_arrays(columns, names=names), path.name)


def _attribute(line: str, where: str) -> _Attribute:
    found = _ATTRIBUTE.fullmatch(line)
    if found is None:
        raise ValueError(message(f"{where} must be @attribute NAME TYPE", line[:60], _ADVICE))
    name, kind = found[1].strip("'\""), found[2].strip()
    if kind.startswith("{"):
        classes = _CELL.findall(kind.strip("{}"))
        return _Attribute(name, "class", tuple(cell.strip("'\"") for cell in classes if cell))
    word = kind.split()[0].lower()
    choice(f"type in {where}", word, (*_NUMERIC, "string", "relational"))
    return _Attribute(name, "numeric" if word in _NUMERIC else word)


def _read_row(attributes: list[_Attribute], line: str, where: str) -> None:
    advice = "write every value, or read it with another tool first"
    require(not line.startswith("{"), where, "a sparse row {...}", "a row of values", advice)
    quoted = "'" in line or '"' in line
    cells = [found[1] for found in _CELL.finditer(line)] if quoted else line.split(",")
    if quoted and len(cells) == len(attributes) + 1 and cells[-1] == "":
        cells.pop()  # the empty match at the end of the line
    expected = f"{len(attributes)}, one for every attribute"
    fits = len(cells) == len(attributes)
    require(fits, f"values in {where}", len(cells), expected, "complete or remove this line")
    for attribute, raw in zip(attributes, cells, strict=True):
        cell = raw.strip()
        bare = cell[1:-1] if cell[:1] in ("'", '"') and len(cell) > 1 else cell
        if attribute.kind == "relational":
            attribute.cells.append(_channels(bare, where))
        elif attribute.kind == "numeric":
            attribute.cells.append(_numbers([bare], where)[0])
        else:
            known = not attribute.classes or bare in attribute.classes or bare in MISSING
            expected = f"one of {', '.join(attribute.classes)}"
            advice = f"correct it, or the list of {attribute.name!r}"
            require(known, f"{attribute.name!r} in {where}", bare, expected, advice)
            attribute.cells.append(None if bare in MISSING[:2] else bare)


def _channels(text: str, where: str) -> NDArray[np.float64]:
    """The channels of one sequence, `[T, F]`."""
    rows = [_numbers(row.split(","), where) for row in re.split(r"\\n|\n", text) if row.strip()]
    sizes = [len(row) for row in rows]
    advice = "cut or resample them to one length"
    one = len(set(sizes)) == 1
    require(one, f"lengths of the channels in {where}", sizes, "equal, of one or more", advice)
    values = np.stack(rows, axis=1)
    known = np.flatnonzero(~np.isnan(values).all(axis=1))
    return values[: 1 + int(known[-1]) if len(known) else 0]


def _numbers(cells: list[str], where: str) -> NDArray[np.float64]:
    try:
        return np.array([np.nan if cell.strip() in MISSING else float(cell) for cell in cells])
    except ValueError as error:
        expected, came = f"{where} must hold numbers", str(error).rstrip(".")
        advice = "correct it; a missing value is written ?"
        raise ValueError(message(expected, came, advice)) from error
