"""Text files of cells: CSV, TSV and blank-separated tables."""

from __future__ import annotations

import csv
import io
import re
import warnings
from dataclasses import replace
from itertools import compress, pairwise, zip_longest
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
from pyarrow import compute
from pyarrow import csv as arrow_csv

from anharmonic._checks import message, require
from anharmonic.data.columns import Columns, are_errors, by_name, is_role, target_rank
from anharmonic.data.tables.cells import MISSING, Table

_MARKS = (",", ";", "\t", "|")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan)", re.IGNORECASE)
_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_FRACTION = re.compile(r"[+-]?\d*[.,]\d*[1-9]")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}([,.]\d{3})+")
_COMMENT = re.compile(r"\s*#(?!(N/A|DIV/0!|VALUE!|REF!|NUM!|NAME\?|NULL!))")  # errors of cells
_INFLUX = re.compile(r"\s*#(group|datatype|default)\b")  # above every table of InfluxDB
_PADDED = re.compile(r"0\d")
_OPEN = re.compile(r'(^|[,;\t| ])"([^"]|"")*$')  # a cell that goes on in the next line
_LOOKED_AT = 50  # lines that decide what separates cells
_ENOUGH = 20_000  # letters of each of them


def read_text(path: Path, given: Columns, typed: bool = True, where: str | None = None) -> Table:
    """Read a text file with one row of cells per line: UTF-8, UTF-16 with a mark, or Windows-1252.

    The first lines determine the separator, the decimal mark, and whether there is a header.
    Columns without names are numbered from 1. `typed` converts columns of numbers and dates.
    Messages call the file `where`, by default its name.
    """
    where = where or path.name
    text = _decoded(path, where)
    if "\n" not in text:
        text = text.replace("\r", "\n")  # as old spreadsheets end lines
    lines = _records(text.split("\n")) if '"' in text else text.split("\n")
    said = re.fullmatch(r"sep=([,;\t|])\s*", lines[0])
    lines[0] = "" if said else lines[0]
    if re.match('"?TOA5"?,', lines[0]):  # of Campbell: the station, and how values were sampled
        lines[0], lines[3:4] = "", [""]
    comments = _comments(lines)
    filled = [at for at, line in enumerate(lines) if line.strip() and at not in comments]
    if not filled:
        came, advice = "a file without a line", "check how it was written"
        raise ValueError(message(f"{where} must be a table of text", came, advice))
    mark = said[1] if said else _mark([lines[at][:_ENOUGH] for at in filled[:_LOOKED_AT]])
    if mark == " ":
        lines = [re.sub(r"[ \t]+", "\t", line.strip()) for line in lines]
        mark = "\t"
    elif '"' not in text and "'" not in text:
        lines = [re.sub(rf"{re.escape(mark)}[ ]+", mark, line) for line in lines]
    while len(filled) > 1 and not lines[filled[-1]].strip(f"{mark} "):
        lines[filled.pop()] = ""  # spreadsheets write empty rows at the end
    looked_at = _split([lines[at] for at in filled[:_LOOKED_AT]], mark)
    rows = [[cell.strip() for cell in row] for row in looked_at]
    comma = mark != "," and any(_has_comma(cell) for row in rows for cell in row)
    if comma:
        _check_commas(where, [cell for row in rows for cell in row], mark)
        rows = [[c.replace(",", ".") if _has_comma(c) else c for c in row] for row in rows]
    elif mark in (";", "\t"):
        _check_points(where, rows)
    skipped = 0 if given.header is False else _lines_above(rows, given)
    if not skipped and _are_start_and_rate(rows):
        skipped = 2
    rows, first, places = rows[skipped:], filled[skipped], filled[skipped:]
    # Names and units may be repeated below.
    others = [any(map(_is_number, row)) or row not in rows[:2] for row in rows[2:]]
    rows, places = ([*every[:2], *compress(every[2:], others)] for every in (rows, places))
    header = _has_header(rows, given) if given.header is None else given.header
    names = []
    numeric = all(map(_is_number, rows[0]))
    if not skipped and given.header is not False and (numeric or not header):
        names = _names_in_comment(lines, comments, first, mark, len(rows[0]))
        if not numeric and not all(name.isidentifier() for name in names):
            names = []  # a sentence with commas
    if header and not names:
        names = _unquoted(rows[0])
        above = filled[skipped : skipped + 1 + _are_units(rows)]
        first = above[-1] + 1
        if not numeric:
            _blank_repeated(where, lines, comments, above)
    if given.header is None and not names:
        _check_lines_above(where, rows, places, given)
    elif given.header is None and header:
        _check_names(where, rows[0], 1 + places[0])
    if given.found:
        _check_header(names or rows[0], bool(names), where)
    _warn_of_rows(where, lines, [at for at in sorted(comments) if at >= first], mark, rows)
    for at in comments:
        lines[at] = ""
    text, header = "\n".join(lines) + "\n", bool(names)
    names = names or [str(number) for number in range(1, len(rows[0]) + 1)]
    kept = (_kept(names, given, where) if header else []) if typed else names
    arrow = _parsed(where, text, mark, "," if comma else ".", names, kept, first)
    named = {*kept, given.target, given.id, given.group, *given.inputs, *given.ignore}
    for name, column in zip(names, arrow.columns, strict=True):
        if typed and name not in named and pa.types.is_string(column.type):
            _check_words(where, name, column.to_pylist(), 1 + first, comma)
    arrow = _with_points(where, arrow) if comma else arrow
    doubtful = [at for at, name in enumerate(names) if _loses(arrow.column(at), name, given)]
    if doubtful:
        written = [names[at] for at in doubtful]
        texts = _parsed(where, text, mark, ".", names, written, first)
        for at, name in zip(doubtful, written, strict=True):
            cells = texts.column(at)
            words, kinds = set(cells.drop_null().to_pylist()), arrow.column(at).drop_null().unique()
            if name not in given.categorical or len(words) > len(kinds):  # 01 beside 1
                arrow = arrow.set_column(at, name, cells)
    return Table(arrow, where, 1 + first, header)


