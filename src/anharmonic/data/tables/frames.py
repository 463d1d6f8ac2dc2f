"""Tables in memory: pandas, Arrow-compatible frames, and Hugging Face data sets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from anharmonic._checks import message, require
from anharmonic.data.tables.cells import Table


def frame_table(x: Any, where: str, dated: bool = False) -> Table:
    """Convert a frame to a table.

    It is a pandas DataFrame (named index levels become columns), a Hugging Face Dataset, or an
    object with an Arrow stream, such as a polars DataFrame. `dated` makes the index of a pandas
    DataFrame a column also without a name, called "index".
    """
    try:
        if all(hasattr(x, name) for name in ("to_numpy", "columns", "reset_index")):  # pandas
            return Table(_from_pandas(x, dated), where)
        if hasattr(x, "features"):
            return Table(_from_hugging_face(x), where)
        return Table(pa.table(x), where)
    except pa.ArrowException as error:
        came = f"{type(error).__name__}: {' '.join(str(part) for part in error.args)[:200]}"
        expected = f"{where} must hold cells of one kind in every column"
        raise ValueError(message(expected, came.rstrip("."), "convert this column")) from error


def _from_pandas(frame: Any, dated: bool) -> Any:
    if dated or any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    levels, advice = frame.columns.nlevels, "join them to one name per column"
    require(levels == 1, "levels of the frame's column names", levels, "1", advice)
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    twice = frame.columns[frame.columns.duplicated()].tolist()
    advice = "give every column a name of its own"
    require(not twice, "column names given twice in the frame", twice, "none", advice)
    periods = [name for name in frame.columns if str(frame[name].dtype).startswith("period")]
    frame = frame.assign(**{name: frame[name].dt.to_timestamp() for name in periods})
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()


def _from_hugging_face(data: Any) -> Any:
    expected = "one split of a Hugging Face data set"
    advice = "choose a split that is in memory, e.g. dataset['train']"
    require(hasattr(data, "num_rows"), "data", type(data).__name__, expected, advice)
    table = data.with_format("arrow")[:]
    for at, (name, feature) in enumerate(data.features.items()):
        classes = getattr(feature, "names", None)
        if classes:  # -1 means an unknown class
            names = [
                classes[code] if code is not None and code >= 0 else None
                for code in table.column(name).to_pylist()
            ]
            table = table.set_column(at, name, pa.array(names, pa.string()))
    return table
