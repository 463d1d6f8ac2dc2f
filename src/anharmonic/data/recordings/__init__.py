"""A folder of recordings: a file for each of them, and what labels and groups them."""

from anharmonic.data.recordings.folder import (
    data_files,
    holds_recordings,
    is_input,
    read_folder,
    read_one,
)

__all__ = ["data_files", "holds_recordings", "is_input", "read_folder", "read_one"]