def _records(lines: list[str]) -> list[str]:
    """Join the lines of quoted cells, such as names with the unit below, with blanks."""
    made: list[list[str]] = []
    within = False
    for line in lines:
        if within:
            made[-1].append(line)
        else:
            made.append([line])
        odd = line.count('"') % 2 == 1
        within = within != odd if within else odd and _OPEN.search(line) is not None
    return [" ".join(map(str.strip, parts)) if len(parts) > 1 else parts[0] for parts in made]


def _comments(lines: list[str]) -> set[int]:
    """Places of lines that begin with #, and before the first other line with %."""
    found = {at for at, line in enumerate(lines) if _COMMENT.match(line)}
    for at, line in enumerate(lines):
        if line.lstrip().startswith("%"):
            found.add(at)
        elif line.strip() and at not in found:
            break
    return found


def _blank_repeated(where: str, lines: list[str], comments: set[int], above: list[int]) -> None:
    """Blank lines that repeat the names or units `above` the rows; refuse tables of other names."""
    heads = [lines[at].strip() for at in above]
    below = [at for at in range(above[-1] + 1, len(lines)) if lines[at].strip()]
    annotated = any(_INFLUX.match(lines[at]) for at in comments)
    for before, at in pairwise(below):
        if _INFLUX.match(lines[before]) and at not in comments and lines[at].strip() != heads[0]:
            came = f"{lines[at].strip()[:200]!r} in line {at + 1}"
            expected = f"tables of {where} must all have the columns {heads[0][:200]!r}"
            advice = "export tables of other columns to files of their own, or use pivot() in Flux"
            raise ValueError(message(expected, came, advice))
    again = [at for at in below if lines[at].strip() in heads]
    if again and not annotated:
        text = (
            f"{where} repeats the names of its columns below, first in line {again[0] + 1}. Such "
            f"lines are left out ({len(again)}). If a recording ends there, give each its own file."
        )
        warnings.warn(text, stacklevel=3)
    for at in again:
        lines[at] = ""


def _warn_of_rows(
    where: str, lines: list[str], comments: list[int], mark: str, rows: list[list[str]]
) -> None:
    """Warn of comments below the first row that look like rows, such as those of an id #2."""
    comments = [at for at in comments if not _INFLUX.match(lines[at])]
    alike = [at for at in comments if len(_split([lines[at]], mark)[0]) == len(rows[0]) > 1]
    if alike:
        text = (
            f"Lines of {where} that begin with # are left out as comments, but {len(alike)} of "
            f"them have as many cells as its rows, the first in line {alike[0] + 1}. Quote their "
            "first cells if they are rows."
        )
        warnings.warn(text, stacklevel=2)


