"""Every table of the corpus is read right, or refused with the flag that decides."""

import sys
from pathlib import Path

import numpy as np
import pytest

from anharmonic.data.own import odd_channels

sys.path.insert(0, str(Path(__file__).parent))
from corpus import CASES


def differences(part, right):
    """What of a reading is not as it must be, in words."""
    columns = part.columns
    per = None if part.y is None else "step" if part.per_step else "sequence"
    came = {
        **{role: getattr(columns, role) for role in ("target", "id", "time", "group", "layout")},
        "per": per,
        "lengths": part.lengths.tolist(),
    }
    want = {key: right.get(key) for key in came}
    came["ignored"] = sorted(set(getattr(columns, "ignore", ())) - {"", "Unnamed: 0"})
    want["ignored"] = sorted(right.get("ignored", ()))
    if "channels" in right:
        came["channels"], want["channels"] = part.channels, tuple(right["channels"])
    if "x" in right:
        came["x"] = np.round(part.x[:, 0].astype(float), 3).tolist()
        want["x"] = np.round(np.float32(right["x"]).astype(float), 3).tolist()
    if "begins" in right:
        came["begins"] = (
            str(np.asarray(part.times)[:1].astype("M8[D]")[0])
            if part.times is not None and part.times.dtype.kind == "M"
            else None
        )
        want["begins"] = right["begins"]
    if "interval" in right:
        came["interval"] = None if part.interval is None else round(part.interval, 6)
        want["interval"] = right["interval"]
    if "classes" in right:
        came["classes"], want["classes"] = len(set(part.y.tolist())), right["classes"]
    if right.get("sorted_within"):
        came["sorted"] = all(
            (np.diff(x) > 0).all() for x in np.split(part.x[:, 0], part.offsets[1:-1])
        )
        want["sorted"] = True
    if "noted" in right:
        names = [note.partition(": ")[2].split(", ") for note in odd_channels(part)]
        came["noted"], want["noted"] = names, [[name] for name in right["noted"]]
    return [f"{key}: {came[key]!r}, not {want[key]!r}" for key in came if came[key] != want[key]]


@pytest.mark.parametrize("one", CASES, ids=[one.name for one in CASES])
def test_every_table_is_read_right_or_refused(one, read):
    arguments = (one.text, one.mode, one.file)
    if "refuse" in one.right:
        with pytest.raises(ValueError) as error:
            read(*arguments, **one.given)
        assert one.right["refuse"] in str(error.value)
        assert "; got " in str(error.value)
    else:
        assert not differences(read(*arguments, **one.given), one.right)


def test_few_are_refused_although_a_person_would_know():
    assert len(CASES) >= 120
    assert sum(one.known for one in CASES) <= len(CASES) / 10
