import numpy as np
import pytest

from anharmonic.data.sequences import Sequences
from anharmonic.data.targets import (
    classes_by_step,
    encode_classes,
    float_targets,
    output_width,
    target_kind,
)


def part(y, per_step=False):
    y = None if y is None else np.asarray(y)
    rows = 4 if y is None else len(y)
    offsets = np.array([0, rows]) if per_step else np.arange(rows + 1)
    return Sequences("here", np.zeros((rows, 1), np.float32), offsets, y, per_step)


@pytest.mark.parametrize(
    ("y", "target", "expected"),
    [
        ([0, 1], "auto", "class"),
        (["a", "b"], "auto", "class"),
        ([b"a", b"b"], "auto", "class"),
        ([0.0, 1.0], "auto", "value"),
        ([[0.0, 1.0]], "auto", "value"),
        ([0.0, 1.0], "class", "class"),
        ([0, 1], "value", "value"),
        (["1", "2"] * 20 + ["ERR"], "auto", "class"),
        (["0.5", "1.5"] * 20 + ["ERR"], "class", "class"),
    ],
)
def test_meaning(y, target, expected):
    assert target_kind(part(y), target) == expected


def test_class_names_are_sorted_as_numbers_where_they_are_and_those_of_training():
    names, codes = encode_classes({"all": part(["10", "2", "-1", "2"])}, "here")
    assert names == ("-1", "2", "10") and codes["all"].tolist() == [2, 1, 0, 1]
    assert encode_classes({"all": part(["b", "10", "a"])}, "here")[0] == ("10", "a", "b")
    assert encode_classes({"all": part([[5.0], [4.0]])}, "here")[0] == ("4", "5")
    assert encode_classes({"all": part([b"b", b"a"])}, "here")[0] == ("a", "b")
    names, codes = encode_classes({"train": part([4, 7, 9]), "test": part([9])}, "here")
    assert names == ("4", "7", "9") and codes["test"].tolist() == [2]
    with pytest.raises(ValueError, match=r"two or more; got ..1..; add"):
        encode_classes({"all": part([1, 1])}, "here")
    with pytest.raises(ValueError, match=r"classes only in test of here must be none; got ..2"):
        encode_classes({"train": part([0, 1]), "test": part([2])}, "here")


def test_labels_as_text_may_be_one_per_step():
    x, offsets = np.zeros((3, 1), np.float32), np.array([0, 2, 3])
    text = Sequences("here", x, offsets, np.array([["a|b", "|"], ["b", ""]]))
    found = classes_by_step(text, "labels")
    assert found.y.tolist() == ["a|b", "|", "b"] and found.per_step
    columns = Sequences("here", x, offsets, np.array([[1, 0], [0, 1]]))
    assert classes_by_step(columns, "labels") is columns


def test_values():
    assert float_targets(part([1, 2])).tolist() == [[1], [2]]
    assert float_targets(part([[1.0, 2.0]])).dtype == np.float32
    one, two, three = (np.zeros((2, k), np.float32) for k in (1, 2, 3))
    assert output_width({"train": three}, "here") == 3
    with pytest.raises(ValueError, match=r"outputs of y in here .*; got .'train': 1, 'test': 2"):
        output_width({"train": one, "test": two}, "here")


VALUES = [0.0, 1.0] * 20 + [1.5]


@pytest.mark.parametrize(
    ("y", "target", "text"),
    [
        (None, "auto", r"here must hold targets; got none; use a .ts file with @classLabel true"),
        ([1j], "auto", r"numbers or strings; got 'complex128'"),
        (["a"], "value", r"must be numbers for target='value'; got ..a..; pass"),
        ([[0, 1]], "auto", r"y in here must be \[N\] for classes.*; got 'int64 \[1, 2\]'; give"),
        ([0.5, 1.0], "class", r"whole numbers or strings for target='class'; got 'float64"),
        ([np.nan, 1.0], "class", r"got 'float64 .2.'; pass --target value"),
        (VALUES, "auto", r"got '1.5' at sequence 40 .1 of 41.*--target value"),
        (VALUES, "class", r"got '1.5' at sequence 40 .1 of 41 targets.; correct it"),
        (["0.5", "1.5", "2"] * 9 + ["ERR"], "auto", r"'ERR' at sequence 27 .1 of 28.*--target c"),
        (["1", "2", "1", "3", "ERR"], "value", r"got 'ERR' at sequence 4 .1 of 5 targets.; c"),
        # Values that do not fit.
        ([1.0, np.nan], "value", r"y in here must be finite; got nan at sequence 1, output 0"),
        (part([[1.0], [np.inf]], True), "value", r"inf at sequence 0, step 1, output 0 \(1 s"),
        (np.zeros((1, 0)), "value", r"must be \[N\], \[N, O\] or \[N, T, O\]; got \[1, 0\]; give"),
    ],
)
def test_what_does_not_fit_is_refused(y, target, text):
    given = y if isinstance(y, Sequences) else part(y)
    with pytest.raises(ValueError, match=text):
        target_kind(given, target)
        float_targets(given)


def test_classes_of_every_step():
    stepped = classes_by_step(part([["a"], ["b"], ["a"]], per_step=True), "auto")
    assert target_kind(stepped, "auto") == "class"
    assert encode_classes({"all": stepped}, "here")[1]["all"].tolist() == [0, 1, 0]
    x, offsets = np.zeros((5, 1), np.float32), np.array([0, 2, 5])
    padded = Sequences("here", x, offsets, np.array([[1, 2, 9, 9], [3, 4, 5, 9]]))
    made = classes_by_step(padded, "auto")
    assert (made.per_step, made.y.tolist()) == (True, [1, 2, 3, 4, 5])
    assert not classes_by_step(padded, "value").per_step
    with pytest.raises(ValueError, match=r"y in here must be .* T at least 3; got \[2, 2\]"):
        classes_by_step(Sequences("here", x, offsets, np.zeros((2, 2), int)), "auto")
    with pytest.raises(ValueError, match="a single 1 in every row"):
        classes_by_step(Sequences("here", x, offsets, np.eye(9, dtype=int)[:2]), "auto")
    two = part([[0, 1], [1, 1], [0, 0]], per_step=True)
    with pytest.raises(ValueError, match=r"got 'int64 \[3, 2\], one row per step'; give"):
        target_kind(classes_by_step(two, "auto"), "auto")
