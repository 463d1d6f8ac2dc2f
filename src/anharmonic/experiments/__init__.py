"""The documents' tables as data, ours beside theirs. Only names tasks, models and numbers."""

from anharmonic.experiments.base import Row, Table
from anharmonic.experiments.registry import expand, list_tables, table

__all__ = ["Row", "Table", "expand", "list_tables", "table"]
