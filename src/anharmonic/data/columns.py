"""Which column of a table is what: named by the user, or found by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from anharmonic._checks import boolean, choice, listed, message, natural, require

Layout = Literal["auto", "wide", "long", "nested"]
ROLES = ("target", "id", "time", "group")
# Names in lower case, better ones first: a row of words is as good as each other.
_KNOWN: dict[str, tuple[tuple[str, ...], ...]] = {
    "target": (("target", "label", "labels", "class", "outcome"), ("y",)),
    "id": (
        ("id", "series", "series_id", "sequence", "sequence_id", "case", "case_id"),
        ("unique_id", "item_id", "trial", "trial_id", "sample_id"),
    ),
    "time": (("time", "timestamp", "datetime", "date"), ("t", "ds", "timestep", "time_step")),
    "group": (
        ("group", "subject", "patient", "participant", "person", "recording"),
        ("group_id", "subject_id", "patient_id", "participant_id", "person_id", "recording_id"),
    ),
}


@dataclass(frozen=True)
class Columns:
    """Which column of a table is what, and how sequences lie in it.

    Attributes:
        target: What is predicted.
        id: Which sequence a row is of.
        time: When a row was measured (of a row per sequence: when the sequence begins).
        group: The subject or recording.
        layout: "wide" (a row is a sequence, its columns are the steps), "long" (a row is a step),
            "nested" (a row is a sequence, its cells are lists); "auto" is found out.
        values: The columns of the channels, where they have names.
        header: Whether a text file begins with the names of its columns; None is found out.
        width: Number of columns; 0 if not known.
        windows: Whether sequences are to be cut: rows without ids are then steps of one recording,
            if columns do not number the steps.
        forecast: Whether values are forecast: then a column of numbers is no target by its name.
        found: Whether this was found in a table: then a role without a column has none.

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

    def __post_init__(self) -> None:
        choice("layout", self.layout, ("auto", "wide", "long", "nested"))
        for name in ("windows", "forecast", "found"):
            boolean(name, getattr(self, name))
        if self.header is not None:
            boolean("header", self.header)
        natural("width", self.width)
        for value in self.values:
            require(
                isinstance(value, str),
                "values",
                value,
                "names of columns",
                "give strings",
                TypeError,
            )
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
        if self.values:
            shown = [repr(name) for name in self.values]
            if len(shown) > 8:
                shown = [*shown[:6], "...", shown[-1]]
            said.append(f"values {listed(shown)}")
        if self.header is False:
            said.append("no header row, columns are numbered from 1")
        return f"read as {self.layout} ({rows.get(self.layout)}): {', '.join(said)}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self) | {"values": list(self.values)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Columns:
        """From JSON values.

        Raises:
            ValueError: If a key or value is not known.
            TypeError: If a name is no string.
        """
        for key in values:
            choice("key of columns", key, [field.name for field in fields(cls)])
        return cls(**{**values, "values": tuple(values.get("values", ()))})


def is_role(name: str, given: Columns) -> bool:
    """Whether a column of this name has a role.

    Example:
        >>> is_role("Label", Columns()), is_role("x", Columns()), is_role("x", Columns(time="x"))
        (True, False, True)
    """
    said = name in [getattr(given, role) for role in ROLES]
    return said or any(
        name.strip().lower() in words for known in _KNOWN.values() for words in known
    )


def by_name(names: Sequence[str], given: Columns, where: str, targets: bool) -> dict[str, str]:
    """The columns that have a role: the given ones, else those with a name known for it.

    Args:
        names: Of all columns.
        given: What the user said, or what was found in the table of training.
        where: The table, for messages.
        targets: Whether the target has to be there if it is given.

    Raises:
        ValueError: If a given column is not there, or several could have one role.
    """
    roles: dict[str, str] = {}
    for role in ROLES:
        name = getattr(given, role)
        if name is None:
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
    for role in ROLES:
        if role in roles or getattr(given, role) is not None:
            continue
        free = [name for name in names if name not in roles.values()]
        for known in _KNOWN[role]:
            could = [name for name in free if name.strip().lower() in known]
            if role == "target" and {"x", "y", "z"} <= {name.lower() for name in free}:
                could = [name for name in could if name.lower() != "y"]  # three axes of space
            if could:
                flag, advice = f"--{role}-column", f"say which with {role}_column=..."
                advice = f"{advice} ({flag} {could[0]!r})"
                require(len(could) == 1, f"{role} column in {where}", could, "one column", advice)
                roles[role] = could[0]
                break
    return roles
