"""Folders of recordings: files, labels, groups, parts, and errors that name files."""

import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from anharmonic.data import Columns, FileTask, file_digest, read_recordings
from anharmonic.data.readers import read_parts
from anharmonic.data.recordings import patterns

sys.path.insert(0, str(Path(__file__).parent))
from test_signals import WAVE, write_sound

pytest.importorskip("pyarrow")


def sounds(folder, *names, **how):
    """Sounds that differ in their length: twice `WAVE`, three times ..."""
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_sound(folder / name, np.tile(WAVE, number + 2), **how)


def tables(folder, **files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)


def whole(folder, targets=True, **given):
    return read_parts(folder, targets=targets, columns=Columns(**given))["all"]


def test_labels_from_the_names_of_folders(tmp_path):
    sounds(tmp_path, "yes/b.wav", "no/a.wav", "yes/a.wav")
    (tmp_path / "__MACOSX").mkdir()
    for name in (".DS_Store", "__MACOSX/a.wav", "notes.txt"):
        (tmp_path / name).write_text("no sound")
    part = whole(tmp_path)
    assert part.ids.tolist() == ["no/a.wav", "yes/a.wav", "yes/b.wav"]
    assert part.y.tolist() == ["no", "yes", "yes"] and part.lengths.tolist() == [15, 20, 10]
    assert part.interval == 1 / 8000 and part.groups is None
    said = part.columns.describe()
    assert "3 .wav files, 8000 samples per second, label from the names of the folders" in said


def test_labels_and_groups_from_patterns(tmp_path):
    sounds(tmp_path, "7_ann_0.wav", "8_bob_0.wav", "7_bob_1.wav")
    part = whole(tmp_path, label_pattern=r"^\d", group_pattern="_([a-z]+)_")
    assert part.y.tolist() == ["7", "7", "8"]
    assert part.groups.tolist() == ["ann", "bob", "bob"]
    with pytest.raises(ValueError, match=r"must fit all files .*; got 7_ann_0.wav, .*--group-pat"):
        whole(tmp_path, label_pattern=r"^\d", group_pattern="ann_0|_([a-z]+)'")
    with pytest.raises(ValueError, match="label_pattern must be a regular expression"):
        Columns(label_pattern="(")


def test_a_pattern_that_takes_too_long_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(patterns, "_SECONDS", 0.1)
    sounds(tmp_path, f"{'a' * 40}1.wav")
    with pytest.raises(ValueError, match=r"label_pattern must be done in 0.1 s; got .*; leave"):
        whole(tmp_path, label_pattern="^((a+)+)$")
    assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0
    assert signal.getsignal(signal.SIGVTALRM) is signal.SIG_DFL


@pytest.mark.parametrize(
    "text",
    [
        "file,label,speaker\na.wav,up,7\nb.wav,down,8\nother.wav,up,9\n",
        "a.wav,up,7\nb.wav,down,8\n",
        "label;subject;path\nup;7;./a.wav\ndown;8;./b.wav\n",
        "name,emotion\na,up\nb,down\n",
        "file,label,speaker\nb.wav,down,8\na.wav,up,7\n",
    ],
)
def test_labels_from_a_table(tmp_path, text):
    sounds(tmp_path, "b.wav", "a.wav")
    (tmp_path / "labels.csv").write_text(text)
    part = whole(tmp_path, **({"group": "speaker"} if "speaker" in text else {}))
    assert part.y.tolist() == ["up", "down"]
    assert (part.groups is None) == ("7" not in text)


def test_the_column_that_names_files_is_no_label_or_subject_with_the_same_numbers(tmp_path):
    sounds(tmp_path, "1.wav", "2.wav", "3.wav")
    for text in (
        "label,file\n2,1\n3,2\n1,3\n",
        "subject,name,label\n3,1,2\n1,2,3\n2,3,1\n",
        "label,name\n2,1\n3,2\n1,3\n",
    ):
        (tmp_path / "labels.csv").write_text(text)
        assert whole(tmp_path).y.tolist() == [2, 3, 1]
    (tmp_path / "labels.csv").write_text("a,b,label\n3,1,2\n1,2,3\n2,3,1\n")
    with pytest.raises(ValueError, match=r"must name the files; got the columns 'a' and 'b'"):
        whole(tmp_path)


