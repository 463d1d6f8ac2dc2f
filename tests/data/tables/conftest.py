import numpy as np
import pytest

from anharmonic.data.arrays import sequences_from
from anharmonic.data.columns import Columns
from anharmonic.data.readers import read_parts

pytest.importorskip("pyarrow")


@pytest.fixture
def read(tmp_path):
    """Reads a table: its text, its columns by name, or a frame in memory.

    `mode` is what it is read for: "train", "windows" (the same, to be cut), "forecast" or "new"
    (inputs alone). `columns` are those of training, `**given` what a user says of them.
    """

    def read_it(table, mode="train", name="mine.csv", columns=None, **given):
        given |= {"windows": mode in ("windows", "forecast"), "forecast": mode == "forecast"}
        columns, targets = columns or Columns(**given), mode in ("train", "windows")
        if isinstance(table, dict):
            rows = zip(*table.values(), strict=True)
            table = "".join(",".join(map(str, row)) + "\n" for row in [table, *rows])
        if not isinstance(table, str | bytes):
            return sequences_from(table, columns=columns, targets=targets)
        path = tmp_path / name
        path.write_bytes(table if isinstance(table, bytes) else table.encode())
        return read_parts(path, targets=targets, columns=columns)["all"]

    return read_it


ROLES = ("target", "id", "time", "group", "layout")


def said_of(part):
    """What may be asked of a reading."""
    found = {role: getattr(part.columns, role) for role in ROLES}
    for key in ("y", "known_y", "ids", "groups", "times", "elapsed"):
        values = getattr(part, key)
        found[key] = None if values is None else values.tolist()
    dated = part.times is not None and part.times.dtype.kind == "M"
    return found | {
        "per": None if part.y is None else "step" if part.per_step else "sequence",
        "kind": None if part.y is None else part.y.dtype.kind,
        "lengths": part.lengths.tolist(),
        "channels": part.channels,
        "ignored": sorted(set(part.columns.ignore) - {"", "Unnamed: 0"}),
        "interval": None if part.interval is None else round(part.interval, 6),
        "begins": str(part.times[0].astype("M8[D]")) if dated else None,
    }


@pytest.fixture
def check(read):
    """Checks that a table is read as `right` says, and that as new data it has the same inputs.

    `right["x"]` are rows, or the values of the first channel.
    """

    def check_it(table, right, mode="train", name="mine.csv", **given):
        part, right = read(table, mode, name, **given), dict(right)
        new = read(table, "new", name, part.columns)
        np.testing.assert_array_equal(new.x, part.x)
        assert new.interval == part.interval
        if "x" in right:
            x = np.float32(right.pop("x"))
            np.testing.assert_array_equal(part.x if x.ndim == 2 else part.x[:, 0], x)
        found = said_of(part)
        assert {key: found[key] for key in right} == right
        return part

    return check_it
