"""What a user says of columns."""

import pytest

from anharmonic.data.columns import Columns


def test_it_survives_json():
    columns = Columns("label", "id", None, "who", "long", ("a", "b"), True, 5, True)
    assert Columns.from_dict(columns.to_dict()) == columns
    with pytest.raises(ValueError, match="groop"):
        Columns.from_dict({"groop": "x"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": "a", "id": "a"},
        {"id": 3},
        {"layout": "tall"},
        {"windows": "yes"},
        {"forecast": "a"},
        {"found": 1},
        {"header": "no"},
        {"width": "3"},
        {"width": -1},
        {"values": (1, 2)},
        {"label_pattern": "("},
        {"target": "y", "forecast": True},
    ],
)
def test_what_is_no_setting_is_refused(wrong):
    with pytest.raises((TypeError, ValueError), match=rf"(?s){next(iter(wrong))}.*; got .+; .+"):
        Columns(**wrong)