def _names_in_comment(
    lines: list[str], comments: set[int], first: int, mark: str, width: int
) -> list[str]:
    """The names of columns in the comment before the first row, as `numpy.savetxt` writes them."""
    at = max((at for at in comments if at < first), default=None)
    if at is None:
        return []
    line = lines[at].strip().lstrip("#%").strip()
    names = [name.strip() for name in _split([line], mark)[0]]
    if len(names) != width and mark == "\t":
        names = line.split()
    fits = len(names) == width > 1 and not any(map(_is_number, names))
    return names if fits else []


def _lines_above(rows: list[list[str]], given: Columns) -> int:
    """How many rows stand above the names of the columns: remarks with fewer cells."""
    usual = max(len(row) for row in rows)
    if sum(len(row) == usual for row in rows) < 3 or usual < 2:
        return 0
    above = next(at for at, row in enumerate(rows) if len(row) == usual)
    below = all(len(row) == usual for row in rows[above:])
    remarks = all(
        len([cell for cell in row if cell]) < usual - 1 or usual < 4 for row in rows[:above]
    )
    named = given.header or (given.header is None and _has_header(rows[above:], given))
    return above if below and remarks and named else 0


def _check_lines_above(
    where: str, rows: list[list[str]], places: list[int], given: Columns
) -> None:
    """Refuse words among values, and names of columns below other lines such as `Device,A7`."""
    for at in range(1, len(rows) - 3):
        if not any(map(_is_number, rows[at])) and _has_header(rows[at:], given):
            came = f"{','.join(rows[at])[:200]!r} in line {1 + places[at]}"
            expected = f"the names of the columns of {where} must be in its first line"
            advice = "remove the lines above, or begin them with #"
            if any(_are_alike(row, rows[at + 1]) for row in rows[1:at]):
                expected = f"lines of {where} below the first must hold values"
                advice = "correct or remove this line, or the lines above if it names the columns"
            raise ValueError(message(expected, came, advice))


def _check_names(where: str, names: list[str], line: int) -> None:
    """Refuse a first line of values with a word, such as ERR: it would name the columns."""
    values = [float(name) for name in names if _is_number(name)]
    named = all(value % 1 == 0 and value >= 0 for value in values) or len(values) < 2
    if named or values in (sorted(values), sorted(values, reverse=True)):
        return
    word = [name for name in names if not _is_number(name)][-1]
    came = f"{word!r} among numbers in line {line}"
    advice = "correct this cell, or write a line of names above"
    raise ValueError(message(f"the first line of {where} must hold names or values", came, advice))


def _are_alike(one: list[str], other: list[str]) -> bool:
    """Whether two rows have numbers in the same columns, except for missing cells."""
    pairs = [pair for pair in zip(one, other, strict=False) if not set(MISSING) & set(pair)]
    return bool(pairs) and all(_is_number(a) == _is_number(b) for a, b in pairs)


def _are_start_and_rate(rows: list[list[str]]) -> bool:
    """Whether two rows above samples give their start since 1970 and their rate, as of Empatica."""
    if len(rows) < 4 or not all(_is_number(cell) for row in rows for cell in row):
        return False
    starts, rates = ({float(cell) for cell in row} for row in rows[:2])
    alike = len(starts) == len(rates) == 1
    largest = max(abs(float(cell)) for row in rows[1:] for cell in row)
    return alike and 1e9 < max(starts) < 1e10 and 0 < max(rates) <= 1000 and largest < 1e8


def _unquoted(names: list[str]) -> list[str]:
    quoted = all(len(name) > 1 and name[0] == name[-1] == "'" for name in names)
    return [name[1:-1] for name in names] if quoted else names


def _are_units(rows: list[list[str]]) -> bool:
    """Whether the row below the names gives units: words where all other rows have numbers.

    A date, or text that comes again below, tells of a row of values with a word such as "ERR".
    """
    if len(rows) < 4:
        return False
    units = False
    for at, cell in enumerate(rows[1]):
        below = [row[at] for row in rows[2:] if at < len(row)]
        bare = cell.strip("'")
        if re.match(r"[+-]?[\d.,]", bare) or (bare and cell in below):
            return False
        if below and all(map(_is_number, below)):
            if bare in MISSING[1:] or len(bare) > 16:
                return False
            units = units or bool(bare)
    return units


def _decoded(path: Path, where: str) -> str:
    raw = path.read_bytes()
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16", "replace")
    advice = "give the file its own ending, or save it as text"
    plain = b"\0" not in raw[: 1 << 16]
    require(plain, where, "a file with zero bytes", "a table of text", advice)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")  # as spreadsheets on Windows save