def test_an_id_within_the_files_is_no_measurement(tmp_path):
    for at, name in enumerate(("up", "down")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.csv").write_text(f"id,time,a\n{at},0,1\n{at},1,5\n{at},2,4\n")
    part = whole(tmp_path)
    assert part.channels == ("a",) and part.columns.ignore == ("id",)


def test_annotations_leave_a_pattern_and_groups_in_force(tmp_path):
    for name in ("up_1", "down_1"):
        np.save(tmp_path / f"{name}.npy", np.zeros((4, 1)))
        (tmp_path / f"{name}.labels.csv").write_text("start,end,label\n0,2,a\n2,4,b\n")
    (tmp_path / "labels.csv").write_text("file,group\nup_1,ann\ndown_1,bob\n")
    part = whole(tmp_path)
    assert part.y[:4, 0].tolist() == [*"aabb"] and part.groups.tolist() == ["bob", "ann"]
    part = whole(tmp_path, label_pattern="^([a-z]+)_")
    assert part.y.tolist() == ["down", "up"] and part.groups.tolist() == ["bob", "ann"]


def test_numbers_in_the_table_of_labels_are_values(tmp_path):
    sounds(tmp_path, "01.wav", "02.wav")
    (tmp_path / "labels.csv").write_text("file,age\n01,20.5\n02,30\n")
    assert whole(tmp_path).y.tolist() == [20.5, 30.0]


def test_the_table_of_labels_names_every_file(tmp_path):
    sounds(tmp_path, "a.wav", "b.wav", "c.wav")
    (tmp_path / "labels.csv").write_text("file,label\na.wav,up\nb.wav,down\n")
    with pytest.raises(ValueError, match=r"files without a row in labels.csv .*'c.wav'"):
        whole(tmp_path)
    (tmp_path / "labels.csv").write_text("what,label\nx,up\ny,down\n")
    with pytest.raises(ValueError, match=r"labels.csv must name the files.*such as a.wav"):
        whole(tmp_path)
    assert whole(tmp_path, targets=False).y is None


def test_what_labels_must_be_clear(tmp_path):
    sounds(tmp_path / "flat", "a.wav", "b.wav")
    with pytest.raises(ValueError, match=r"must have labels; got files such as a.wav.*--label-pat"):
        whole(tmp_path / "flat")
    sounds(tmp_path / "deep", "ann/up/a.wav", "bob/down/b.wav")
    with pytest.raises(ValueError, match=r"folders in folders.*--label-pattern"):
        whole(tmp_path / "deep")
    part = whole(tmp_path / "deep", label_pattern="/(.*)/", group_pattern="^([^/]+)/")
    assert part.y.tolist() == ["up", "down"] and part.groups.tolist() == ["ann", "bob"]
    sounds(tmp_path / "people", "subject1/a.wav", "subject2/b.wav")
    with pytest.raises(ValueError, match=r"may be groups; .*--group-pattern"):
        whole(tmp_path / "people")


def test_files_that_do_not_fit_together_are_named(tmp_path):
    def refused(said, **arrays):
        for name, array in arrays.items():
            np.save(tmp_path / f"{name}.npy", array)
        with pytest.raises(ValueError, match=said):
            whole(tmp_path, targets=False)

    refused(r"recordings of one kind.*got none")
    refused(r"of b.npy must be 2, as in a.npy; got 3", a=np.ones((9, 2)), b=np.ones((9, 3)))
    sounds(tmp_path, "a.wav")
    refused(r"recordings of one kind.*got 1 \.wav and 2 \.npy")


def test_bad_files_are_named(tmp_path):
    sounds(tmp_path, "a/a.wav", "b/b.wav")
    (tmp_path / "a" / "cut.wav").write_bytes(b"RIFF")
    (tmp_path / "b" / "no.wav").write_bytes(b"")
    with pytest.raises(ValueError, match=r"cut\.wav must be .*\(also no\.wav\)"):
        whole(tmp_path)


def test_rates_agree_or_are_resampled(tmp_path):
    sounds(tmp_path, "a/a.wav", "a/c.wav")
    sounds(tmp_path, "b/b.wav", rate=16000)
    with pytest.raises(ValueError, match=r"must be 8000; got 16000 in b\.wav; .*--resample 8000"):
        whole(tmp_path)
    part = whole(tmp_path, resample=8000)
    assert part.lengths.tolist() == [10, 15, 5]
    for new in (tmp_path / "b", tmp_path / "b" / "b.wav"):  # treated as in training
        again = read_parts(new, targets=False, columns=part.columns)["all"]
        assert np.array_equal(again.x, part.x[-5:])
    known = read_parts(tmp_path / "a", targets=False)["all"].columns
    with pytest.raises(ValueError, match=r"must be 8000, as in training; got 16000 in b.wav"):
        read_parts(tmp_path / "b", targets=False, columns=known)


def test_a_file_alone_needs_a_folder_for_its_label(tmp_path):
    sounds(tmp_path, "a.wav")
    with pytest.raises(ValueError, match=r"a.wav must lie in a folder .*; give the folder"):
        read_parts(tmp_path / "a.wav")


def test_own_parts(tmp_path):
    sounds(tmp_path, "train/up/a.wav", "train/down/b.wav", "Test/up/c.wav", "Test/down/d.wav")
    (tmp_path / "__MACOSX").mkdir()  # of an archive made on macOS
    parts = read_parts(tmp_path)
    assert list(parts) == ["train", "test"]
    assert parts["test"].y.tolist() == ["down", "up"]
    assert parts["test"].columns == parts["train"].columns or parts["test"].columns.found
    assert FileTask(tmp_path, valid_share=0.0).sizes == {"train": 2, "valid": 0, "test": 2}


def test_tables_with_labels_from_folders(tmp_path):
    text = "time,ax,ay\n0.0,1,2\n0.1,3,4\n0.2,5,6.5\n"
    tables(tmp_path / "walk", a=text, b=text)
    tables(tmp_path / "rest", c=text)
    part = whole(tmp_path)
    assert part.y.tolist() == ["rest", "walk", "walk"]
    assert part.channels == ("ax", "ay") and part.columns.time == "time"
    assert part.lengths.tolist() == [3, 3, 3] and part.interval == pytest.approx(0.1)
    alone = read_parts(tmp_path / "walk" / "a.csv", targets=False, columns=part.columns)["all"]
    assert np.array_equal(alone.x, part.x[:3])


def test_tables_with_a_column_of_labels(tmp_path):
    rows = "".join(f"{i / 10},{i % 3},{'rest' if i < 5 else 'walk'}\n" for i in range(10))
    for name in ("x", "y"):
        tables(tmp_path / name, a="t,ax,label\n" + rows)
    part = whole(tmp_path / "x")
    assert part.per_step and part.y[:10, 0].tolist() == ["rest"] * 5 + ["walk"] * 5
    assert "label from the column 'label'" in part.columns.describe()
    with pytest.raises(ValueError, match=r"from one place.*--target-column 'label', or --label-p"):
        whole(tmp_path)
    assert whole(tmp_path, target="label").per_step
    first = whole(tmp_path, label_pattern="^([^/]+)/")
    assert first.y.tolist() == ["x", "y"] and first.channels == ("ax",)


@pytest.mark.parametrize("where", ["labels.csv", "folders", "pattern"])
def test_y_is_an_axis_if_labels_are_outside_the_files(tmp_path, where):
    axes = "time,x,y\n0,1.5,2.5\n1,1.5,3.5\n"
    for name, kind in (("a", "good"), ("b", "worn")):
        tables(tmp_path / kind if where == "folders" else tmp_path, **{f"{kind}_{name}": axes})
    if where == "labels.csv":
        (tmp_path / "labels.csv").write_text("file,label\ngood_a.csv,good\nworn_b.csv,worn\n")
    given = {"label_pattern": "^([a-z]+)_"} if where == "pattern" else {}
    part = whole(tmp_path, **given)
    assert part.channels == ("x", "y") and part.y.tolist() == ["good", "worn"]
    assert part.columns.target is None
    # Without change it may be a label within the files, which would give the answer away.
    for file in tmp_path.rglob("*_*.csv"):
        same = "3.5" if "worn" in file.name else "2.5"
        file.write_text(axes.replace("2.5", same).replace("3.5", same))
    if where == "folders":
        with pytest.raises(ValueError, match="folders of several names and the column 'y'"):
            whole(tmp_path)
        given = {"target": "none"}
        assert whole(tmp_path, **given).channels == ("x", "y")
    else:
        assert whole(tmp_path, **given).channels == ("x",)


def test_a_constant_column_is_no_second_label(tmp_path):
    for kind in ("good", "worn"):
        tables(tmp_path / kind, a="time,x,quality\n0,1.5,OK\n1,2.5,OK\n")
    part = whole(tmp_path)
    assert part.y.tolist() == ["good", "worn"] and part.channels == ("x",)
    again = read_parts(tmp_path, targets=True, columns=part.columns)["all"]
    assert again.y.tolist() == part.y.tolist()


def test_labels_outside_the_files_take_the_place_of_a_column(tmp_path, cli):
    tables(tmp_path, **{f"r{i}": f"time,x,label\n0,{i},a\n1,{i}.5,a\n" for i in range(4)})
    rows = "".join(f"r{i}.csv,{'up' if i % 2 else 'down'}\n" for i in range(4))
    (tmp_path / "labels.csv").write_text(f"file,kind of motion\n{rows}")
    part = whole(tmp_path)
    assert part.y.tolist() == ["down", "up"] * 2 and part.channels == ("x",)
    again = read_parts(tmp_path, targets=True, columns=part.columns)["all"]  # as for an evaluation
    assert again.y.tolist() == part.y.tolist() and again.channels == part.channels
    for file in tmp_path.glob("r*.csv"):  # new recordings need not have it
        file.write_text("time,x\n0,1\n1,2\n")
    again = read_parts(tmp_path, targets=False, columns=part.columns)["all"]
    assert again.channels == ("x",) and again.y is None


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ("t,ax\n0,1\n1,2\n", "t,az\n0,1\n1,2\n", r"as in a.csv; got 't' and 'az' in b.csv"),
        ("t,ax\n0,1\n1,2\n", "t,ax\n0,1\n1,high\n", r"b\.csv"),
        ("t,ax,ay\n0,1,3\n1,2,\n", "t,ay,ax\n0,1,3\n0,2,2\n", r"twice \(row 3 of b\.csv"),
    ],
)
def test_tables_that_differ_are_named(tmp_path, a, b, said):
    tables(tmp_path, a=a, b=b)
    with pytest.raises(ValueError, match=said):
        whole(tmp_path, targets=False)


