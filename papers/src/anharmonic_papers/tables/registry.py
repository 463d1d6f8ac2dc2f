"""The tables by name, from the YAML files beside this module."""

from pathlib import Path

from anharmonic._checks import choice
from anharmonic_papers.tables.base import Table
from anharmonic_papers.tables.read import read_head, read_table

FOLDER = Path(__file__).parent
_FAMILIES = (
    "demo", "cornn", "unicornn", "lem", "short", "spoken", "worms", "graphcon", "g2", "nestaas",
)  # fmt: skip


def list_tables() -> list[str]:
    """Return the names of all tables, grouped by paper in order of year."""
    order = {family: place for place, family in enumerate(_FAMILIES)}
    names = (path.stem for path in FOLDER.glob("*.yaml"))
    return sorted(names, key=lambda name: (order.get(name.split("-")[0], len(order)), name))


def table(name: str) -> Table:
    """Return the table of that name; an error suggests the nearest."""
    return read_table(FOLDER / f"{choice('table', name, list_tables())}.yaml")


def table_lines() -> list[tuple[str, str]]:
    """Return the names of the tables with their descriptions for `anharmonic list`."""
    heads = {name: read_head(FOLDER / f"{name}.yaml") for name in list_tables()}
    return [(name, f"{head['title']}. Source: {head['source']}.") for name, head in heads.items()]
