"""Which column is what, by names alone."""

import pytest

from anharmonic.data.columns import Columns, by_name, is_role

FOUND = {"target": "kind", "layout": "wide", "found": True}


@pytest.mark.parametrize(
    ("names", "given", "targets", "roles"),
    [
        (["Series_ID", "Timestamp", "y", "v", "Label", "subject"], {}, True,
         {"target": "Label", "id": "Series_ID", "time": "Timestamp", "group": "subject"}),
        (["y", "v"], {}, True, {"target": "y"}),
        (["x", "y", "z"], {}, True, {}),  # three axes of space
        (["label", "kind"], {"target": "kind"}, True, {"target": "kind"}),
        # What was found once is not searched again.
        (["kind", "time", "id"], FOUND, True, {"target": "kind"}),
        (["time", "id"], FOUND, False, {}),
    ],
)  # fmt: skip
def test_names_are_found_in_any_case_and_the_better_name_wins(names, given, targets, roles):
    assert by_name(names, Columns(**given), "here", targets) == roles
    assert is_role(" Target ", Columns()) and not is_role("v1", Columns())


@pytest.mark.parametrize(
    ("names", "given", "texts"),
    [
        (["label", "class"], Columns(), ["'label', 'class'", "--target-column"]),
        (["date", "time", "label"], Columns(), ["'date', 'time'", "--time-column"]),
        (["label"], Columns(target="lable"), ["'lable'", "did you mean 'label'"]),
        (["label"], Columns(id="case"), ["id_column", "'case'"]),
    ],
)
def test_doubt_is_an_error_that_names_the_columns_and_the_flag(names, given, texts):
    with pytest.raises(ValueError) as error:
        by_name(names, given, "mine.csv", True)
    assert not [text for text in (*texts, "mine.csv") if text not in str(error.value)]


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
    ],
)
def test_what_is_no_setting_is_refused(wrong):
    with pytest.raises((TypeError, ValueError), match=rf"(?s){next(iter(wrong))}.*; got .+; .+"):
        Columns(**wrong)