def test_forecasts_of_a_folder(tmp_path):
    rows = "".join(f"2024-01-{i + 1:02d},{i},{i * i}\n" for i in range(20))
    tables(tmp_path, **dict.fromkeys("ab", "date,load,price\n" + rows))
    task = FileTask(tmp_path, horizon=2, window=3)
    assert task.forecast_channels == ("load", "price")


def test_patterns_apply_to_tables_of_all_parts_and_to_new_folders(tmp_path):
    for part in ("train", "test"):
        tables(tmp_path / part, **dict.fromkeys(("up_1", "down_2"), "time,ax\n0,1\n1,2\n"))
    given = Columns(label_pattern="^([a-z]+)_", group_pattern=r"_(\d)")
    parts = read_parts(tmp_path, columns=given)
    assert parts["test"].y.tolist() == ["down", "up"] and parts["test"].groups.tolist() == [*"21"]
    known = parts["train"].columns
    assert read_parts(tmp_path / "test", columns=known)["all"].y.tolist() == ["down", "up"]
    tables(tmp_path / "new", **dict.fromkeys(("r1", "r2"), "time,ax\n0,1\n1,2\n"))
    (tmp_path / "new" / "labels.csv").write_text("file,label\nr1,up\nr2,down\n")
    new = read_parts(tmp_path / "new", columns=known)["all"]  # where neither pattern fits
    assert new.y.tolist() == ["up", "down"] and new.groups is None


