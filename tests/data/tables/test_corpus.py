"""Every table of the corpus is read right, or refused with the flag that decides."""

import sys
from pathlib import Path

import pytest

from anharmonic.data.own import odd_channels

sys.path.insert(0, str(Path(__file__).parent))
from corpus import CASES

# What is not said of a table is not there.
PLAIN = dict.fromkeys(("target", "id", "time", "group", "per")) | {"ignored": []}


@pytest.mark.parametrize(("text", "how", "right", "noted"), CASES.values(), ids=CASES)
def test_every_table_is_read_right_or_refused(read, check, text, how, right, noted):
    if "refuse" in right:
        with pytest.raises(ValueError) as error:
            read(text, **how)
        assert right["refuse"] in str(error.value) and "; got " in str(error.value)
        return
    part = check(text, PLAIN | right, **how)
    if noted:
        assert [note.partition(": ")[2] for note in odd_channels(part)] == list(noted)
