"""Which column is what, by names alone."""

import pytest

from anharmonic.data.columns import Columns, by_name, is_role


def test_names_are_found_in_any_case_and_the_better_name_wins():
    names = ["Series_ID", "Timestamp", "y", "v", "Label", "subject"]
    roles = {"target": "Label", "id": "Series_ID", "time": "Timestamp", "group": "subject"}
    assert by_name(names, Columns(), "here", True) == roles
    assert by_name(["y", "v"], Columns(), "here", True) == {"target": "y"}
    assert by_name(["x", "y", "z"], Columns(), "here", True) == {}  # three axes of space
    assert by_name(["label", "kind"], Columns(target="kind"), "here", True) == {"target": "kind"}
    assert is_role(" Target ", Columns()) and not is_role("v1", Columns())


def test_what_was_found_once_is_not_searched_again():
    found = Columns(target="kind", layout="wide", found=True)
    assert by_name(["kind", "time", "id"], found, "here", True) == {"target": "kind"}
    assert by_name(["time", "id"], found, "here", False) == {}


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
    for text in (*texts, "mine.csv"):
        assert text in str(error.value)


def test_it_survives_json():
    columns = Columns("label", "id", None, "who", "long", ("a", "b"), True, 5, True)
    assert Columns.from_dict(columns.to_dict()) == columns
    with pytest.raises(ValueError, match="groop"):
        Columns.from_dict({"groop": "x"})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("target", {"target": "a", "id": "a"}),
        ("id", {"id": 3}),
        ("layout", {"layout": "tall"}),
        ("windows", {"windows": "yes"}),
        ("forecast", {"forecast": "a"}),
        ("found", {"found": 1}),
        ("header", {"header": "no"}),
        ("width", {"width": "3"}),
        ("width", {"width": -1}),
        ("values", {"values": (1, 2)}),
    ],
)
def test_what_is_no_setting_is_refused(name, wrong):
    with pytest.raises((TypeError, ValueError), match=rf"(?s){name}.*; got .+; .+"):
        Columns(**wrong)