def test_the_digest_counts_names_and_contents(tmp_path):
    sounds(tmp_path / "a", "x/1.wav", "y/2.wav")
    sounds(tmp_path / "b", "x/1.wav", "y/2.wav")
    assert file_digest(tmp_path / "a") == file_digest(tmp_path / "b")
    (tmp_path / "b" / "y").rename(tmp_path / "b" / "z")
    assert file_digest(tmp_path / "a") != file_digest(tmp_path / "b")


def test_recordings_may_be_called_like_one_of_a_pair(tmp_path):
    text = "time,ax\n" + "".join(f"{i},{i}\n" for i in range(9))
    tables(tmp_path, **dict.fromkeys(("bus_train", "bus_tram", "car_train", "car_tram"), text))
    task = FileTask(tmp_path, label_pattern="^([a-z]+)_", valid_share=0.0)
    assert task.class_names == ("bus", "car") and task.digest == file_digest(tmp_path)


def test_recordings_for_estimators(tmp_path):
    for name, steps in (("a", 9), ("b", 7)):
        np.save(tmp_path / f"{name}.npy", np.ones((steps, 2)))
    (tmp_path / "labels.csv").write_text("file,label,group\na,1,x\nb,2,y\n")
    found = read_recordings(tmp_path)
    assert [x.shape for x in found.x] == [(2, 9), (2, 7)]
    assert found.y.tolist() == [1, 2] and found.groups.tolist() == ["x", "y"]
    again = read_recordings(tmp_path, columns=found.columns, targets=False)
    assert again.y is None and len(again.x) == 2


