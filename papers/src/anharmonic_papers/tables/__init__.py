"""The documents' tables as data, ours beside theirs. Only names tasks, models and numbers."""

from anharmonic_papers.tables.base import Row, Table
from anharmonic_papers.tables.registry import expand, list_tables, table

__all__ = ["Row", "Table", "expand", "list_tables", "table"]
