import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from anharmonic.data.tables.parquet import read_parquet


def test_a_small_file_of_huge_tables_is_refused(tmp_path):
    path, zeros = tmp_path / "bomb.parquet", pa.array(np.zeros(40_000_000, np.int8))
    parquet.write_table(pa.table({"a": zeros}), path, compression="zstd")
    with pytest.raises(ValueError, match="320000000 bytes of arrays in a file of"):
        read_parquet(path)