def test_what_was_trained_on_a_folder_predicts_folders_and_single_files(tmp_path, cli):
    from anharmonic.train import predict

    for number in range(24):
        label = "low" if number % 2 else "high"
        sounds(tmp_path / "sounds" / label, f"{number}.wav")
    small = ["--hidden-size", "4", "--epochs", "1", "--threads", "1", "--no-progress"]
    code, said, _ = cli("train", "lem", "sounds", *small, "--out", ".")
    assert code == 0 and "anharmonic predict" in said
    (run,) = tmp_path.glob("file-LEM-*")
    new = tmp_path / "sounds" / "low"
    assert cli("predict", run, new, "--output", "p.csv")[0] == 0
    found = predict(run, new)
    rows = [line.split(",") for line in Path("p.csv").read_text().splitlines()[1:]]
    assert [row[1] for row in rows] == list(found.ids)
    assert [row[2] for row in rows] == list(found.labels)
    assert [float(row[3]) for row in rows] == pytest.approx(found.values[:, 0], abs=1e-5)
    one = predict(run, new / "1.wav")
    assert one.values[0] == pytest.approx(found.values[0], abs=1e-6)
    assert one.ids == found.ids[:1] == ("1.wav",)
    _, _, refused = cli("predict", run, new, "--output", "p.csv", "--evaluate")
    assert "each class into a folder" in refused and "--label-pattern" not in refused
