"""Labels of steps from tables of times and intervals."""

import numpy as np
import pytest

TENTHS = "time,ecg\n" + "".join(f"{i / 10},{i}\n" for i in range(10))
DATED = "time,ecg\n" + "".join(f"2024-01-01 00:00:0{i},{i}\n" for i in range(6))
MIXED = "time,ecg\n" + "".join(f"{i / 10},{i}\n" for i in (3, 0, 2, 1))
MNE = "# MNE-Annotations\n# onset, duration, description\n0.1,0.2,N\n0.3,0.4,V\n"
LATER = "time,label\n" + "".join(f"{i / 10 + 0.05},{i}\n" for i in range(10))
EVERY = "time,label\n" + "".join(f"{i / 10},{i % 2}\n" for i in range(10))


@pytest.fixture
def annotated(put, read):
    """Reads a recording and its annotations."""

    def labelled(recording, text):
        put({"a.csv": recording, "a.labels.csv": text})
        return read()

    return labelled


@pytest.mark.parametrize(
    ("recording", "text", "steps"),
    [
        (TENTHS, "start,end,label\n0.2,0.5,N\n0.5,0.7,V\n", "..NNNVV..."),
        (TENTHS, "onset,duration,description\n0.5,0.2,V\n0.2,0.3,N\n", "..NNNVV..."),
        (TENTHS, "0.2\t0.5\tN\n0.5\t0.7\tV\n", "..NNNVV..."),  # as Audacity writes them
        (TENTHS, "sample,end,symbol\n2,5,N\n5,7,V\n", "..NNNVV..."),
        (TENTHS, MNE, ".NNVVVV..."),
        (TENTHS, "start,end,label\n", ".........."),
        (TENTHS, "start,end,label\n0,0.8,N\n0.2,0.4,N\n", "NNNNNNNN.."),
        # 0.1 + 0.2 is more than 0.3, but no overlap.
        (TENTHS, "start,duration,label\n0.1,0.2,N\n0.3,0.3,V\n", ".NNVVV...."),
        # Points hold until the next.
        (TENTHS, "time,label\n0,1\n0.4,2\n", "1111222222"),
        (TENTHS, "Sample #,Type\n3,N\n8,V\n", "...NNNNNVV"),
        (TENTHS, LATER, ".012345678"),
        (TENTHS, EVERY, "0101010101"),
        (TENTHS, "label\n" + "a\nb\n" * 5, "ababababab"),
        (DATED, "start,end,label\n2024-01-01 00:00:02,2024-01-01 00:00:04,N\n", "..NN.."),
        (MIXED, "start,end,label\n0,0.15,N\n", "NN.."),
    ],
)
def test_every_step_has_its_label(annotated, recording, text, steps):
    part = annotated(recording, text)
    assert part.per_step and len(part) == 1
    labels = part.y[:, 0].tolist()
    assert "".join("." if label == "none" else str(label) for label in labels) == steps
    assert (part.y.dtype.kind in "iu") == steps.isdigit()


@pytest.mark.parametrize(
    ("recording", "text", "said"),
    [
        (TENTHS, "start,end,label\n0.1,0.5,N\n0.4,0.6,V\n", "must not overlap; got N until 0.5 an"),
        (TENTHS, "start,end,label\n0,0.8,N\n0.2,0.4,N\n0.5,0.6,V\n", "N until 0.8 and V from 0"),
        (TENTHS, "start,end,label\n0.5,0.1,N\n", "must end later; got 0.5 to 0.1 in row 2"),
        (TENTHS, "start,end,label\n100,500,N\n500,900,V\n", "of a recording from 0.0 to 0.9"),
        (TENTHS, "a,b,c\n1,2,3\n", "must have a start, an end and a label"),
        (TENTHS, "start,end,label\n0.1,0.5,\n", "a.labels.csv"),
        (TENTHS, "label\na\nb\n", r"labels of a.labels.csv must be 10.*; got 2"),
        (DATED, "start,end,label\n2,4,N\n", "same kind as those of the recording"),
    ],
)
def test_what_does_not_fit_is_refused(annotated, recording, text, said):
    with pytest.raises(ValueError, match=said):
        annotated(recording, text)


def test_annotations_of_another_name_and_of_arrays(put, read):
    text = "start,end,label\n1,3,N\n"
    put({"x.npy": np.arange(8.0), "y.npy": np.arange(8.0), "x_ann.csv": text})
    with pytest.raises(ValueError, match=r"without annotations .*y.npy"):
        read(annotations="_ann.csv")
    put({"y_ann.csv": text})
    part = read(annotations="_ann.csv")
    assert part.y[:8, 0].tolist() == ["none", "N", "N", *["none"] * 5]
    put({"z_ann.csv": text})
    with pytest.raises(ValueError, match=r"without a recording .*z_ann.csv.*--annotations"):
        read(annotations="_ann.csv")
