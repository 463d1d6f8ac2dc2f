"""The papers' tables as data, with our runs. Contains only names of tasks, models and numbers."""

from anharmonic_papers.tables.base import Row, Table
from anharmonic_papers.tables.registry import list_tables, table

__all__ = ["Row", "Table", "list_tables", "table"]