def _mark(lines: list[str]) -> str:
    """What separates cells: what makes the most of them numbers, blanks if nothing else does."""

    def cells(mark: str) -> list[str]:
        return [cell.strip() for row in _split(lines, mark) for cell in row]

    def score(mark: str) -> tuple[int, int, int]:
        found = cells(mark)
        numeric = sum(_is_number(cell) or (mark != "," and _has_comma(cell)) for cell in found)
        others = [other for other in _MARKS if other != mark]
        whole = sum(_has_comma(cell) or not any(o in cell for o in others) for cell in found)
        return numeric, whole, -len(found)

    best = max(_MARKS, key=score)
    blanks = [cell for line in lines for cell in line.split()]
    alone = len(cells(best)) <= len(lines) and len(blanks) > len(lines)
    numeric = sum(_is_number(cell) or _has_comma(cell) for cell in blanks)
    more = numeric > max(score(best)[0], len(lines))
    if more and best == "\t":  # a tab between names such as "Sensor 1" is no blank
        more = any(" " in cell and all(map(_is_number, cell.split())) for cell in cells(best))
    return " " if alone or more else best


def _split(lines: list[str], mark: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=mark))
    except csv.Error:  # a cell of more than a hundred thousand letters
        return [line.rstrip("\n").split(mark) for line in lines]


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None


def _has_comma(cell: str) -> bool:
    return _COMMA.fullmatch(cell) is not None


def _check_commas(where: str, cells: list[str], mark: str) -> None:
    """Refuse commas that may separate thousands; semicolons tell of decimal commas."""
    commas = [cell for cell in cells if _has_comma(cell)]
    points = [cell for cell in cells if "." in cell and _is_number(cell)]
    if (points or mark != ";") and all(map(_THOUSANDS.fullmatch, commas)):
        _refuse_thousands(where, f"{commas[0]!r}{f' beside {points[0]!r}' if points else ''}")


def _check_points(where: str, rows: list[list[str]]) -> None:
    """Refuse points that may all separate thousands: 1.010 beside 990, not beside 990.000."""
    points = {cell for row in rows for cell in row if "." in cell and _is_number(cell)}
    if not points or not all(map(_THOUSANDS.fullmatch, points)):
        return
    for cells in zip_longest(*rows[1:], fillvalue=""):
        small = [cell for cell in cells if re.fullmatch(r"[+-]?[1-9]\d{0,2}", cell)]
        pointed = [cell for cell in cells if cell in points]
        if pointed and small:
            _refuse_thousands(where, f"{pointed[0]!r} beside {small[0]!r}")


def _check_words(where: str, name: str, cells: list[str | None], first: int, comma: bool) -> None:
    """Refuse a few words such as ERR in a column of measured numbers."""
    stripped = enumerate(((cell or "").strip() for cell in cells), first)
    known = {row: cell for row, cell in stripped if cell not in MISSING}
    words, values = {}, set()
    for row, cell in known.items():
        if _is_number(cell) or (comma and _has_comma(cell)):
            values.add(cell)
        else:
            words[row] = cell
            if not are_errors(len(words), len(known)):  # such as dates
                return
    # Few whole numbers may be names or classes, and words among them, too.
    if words and (len(values) > 20 or any(map(_FRACTION.match, values))):
        # If every column has such words, the first are names: the header was not recognised.
        row = list(words)[1 if len(words) > 1 else 0]
        came = f"{words[row]!r} in row {row}, column {name!r} ({len(words)} such cells)"
        advice = "correct or empty this cell or remove the row, or say that the column holds names "
        advice += (
            "with --target-column, --id-column or --group-column, or leave it out with --ignore"
        )
        raise ValueError(message(f"values in {where} must be numbers", came, advice))


def _with_points(where: str, arrow: pa.Table) -> pa.Table:
    """Return the table with decimal points in columns of text that has decimal commas alone.

    Columns of points that may separate thousands, beside decimal commas, are refused.
    """
    for at, (name, column) in enumerate(zip(arrow.column_names, arrow.columns, strict=True)):
        if not pa.types.is_string(column.type):
            continue
        cells = [cell for cell in column.unique().to_pylist() if cell not in (None, *MISSING)]
        pointed = next((cell for cell in cells if "." in cell), None)
        if pointed and all(cell.isdecimal() or _THOUSANDS.fullmatch(cell) for cell in cells):
            _refuse_thousands(where, f"{pointed!r} in column {name!r}, beside decimal commas")
        if cells and all(_is_number(cell) or _has_comma(cell) for cell in cells):
            arrow = arrow.set_column(at, name, compute.replace_substring(column, ",", "."))
    return arrow


