"""Tables of the user's own data, read with Arrow: text, Parquet, and frames in memory."""

from anharmonic._checks import missing_extra

try:
    from anharmonic.data.tables.frames import frame_table
    from anharmonic.data.tables.read import read_table, sequences_of
except ModuleNotFoundError as error:
    raise missing_extra("pyarrow", "train", "reading tables") from error

__all__ = ["frame_table", "read_table", "sequences_of"]
