import pytest

from anharmonic.data.columns import Columns
from anharmonic.data.readers import read_parts
from anharmonic.data.tables import sequences_of
from anharmonic.data.tables.cells import Table

pyarrow = pytest.importorskip("pyarrow")


@pytest.fixture
def read(tmp_path):
    """Reads a table: its text, or its columns by name.

    `mode` is what it is read for: "train", "windows" (the same, to be cut), "forecast" or "new"
    (inputs alone). `columns` are those of training, `**given` what a user says of them.
    """

    def read_it(table, mode="train", name="mine.csv", columns=None, **given):
        if isinstance(table, dict):
            rows = zip(*table.values(), strict=True)
            table = "".join(",".join(map(str, row)) + "\n" for row in [table, *rows])
        path = tmp_path / name
        path.write_bytes(table if isinstance(table, bytes) else table.encode())
        given |= {"windows": mode in ("windows", "forecast"), "forecast": mode == "forecast"}
        targets = mode in ("train", "windows")
        return read_parts(path, targets=targets, columns=columns or Columns(**given))["all"]

    return read_it


@pytest.fixture
def made():
    """Reads a table in memory."""

    def read_it(given=None, targets=True, **columns):
        table = pyarrow.table(columns)
        return sequences_of(Table(table, "here"), given or Columns(), targets)

    return read_it
