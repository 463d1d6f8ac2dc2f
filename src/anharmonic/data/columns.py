"""Which column of a table is what: named by the user, or found by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from anharmonic._checks import boolean, choice, listed, message, natural, require
from anharmonic.data.names import GROUPS, IDS, TARGETS, TIMES, plain

Layout = Literal["auto", "wide", "long", "nested"]
ROLES = ("target", "id", "time", "group")
Duplicates = Literal["refuse", "first", "mean"]
Labels = Literal["auto", "sequence", "step"]
NO_TIME = "none"
# Names in lower case, better ones first: a row of words is as good as each other.
_KNOWN = {"target": TARGETS[:2], "id": IDS, "time": (TIMES,), "group": GROUPS}


@dataclass(frozen=True)
class Columns:
    """Which column of a table is what, and how sequences lie in it.

    Attributes:
        target: What is predicted.
        id: Which sequence a row is of.
        time: When a row was measured (of a row per sequence: when the sequence begins); "none" for
            no column at all: rows are then in the order of the file.
        group: The subject or recording.
        layout: "wide" (a row is a sequence, its columns are the steps), "long" (a row is a step),
            "nested" (a row is a sequence, its cells are lists); "auto" is found out.
        values: The columns of the channels, where they have names; of a row per sequence those of
            its steps.
        header: Whether a text file begins with the names of its columns; None is found out.
        width: Number of columns; 0 if not known.
        windows: Whether sequences are to be cut: rows without ids are then steps of one recording,
            if columns do not number the steps.
        forecast: Whether values are forecast: then a column of numbers is no target by its name.
        found: Whether this was found in a table: then a role without a column has none.
        ignore: Columns that are left out.
        date_format: How dates are written, as of `datetime.strptime`; None is found out.
        duplicates: What becomes of rows that repeat a time: "refuse", "first" or "mean".
        labels: Whether a row per step has a target per "sequence" or per "step"; "auto" is found
            out.

    Example:
        >>> Columns(target="label") == Columns.from_dict(Columns(target="label").to_dict())
        True
    """

    target: str | None = None
    id: str | None = None
    time: str | None = None
    group: str | None = None
    layout: Layout = "auto"
    values: tuple[str, ...] = ()
    header: bool | None = None
    width: int = 0
    found: bool = False
    windows: bool = False
    forecast: bool = False
    ignore: tuple[str, ...] = ()
    date_format: str | None = None
    duplicates: Duplicates = "refuse"
    labels: Labels = "auto"

    def __post_init__(self) -> None:
        choice("layout", self.layout, ("auto", "wide", "long", "nested"))
        choice("duplicates", self.duplicates, ("refuse", "first", "mean"))
        choice("labels", self.labels, ("auto", "sequence", "step"))
        for name in ("windows", "forecast", "found"):
            boolean(name, getattr(self, name))
        if self.header is not None:
            boolean("header", self.header)
        natural("width", self.width)
        for field, given in (("values", self.values), ("ignore", self.ignore)):
            for value in given:
                text, advice = isinstance(value, str), "give strings"
                require(text, field, value, "names of columns", advice, TypeError)
        text = self.date_format is None or isinstance(self.date_format, str)
        advice = "for example '%d.%m.%Y'"
        require(text, "date_format", self.date_format, "a string", advice, TypeError)
        advice = "name what is forecast with forecast=... (--forecast)"
        free = self.found or not self.forecast or self.target is None
        require(free, "target_column with horizon", self.target, "None", advice)
        roles: dict[str, str] = {}
        for role in ROLES:
            name = getattr(self, role)
            if name is None:
                continue
            if not isinstance(name, str):
                advice = "give the column's name, or None to find it"
                came = f"{name!r} ({type(name).__name__})"
                raise TypeError(message(f"{role}_column must be a string", came, advice))
            once, expected = name not in roles, f"not that of {roles.get(name)}_column"
            require(once, f"{role}_column", name, expected, "name another column")
            roles[name] = role

    def describe(self) -> str:
        """Says in a line what the columns were taken for.

        Example:
            >>> Columns(target="label", layout="wide", header=True).describe()
            "read as wide (a row per sequence): target column 'label'"
        """
        rows = {"wide": "a row per sequence", "long": "a row per step", "nested": "lists in cells"}
        said = [f"{role} column {name!r}" for role in ROLES if (name := getattr(self, role))]
        if self.values and self.layout != "wide":
            said.append(f"values {_shortened(self.values)}")
        if self.header is False:
            said.append("no header row, columns are numbered from 1")
        if self.ignore:
            said.append(f"left out {_shortened(self.ignore)}")
        return f"read as {self.layout} ({rows.get(self.layout)}): {', '.join(said)}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self) | {"values": list(self.values), "ignore": list(self.ignore)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Columns:
        """From JSON values.

        Raises:
            ValueError: If a key or value is not known.
            TypeError: If a name is no string.
        """
        for key in values:
            choice("key of columns", key, [field.name for field in fields(cls)])
        tuples = {name: tuple(values.get(name, ())) for name in ("values", "ignore")}
        return cls(**{**values, **tuples})


def _shortened(names: Sequence[str]) -> str:
    shown = [repr(name) for name in names]
    return listed([*shown[:6], "...", shown[-1]] if len(shown) > 8 else shown)


def is_role(name: str, given: Columns) -> bool:
    """Whether a column of this name has a role.

    Example:
        >>> is_role("Label", Columns()), is_role("x", Columns()), is_role("x", Columns(time="x"))
        (True, False, True)
    """
    said = name in [getattr(given, role) for role in ROLES]
    return said or any(plain(name) in words for known in _KNOWN.values() for words in known)


def by_name(
    names: Sequence[str],
    given: Columns,
    where: str,
    targets: bool,
    searched: Sequence[str] = ROLES,
) -> dict[str, str]:
    """The columns that have a role: the given ones, else those with a name known for it.

    Args:
        names: Of all columns.
        given: What the user said, or what was found in the table of training.
        where: The table, for messages.
        targets: Whether the target has to be there if it is given.
        searched: The roles to look for by name.

    Raises:
        ValueError: If a given column is not there, or several could have one role.
    """
    roles: dict[str, str] = {}
    for role in ROLES:
        name = getattr(given, role)
        if name is None or (role == "time" and name == NO_TIME and name not in names):
            continue
        if name in names:
            roles[role] = name
        elif targets or role in ("id", "time"):
            lacking = f"{where} must have the {role} column {name!r}, as in training"
            shown = [*names[:5], *(["..."] if len(names) > 5 else [])]
            if given.found:
                raise ValueError(message(lacking, f"the columns {', '.join(shown)}", "add it"))
            choice(f"{role}_column in {where}", name, names)
    if given.found:
        return roles
    for role in searched:
        if role in roles or getattr(given, role) is not None:
            continue
        free = [name for name in names if name not in roles.values()]
        for known in _KNOWN[role]:
            could = [name for name in free if plain(name) in known]
            if role == "target" and {"x", "y", "z"} <= {name.lower() for name in free}:
                could = [name for name in could if name.lower() != "y"]  # three axes of space
            if could:
                flag, advice = f"--{role}-column", f"say which with {role}_column=..."
                advice = f"{advice} ({flag} {could[0]!r})"
                require(len(could) == 1, f"{role} column in {where}", could, "one column", advice)
                roles[role] = could[0]
                break
    return roles
