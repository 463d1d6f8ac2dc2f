"""What is said of scores."""

from anharmonic.pages import worst_confusion
from anharmonic.pages.scores import class_rows, confusion_rows


def test_the_worst_confusion_is_named_both_ways():
    names = ["ant", "bee", "cat"]
    said = worst_confusion(names, [[9, 1, 0], [2, 5, 7], [3, 0, 6]])
    assert said == "Most often 'bee' is taken for 'cat' (7 of 14)."
    said = worst_confusion(names, [[9, 1, 0], [2, 5, 0], [3, 0, 6]])
    assert said == "Most often 'cat' is taken for 'ant' (3 of 9)."


def test_what_is_right_is_no_confusion():
    assert worst_confusion(["a", "b"], [[90, 0], [0, 10]]) == "No class is taken for another."
    assert worst_confusion(["a", "b"], [[90, 0], [1, 9]]) == (
        "Most often 'b' is taken for 'a' (1 of 10)."
    )


def test_rows_of_a_confusion_matrix_are_true_classes():
    from anharmonic.data.scores import ClassScores, ScoreTable

    classes = (ClassScores("a", 100.0, 50.0, 66.6667, 4), ClassScores("b", 60.0, 100.0, 75.0, 3))
    table = ScoreTable(7, {}, {}, classes, confusion=((2, 2), (0, 3)))
    assert confusion_rows(table) == (
        ("true, predicted as", "a", "b"),
        [("a", "2", "2"), ("b", "0", "3")],
    )
    assert class_rows(table)[0] == ("a", "100 %", "50 %", "66.7 %", "4")
