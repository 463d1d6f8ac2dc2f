"""The tables by name: the YAML files beside this one."""

from __future__ import annotations

from pathlib import Path

from anharmonic._checks import choice
from anharmonic.data import data_folder
from anharmonic_papers.tables.base import Table
from anharmonic_papers.tables.read import read_head, read_table

FOLDER = Path(__file__).parent
_FAMILIES = (
    "demo", "cornn", "unicornn", "lem", "short", "spoken", "worms", "graphcon", "g2", "nestaas",
)  # fmt: skip


def list_tables() -> list[str]:
    """Names of all tables: those of a paper beside each other, the papers by their year.

    Example:
        >>> "lem-fitzhugh-nagumo" in list_tables()
        True
    """
    order = {family: place for place, family in enumerate(_FAMILIES)}
    names = (path.stem for path in FOLDER.glob("*.yaml"))
    return sorted(names, key=lambda name: (order.get(name.split("-")[0], len(order)), name))


def table(name: str) -> Table:
    """The table of that name.

    Args:
        name: One of ``list_tables()``.

    Raises:
        ValueError: If there is none; the message lists all and the nearest.

    Example:
        >>> table("lem-psmnist").row("lem-published-code").run.model_options["dt"]
        0.31
    """
    return read_table(FOLDER / f"{choice('table', name, list_tables())}.yaml")


def table_lines() -> list[tuple[str, str]]:
    """Names of the tables, each with what `anharmonic list` says of it."""
    heads = {name: read_head(FOLDER / f"{name}.yaml") for name in list_tables()}
    return [
        (name, f"{head['title']}. Source: {head['source']}.{missing(head.get('data', ''))}")
        for name, head in heads.items()
    ]


def missing(archive: str) -> str:
    """Say that an archive is not in the data folder; empty if it is, or none is wanted.

    Args:
        archive: Its name.
    """
    path = data_folder() / "sequence" / f"{archive}.npz"
    if not archive or path.is_file():
        return ""
    return f" Data not here yet: {path.parent.name}/{path.name}."