def _refuse_thousands(where: str, came: str) -> NoReturn:
    expected = f"numbers of {where} must have a decimal mark alone"
    advice = "write them with decimal points and without marks between thousands"
    raise ValueError(message(expected, f"{came}, which may be thousands", advice))


def _has_header(rows: list[list[str]], given: Columns) -> bool:
    """Whether the first row names columns.

    It does if a cell names a role, if it numbers the columns, or if it has text where the rows
    below have numbers.
    """
    first = rows[0]
    steps = [float(cell) for cell in first if _is_number(cell)]
    rising = all(a < b for a, b in pairwise(steps))
    if first[0] == "" and len(first) > 1:  # an index and numbers, as pandas writes them
        if first[1:] == [str(at) for at in range(len(first) - 1)]:
            return True
    roles = [cell for cell in first if is_role(cell, given)]
    if roles and not any(cell in row for row in rows[1:] for cell in roles):
        return True
    if roles:
        return rising  # steps may be the names of columns, but values seldom rise all along
    text = [cell for cell in first if not _is_number(cell) and cell not in MISSING]
    again = any(cell in row for row in rows[1:] for cell in text)
    numbered = steps in ([float(i) for i in range(start, start + len(steps))] for start in (0, 1))
    if numbered and not again and len(steps) > 2 and len(steps) >= len(first) - 2:
        return True
    years = len(steps) > 2 and all(1500 <= step <= 2300 for step in steps)
    if years and text and all(b - a == 1 for a, b in pairwise(steps)):
        return True
    if not text or len(rows) == 1:
        return len(text) > 1
    rest = rows[2:] if _are_units(rows) else rows[1:]
    below = [
        all(_is_number(row[at]) or row[at] in MISSING for row in rest if at < len(row))
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


def _kept(names: list[str], given: Columns, where: str) -> list[str]:
    """Name columns that stay text: "01" and "1.0" may be names, classes or categories."""
    searched = ("id", "group") if given.forecast else ("target", "id", "group")
    if given.found:  # a column that is not there is joined later, as date and clock are
        known_id, known_time = (n if n in names else None for n in (given.id, given.time))
        given = replace(given, id=known_id, time=known_time)
    roles = by_name(names, given, where, targets=False, searched=searched)
    kept = [name for role, name in roles.items() if role != "time"]
    kept += [name for name, kinds in given.categories if any(map(_PADDED.match, kinds))]
    kept += [name for name in names if target_rank(name) == 2 and not given.forecast]
    return [name for name in names if name in kept]


def _loses(column: Any, name: str, given: Columns) -> bool:
    """Whether Arrow's type may lose what the cells say: 01 and 1, 03:25, 1.0, or given dates."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return given.date_format is not None and given.time in (None, name)
    if pa.types.is_time(column.type):
        return bool(compute.all(compute.equal(compute.second(column), 0)).as_py())
    if pa.types.is_floating(column.type) and target_rank(name) == 3 and not given.forecast:
        return len(kinds := column.unique()) <= 21 and compute.floor(kinds).equals(kinds)
    fresh = name in given.categorical and not given.found
    return fresh and pa.types.is_integer(column.type)


def _parsed(
    where: str,
    text: str,
    mark: str,
    point: str,
    names: list[str],
    kept: list[str],
    first: int,
) -> pa.Table:
    data = text.encode()
    try:
        return arrow_csv.read_csv(
            io.BytesIO(data),
            # One block: a row may be longer than the usual one. One thread: errors name the row.
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=min(max(len(data) + 1, 1 << 20), (1 << 31) - 1),
                column_names=names,
                skip_rows_after_names=0,
                skip_rows=first,
            ),
            arrow_csv.ParseOptions(delimiter=mark, newlines_in_values='"' in text),
            arrow_csv.ConvertOptions(
                null_values=list(MISSING),
                decimal_point=point,
                column_types=dict.fromkeys(kept, pa.string()),
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid as error:
        came = str(error).strip().rstrip(".").replace("CSV parse error: ", "")
        expected = f"{where} must have as many cells in every row"
        raise ValueError(message(expected, came[:200], "complete or remove this row")) from error
