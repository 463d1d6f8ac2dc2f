"""Text files of cells: CSV, TSV and tables set apart by blanks."""

from __future__ import annotations

import csv
import io
import re
from itertools import islice, pairwise
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as arrow_csv

from anharmonic._checks import message, require
from anharmonic.data.columns import Columns, by_name, is_role
from anharmonic.data.tables.cells import MISSING, Table

_MARKS = (",", ";", "\t", "|")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan)", re.IGNORECASE)
_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_LOOKED_AT = 50  # lines that decide what separates cells
_ENOUGH = 20_000  # letters of each of them


def read_text(path: Path, given: Columns) -> Table:
    """Reads a text file, every line a row of cells.

    What separates cells, whether decimals are written with a comma, and whether the first line
    names the columns is seen from the first lines; columns without names are numbered from 1.

    Args:
        path: The file: UTF-8, UTF-16 with its mark, or Windows-1252.
        given: What is known of its columns.

    Raises:
        ValueError: If it is no text, is empty, or a row has another number of cells than the first.
    """
    text = _decoded(path)
    lines = list(islice((line for line in io.StringIO(text) if line.strip()), _LOOKED_AT))
    advice = "check how it was written"
    require(bool(lines), path.name, "a file without a line", "a table of text", advice)
    mark = _mark([line[:_ENOUGH] for line in lines])
    if mark == " ":
        text = "\n".join(re.sub(r"[ \t]+", "\t", line.strip()) for line in text.splitlines())
        lines = [re.sub(r"[ \t]+", "\t", line.strip()) for line in lines]
        mark = "\t"
    rows = [[cell.strip() for cell in row] for row in _split(lines, mark)]
    header = _has_header(rows, given) if given.header is None else given.header
    if given.found:
        _check_header(rows[0], header, path.name)
    comma = mark != "," and any(_COMMA.fullmatch(cell) for row in rows for cell in row)
    names = rows[0] if header else [str(number) for number in range(1, len(rows[0]) + 1)]
    return Table(
        _parsed(path, text, mark, comma, header, names, given), path.name, 1 + header, header
    )


def _decoded(path: Path) -> str:
    raw = path.read_bytes()
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16", "replace")
    advice = "give the file its own ending, or save it as text"
    plain = b"\0" not in raw[: 1 << 16]
    require(plain, path.name, "a file with zero bytes", "a table of text", advice)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")  # as spreadsheets on Windows save


def _mark(lines: list[str]) -> str:
    """What separates cells: what makes the most of them numbers, blanks if nothing else does."""

    def cells(mark: str) -> list[str]:
        return [cell.strip() for row in _split(lines, mark) for cell in row]

    def score(mark: str) -> tuple[int, int]:
        found = cells(mark)
        numeric = sum(
            _is_number(cell) or (mark != "," and bool(_COMMA.fullmatch(cell))) for cell in found
        )
        return numeric, len(found)

    best = max(_MARKS, key=score)
    blanks = [cell for line in lines for cell in line.split()]
    alone = len(cells(best)) <= len(lines) and len(blanks) > len(lines)
    more = sum(map(_is_number, blanks)) > max(score(best)[0], len(lines))
    return " " if alone or more else best


def _split(lines: list[str], mark: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=mark))
    except csv.Error:  # a cell of more than a hundred thousand letters
        return [line.rstrip("\n").split(mark) for line in lines]


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None


def _has_header(rows: list[list[str]], given: Columns) -> bool:
    """Whether the first row names columns.

    It does if a cell names a role, if it numbers the columns, or if it has text where the rows
    below have numbers.
    """
    first = rows[0]
    steps = [float(cell) for cell in first if _is_number(cell)]
    rising = all(a < b for a, b in pairwise(steps))
    if any(is_role(cell, given) for cell in first):
        return rising  # steps may be the names of columns, but values seldom rise all along
    text = [cell for cell in first if not _is_number(cell) and cell not in MISSING]
    again = any(cell in row for row in rows[1:] for cell in text)
    numbered = steps in ([float(i) for i in range(start, start + len(steps))] for start in (0, 1))
    if numbered and not again and len(steps) > 2 and len(steps) >= len(first) - 2:
        return True
    if not text or len(rows) == 1:
        return len(text) > 1
    below = [
        all(_is_number(row[at]) or row[at] in MISSING for row in rows[1:] if at < len(row))
        for at, cell in enumerate(first)
        if cell in text
    ]
    return any(below)


def _check_header(first: list[str], header: bool, where: str) -> None:
    """A file must begin as the one of training did: with names, or with values."""
    steps = [float(cell) for cell in first if _is_number(cell)]
    if header:
        fits = len(steps) < len(first) or all(a < b for a, b in pairwise(steps))
    else:
        fits = bool(steps)
    expected = f"{'names of columns' if header else 'values, no names of columns'}, as in training"
    require(fits, f"the first row of {where}", first[:5], expected, "write it as in training")


def _parsed(
    path: Path, text: str, mark: str, comma: bool, header: bool, names: list[str], given: Columns
) -> pa.Table:
    data = text.encode()
    kept = {}
    if header and not comma and not given.forecast:  # "01" and "1.0" may be names
        roles = by_name(names, given, path.name, targets=False)
        kept = {name: pa.string() for role, name in roles.items() if role != "time"}
    try:
        return arrow_csv.read_csv(
            io.BytesIO(data),
            # One block: a row may be longer than the usual one. One thread: errors name the row.
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=min(max(len(data) + 1, 1 << 20), (1 << 31) - 1),
                column_names=names,
                skip_rows_after_names=0,
                skip_rows=_first_line(text) + 1 if header else 0,
            ),
            arrow_csv.ParseOptions(delimiter=mark, newlines_in_values='"' in text),
            arrow_csv.ConvertOptions(
                null_values=list(MISSING),
                decimal_point="," if comma else ".",
                column_types=kept,
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid as error:
        came = str(error).strip().rstrip(".").replace("CSV parse error: ", "")
        expected = f"{path.name} must have as many cells in every row"
        raise ValueError(message(expected, came[:200], "complete or remove this row")) from error


def _first_line(text: str) -> int:
    """Number of the first line that is not empty, from 0."""
    return next(number for number, line in enumerate(io.StringIO(text)) if line.strip())
