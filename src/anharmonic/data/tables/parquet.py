"""Read Parquet files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from anharmonic._checks import message
from anharmonic.data.archive import judge_size
from anharmonic.data.tables.cells import Table


def read_parquet(path: Path) -> Table:
    """Read one Parquet file; refuse a content far larger than the file."""
    try:
        # Opening the file itself keeps folder names from becoming partition columns.
        with parquet.ParquetFile(path) as file:
            # Assume 8 bytes per cell. Text takes more, but compresses no better than numbers.
            judge_size(8 * file.metadata.num_rows * file.metadata.num_columns, path)
            return Table(file.read(), path.name)
    except (pa.ArrowException, OSError, ValueError) as error:
        came = f"{type(error).__name__}: {str(error).strip().rstrip('.')[:200]}"
        expected = f"{path.name} must be a sound Parquet file"
        raise ValueError(message(expected, came, "write it again")) from error
