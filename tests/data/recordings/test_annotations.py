"""Labels of steps from tables of times and intervals."""

import numpy as np
import pytest

from anharmonic.data import Columns
from anharmonic.data.readers import read_parts

pytest.importorskip("pyarrow")


def annotated(folder, text, recording=None, **given):
    rows = "".join(f"{i / 10},{i}\n" for i in range(10))
    (folder / "a.csv").write_text(recording or "time,ecg\n" + rows)
    (folder / "a.labels.csv").write_text(text)
    part = read_parts(folder, columns=Columns(**given))["all"]
    assert part.per_step and len(part) == 1
    return part.y[:, 0].tolist()


@pytest.mark.parametrize(
    "text",
    [
        "start,end,label\n0.2,0.5,N\n0.5,0.7,V\n",
        "onset,duration,description\n0.5,0.2,V\n0.2,0.3,N\n",
        "0.2\t0.5\tN\n0.5\t0.7\tV\n",  # as Audacity writes them
        "label,from,to\nN,0.15,0.5\nV,0.5,0.65\n",
        "sample,end,symbol\n2,5,N\n5,7,V\n",
    ],
)
def test_intervals(tmp_path, text):
    assert annotated(tmp_path, text) == ["none"] * 2 + ["N"] * 3 + ["V"] * 2 + ["none"] * 3


def test_intervals_within_others_of_their_label(tmp_path):
    text = "start,end,label\n0,0.8,N\n0.2,0.4,N\n"
    assert annotated(tmp_path, text) == ["N"] * 8 + ["none"] * 2
    with pytest.raises(ValueError, match=r"must not overlap; got N until 0.8 and V from 0.5 on"):
        annotated(tmp_path, text + "0.5,0.6,V\n")


def test_a_rounding_error_of_a_duration_is_no_overlap(tmp_path):
    text = "start,duration,label\n0.1,0.2,N\n0.3,0.3,V\n"  # 0.1 + 0.2 is more than 0.3
    assert annotated(tmp_path, text) == ["none"] + ["N"] * 2 + ["V"] * 3 + ["none"] * 4
    text = "start,duration,label\n0.1,0.2,N\n"
    assert annotated(tmp_path, text) == ["none"] + ["N"] * 2 + ["none"] * 7


def test_annotations_of_mne_have_durations_and_none_may_be_there(tmp_path):
    text = "# MNE-Annotations\n# onset, duration, description\n0.1,0.2,N\n0.3,0.4,V\n"
    assert annotated(tmp_path, text) == ["none"] + ["N"] * 2 + ["V"] * 4 + ["none"] * 3
    assert annotated(tmp_path, "start,end,label\n") == ["none"] * 10


def test_points_hold_until_the_next(tmp_path):
    text = "time,label\n0,1\n0.4,2\n"
    assert annotated(tmp_path, text) == [1] * 4 + [2] * 6
    assert annotated(tmp_path, "Sample #,Type\n3,N\n8,V\n") == ["none"] * 3 + ["N"] * 5 + ["V"] * 2


def test_a_label_for_every_step(tmp_path):
    text = "time,label\n" + "".join(f"{i / 10},{i % 2}\n" for i in range(10))
    assert annotated(tmp_path, text) == [0, 1] * 5
    text = "label\n" + "".join(f"{'ab'[i % 2]}\n" for i in range(10))
    assert annotated(tmp_path, text) == ["a", "b"] * 5
    with pytest.raises(ValueError, match=r"labels of a.labels.csv must be 10.*; got 2"):
        annotated(tmp_path, "label\na\nb\n")


def test_dates(tmp_path):
    rows = "".join(f"2024-01-01 00:00:0{i},{i}\n" for i in range(6))
    text = "start,end,label\n2024-01-01 00:00:02,2024-01-01 00:00:04,N\n"
    found = annotated(tmp_path, text, recording="time,ecg\n" + rows)
    assert found == ["none"] * 2 + ["N"] * 2 + ["none"] * 2
    with pytest.raises(ValueError, match="same kind as those of the recording"):
        annotated(tmp_path, "start,end,label\n2,4,N\n", recording="time,ecg\n" + rows)


def test_unsorted_rows_are_labelled_by_their_time(tmp_path):
    recording = "time,ecg\n" + "".join(f"{i / 10},{i}\n" for i in (3, 0, 2, 1))
    found = annotated(tmp_path, "start,end,label\n0,0.15,N\n", recording=recording)
    assert found == ["N", "N", "none", "none"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("start,end,label\n0.1,0.5,N\n0.4,0.6,V\n", "must not overlap; got N until 0.5 and V"),
        ("start,end,label\n0.5,0.1,N\n", "must end later; got 0.5 to 0.1 in row 2"),
        ("start,end,label\n100,500,N\n500,900,V\n", "of a recording from 0.0 to 0.9"),
        ("a,b,c\n1,2,3\n", "must have a start, an end and a label"),
        ("start,end,label\n0.1,0.5,\n", "a.labels.csv"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        annotated(tmp_path, text)


def test_annotations_of_another_name_and_of_arrays(tmp_path):
    def read(*annotated):
        for name in annotated:
            (tmp_path / f"{name}_ann.csv").write_text("start,end,label\n1,3,N\n")
        return read_parts(tmp_path, columns=Columns(annotations="_ann.csv"))["all"]

    for name in "xy":
        np.save(tmp_path / f"{name}.npy", np.arange(8.0))
    with pytest.raises(ValueError, match=r"without annotations .*y.npy"):
        read("x")
    assert read("x", "y").y[:8, 0].tolist() == ["none", "N", "N", *["none"] * 5]
    with pytest.raises(ValueError, match=r"without a recording .*z_ann.csv.*--annotations"):
        read("z")
