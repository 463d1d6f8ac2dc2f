"""Folders of recordings: files, labels, groups, parts, and errors that name files."""

import signal
from pathlib import Path

import numpy as np
import pytest

from anharmonic.data import Columns, FileTask, file_digest, read_recordings
from anharmonic.data.readers import read_parts
from anharmonic.data.recordings import patterns


def test_labels_from_the_names_of_folders(read, sounds, texts):
    sounds("yes/b.wav", "no/a.wav", "yes/a.wav")
    texts(dict.fromkeys((".DS_Store", "__MACOSX/a.wav", "notes.txt"), "no sound"))
    part = read()
    assert part.ids.tolist() == ["no/a.wav", "yes/a.wav", "yes/b.wav"]
    assert part.y.tolist() == ["no", "yes", "yes"] and part.lengths.tolist() == [15, 20, 10]
    assert part.interval == 1 / 8000 and part.groups is None
    said = part.columns.describe()
    assert "3 .wav files, 8000 samples per second, label from the names of the folders" in said


def test_labels_and_groups_from_patterns(read, sounds):
    sounds("7_ann_0.wav", "8_bob_0.wav", "7_bob_1.wav")
    part = read(label_pattern=r"^\d", group_pattern="_([a-z]+)_")
    assert part.y.tolist() == ["7", "7", "8"]
    assert part.groups.tolist() == ["ann", "bob", "bob"]
    with pytest.raises(ValueError, match=r"must fit all files .*; got 7_ann_0.wav, .*--group-pat"):
        read(label_pattern=r"^\d", group_pattern="ann_0|_([a-z]+)'")


def test_a_pattern_that_takes_too_long_is_given_up(read, sounds, monkeypatch):
    monkeypatch.setattr(patterns, "_SECONDS", 0.1)
    sounds(f"{'a' * 40}1.wav")
    with pytest.raises(ValueError, match=r"label_pattern must be done in 0.1 s; got .*; leave"):
        read(label_pattern="^((a+)+)$")
    assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0
    assert signal.getsignal(signal.SIGVTALRM) is signal.SIG_DFL


TWO, NUMBERED = ("b.wav", "a.wav"), ("1.wav", "2.wav", "3.wav")


@pytest.mark.parametrize(
    ("files", "table", "y"),
    [
        (TWO, "file,label,speaker\na.wav,up,7\nb.wav,down,8\nother.wav,up,9\n", ["up", "down"]),
        (TWO, "a.wav,up,7\nb.wav,down,8\n", ["up", "down"]),
        (TWO, "label;subject;path\nup;7;./a.wav\ndown;8;./b.wav\n", ["up", "down"]),
        (TWO, "name,emotion\na,up\nb,down\n", ["up", "down"]),
        (TWO, "file,label,speaker\nb.wav,down,8\na.wav,up,7\n", ["up", "down"]),
        (("01.wav", "02.wav"), "file,age\n01,20.5\n02,30\n", [20.5, 30.0]),
        # The column that names files is no label or subject with the same numbers.
        (NUMBERED, "label,file\n2,1\n3,2\n1,3\n", [2, 3, 1]),
        (NUMBERED, "subject,name,label\n3,1,2\n1,2,3\n2,3,1\n", [2, 3, 1]),
        (NUMBERED, "label,name\n2,1\n3,2\n1,3\n", [2, 3, 1]),
    ],
)
def test_labels_from_a_table(read, sounds, texts, files, table, y):
    sounds(*files)
    texts({"labels.csv": table})
    part = read(**({"group": "speaker"} if "speaker" in table else {}))
    assert part.y.tolist() == y and read(targets=False).y is None
    assert (part.groups is None) == ("7" not in table and "subject" not in table)


AXES, ROWS = "t,ax,ay\n0,1,3\n1,2,4\n", "t,ax\n0,1\n1,2\n"
DATED = "t,a\n2024-01-31 10:00:00,1\n2024-01-31 10:01:00,2\n"


@pytest.mark.parametrize(
    ("files", "given", "said"),
    [
        (NUMBERED, {"labels.csv": "a,b,label\n3,1,2\n1,2,3\n2,3,1\n"},
         "must name the files; got the columns 'a' and 'b'"),
        ((*TWO, "c.wav"), {"labels.csv": "file,label\na.wav,up\nb.wav,down\n"},
         "files without a row in labels.csv .*'c.wav'"),
        (TWO, {"labels.csv": "what,label\nx,up\ny,down\n"},
         "labels.csv must name the files.*such as a.wav"),
        (TWO, {}, "must have labels; got files such as a.wav.*--label-pat"),
        (("ann/up/a.wav", "bob/down/b.wav"), {}, "folders in folders.*--label-pattern"),
        (("subject1/a.wav", "subject2/b.wav"), {}, "may be groups; .*--group-pattern"),
        (("spare/a.wav", "subject2/b.wav"), {}, "'subject2', which may be groups"),
        (("a/a.wav",), {"a/cut.wav": "RIFF", "b/no.wav": ""},
         r"^a/cut\.wav must be .*\(also b/no\.wav\)"),
        ((), {}, "recordings of one kind.*got none"),
        ((), {"a.csv": ROWS, "b.csv": ROWS.replace("ax", "az")},
         "as in a.csv; got 't' and 'az' in b.csv"),
        ((), {"a.csv": ROWS, "b.csv": ROWS.replace("2", "high")}, r"b\.csv"),
        ((), {"a.csv": DATED, "b.csv": DATED.replace(":00,", ":00Z,")},
         "in a.csv, dates with times; got dates with times and a time zone in column 't' of b.csv"),
        ((), {"a.csv": AXES, "b.csv": AXES.replace("\n1,", "\n0,")}, r"twice \(row 3 of b\.csv"),
    ],
)  # fmt: skip
def test_what_is_not_clear_is_refused_with_the_name_of_the_file(read, sounds, texts, files, given,
                                                                said):  # fmt: skip
    sounds(*files)
    texts(given)
    with pytest.raises(ValueError, match=said):
        read(targets=not any(name[1:] == ".csv" for name in given) and bool(files))


def test_patterns_tell_labels_and_groups_of_folders_apart(read, sounds):
    sounds("ann/up/a.wav", "bob/down/b.wav")
    part = read(label_pattern="/(.*)/", group_pattern="^([^/]+)/")
    assert part.y.tolist() == ["up", "down"] and part.groups.tolist() == ["ann", "bob"]


def test_an_id_within_the_files_is_no_measurement(read, texts):
    rows = "id,time,a\n{0},0,1\n{0},1,5\n{0},2,4\n"
    texts({f"{name}/1.csv": rows.format(at) for at, name in enumerate(("up", "down"))})
    part = read()
    assert part.channels == ("a",) and part.columns.ignore == ("id",)


def test_annotations_leave_a_pattern_and_groups_in_force(read, texts, tmp_path):
    for name in ("up_1", "down_1"):
        np.save(tmp_path / f"{name}.npy", np.zeros((4, 1)))
        texts({f"{name}.labels.csv": "start,end,label\n0,2,a\n2,4,b\n"})
    texts({"labels.csv": "file,group\nup_1,ann\ndown_1,bob\n"})
    part = read()
    assert part.y[:4, 0].tolist() == [*"aabb"] and part.groups.tolist() == ["bob", "ann"]
    part = read(label_pattern="^([a-z]+)_")
    assert part.y.tolist() == ["down", "up"] and part.groups.tolist() == ["bob", "ann"]


def test_arrays_have_as_many_channels_as_each_other(read, sounds, tmp_path):
    for name, channels in (("a", 2), ("b", 3)):
        np.save(tmp_path / f"{name}.npy", np.ones((9, channels)))
    with pytest.raises(ValueError, match=r"of b.npy must be 2, as in a.npy; got 3"):
        read(targets=False)
    sounds("a.wav")
    with pytest.raises(ValueError, match=r"recordings of one kind.*got 1 \.wav and 2 \.npy"):
        read(targets=False)


def test_rates_agree_or_are_resampled(read, sounds):
    sounds("a/a.wav", "a/c.wav")
    sounds("b/b.wav", rate=16000)
    with pytest.raises(ValueError, match=r"must be 8000; got 16000 in b/b\.wav; .*--resample 8000"):
        read()
    part = read(resample=8000)
    assert part.lengths.tolist() == [10, 15, 5]
    for new in ("b", "b/b.wav"):  # treated as in training
        assert np.array_equal(read(new, False, part.columns).x, part.x[-5:])
    known = read("a", targets=False).columns
    with pytest.raises(ValueError, match=r"must be 8000, as in training; got 16000 in b.wav"):
        read("b", False, known)
    with pytest.raises(ValueError, match=r"a.wav must lie in a folder .*; give the folder"):
        read("a/a.wav")


def test_own_parts(sounds, tmp_path):
    sounds("train/up/a.wav", "train/down/b.wav", "Test/up/c.wav", "Test/down/d.wav")
    (tmp_path / "__MACOSX").mkdir()  # of an archive made on macOS
    parts = read_parts(tmp_path)
    assert list(parts) == ["train", "test"]
    assert parts["test"].y.tolist() == ["down", "up"]
    assert parts["test"].columns == parts["train"].columns or parts["test"].columns.found
    assert FileTask(tmp_path, valid_share=0.0).sizes == {"train": 2, "valid": 0, "test": 2}


def test_tables_with_labels_from_folders(read, texts):
    text = "time,ax,ay\n0.0,1,2\n0.1,3,4\n0.2,5,6.5\n"
    texts(dict.fromkeys(("walk/a.csv", "walk/b.csv", "rest/c.csv"), text))
    part = read()
    assert part.y.tolist() == ["rest", "walk", "walk"]
    assert part.channels == ("ax", "ay") and part.columns.time == "time"
    assert part.lengths.tolist() == [3, 3, 3] and part.interval == pytest.approx(0.1)
    assert np.array_equal(read("walk/a.csv", False, part.columns).x, part.x[:3])


def test_tables_with_a_column_of_labels(read, texts):
    rows = "".join(f"{i / 10},{i % 3},{'rest' if i < 5 else 'walk'}\n" for i in range(10))
    texts(dict.fromkeys(("x/a.csv", "y/a.csv"), "t,ax,label\n" + rows))
    part = read("x")
    assert part.per_step and part.y[:10, 0].tolist() == ["rest"] * 5 + ["walk"] * 5
    assert "label from the column 'label'" in part.columns.describe()
    with pytest.raises(ValueError, match=r"from one place.*--target-column 'label', or --label-p"):
        read()
    assert read(target="label").per_step
    first = read(label_pattern="^([^/]+)/")
    assert first.y.tolist() == ["x", "y"] and first.channels == ("ax",)


@pytest.mark.parametrize("where", ["labels.csv", "folders", "pattern"])
def test_y_is_an_axis_if_labels_are_outside_the_files(read, texts, where):
    axes = "time,x,y\n0,1.5,2.5\n1,1.5,3.5\n"
    names = [f"{kind}/{kind}.csv" if where == "folders" else f"{kind}_a.csv"
             for kind in ("good", "worn")]  # fmt: skip
    if where == "labels.csv":
        texts({"labels.csv": "file,label\ngood_a.csv,good\nworn_a.csv,worn\n"})
    given = {"label_pattern": "^([a-z]+)_"} if where == "pattern" else {}
    texts(dict.fromkeys(names, axes))
    part = read(**given)
    assert part.channels == ("x", "y") and part.y.tolist() == ["good", "worn"]
    assert part.columns.target is None
    # Without change it may be a label within the files, which would give the answer away.
    texts({name: f"time,x,y\n0,1.5,{at}.5\n1,1.5,{at}.5\n" for at, name in enumerate(names)})
    if where == "folders":
        with pytest.raises(ValueError, match="folders of several names and the column 'y'"):
            read()
        assert read(target="none").channels == ("x", "y")
    else:
        assert read(**given).channels == ("x",)


def test_a_constant_column_is_no_second_label(read, texts):
    rows = "time,x,quality\n0,1.5,OK\n1,2.5,OK\n"
    texts(dict.fromkeys(("good/a.csv", "worn/a.csv"), rows))
    part = read()
    assert part.y.tolist() == ["good", "worn"] and part.channels == ("x",)
    assert read(known=part.columns).y.tolist() == part.y.tolist()


def test_labels_outside_the_files_take_the_place_of_a_column(read, texts):
    texts({f"r{i}.csv": f"time,x,label\n0,{i},a\n1,{i}.5,a\n" for i in range(4)})
    rows = "".join(f"r{i}.csv,{'up' if i % 2 else 'down'}\n" for i in range(4))
    texts({"labels.csv": f"file,kind of motion\n{rows}"})
    part = read()
    again = read(known=part.columns)  # as for an evaluation
    for one in (part, again):
        assert one.y.tolist() == ["down", "up"] * 2 and one.channels == ("x",)
    texts({f"r{i}.csv": "time,x\n0,1\n1,2\n" for i in range(4)})  # new ones need not have it
    again = read(targets=False, known=part.columns)
    assert again.channels == ("x",) and again.y is None


def test_forecasts_of_a_folder(texts, tmp_path):
    rows = "".join(f"2024-01-{i + 1:02d},{i},{i * i}\n" for i in range(20))
    texts(dict.fromkeys(("a.csv", "b.csv"), "date,load,price\n" + rows))
    task = FileTask(tmp_path, horizon=2, window=3)
    assert task.forecast_channels == ("load", "price")


def test_files_of_one_series_are_warned_of_before_forecasts(texts, tmp_path, recwarn):
    def day(month, date):
        rows = (f"2024-{month:02d}-{date:02d} {hour:02d}:00,{hour}\n" for hour in range(24))
        return "time,load\n" + "".join(rows)

    texts({f"{date}.csv": day(1, date) for date in range(1, 6)})
    with pytest.warns(UserWarning, match="goes on where another one ends, but forecasts use the"):
        FileTask(tmp_path, horizon=2, window=3)
    texts({f"{month}.csv": day(month, 1) for month in range(1, 6)})  # a day of each month
    recwarn.clear()
    FileTask(tmp_path, horizon=2, window=3)
    assert not recwarn.list
    expected = r"--horizon .* must be at most 4, the steps for valid; got 5, and a recording of 24"
    with pytest.raises(ValueError, match=expected):
        FileTask(tmp_path, horizon=5, window=3)


def test_patterns_apply_to_tables_of_all_parts_and_to_new_folders(read, texts, tmp_path):
    texts({f"{part}/{name}.csv": ROWS for part in ("train", "test") for name in ("up_1", "down_2")})
    given = Columns(label_pattern="^([a-z]+)_", group_pattern=r"_(\d)")
    parts = read_parts(tmp_path, columns=given)
    assert parts["test"].y.tolist() == ["down", "up"] and parts["test"].groups.tolist() == [*"21"]
    known = parts["train"].columns
    assert read("test", known=known).y.tolist() == ["down", "up"]
    texts(dict.fromkeys(("new/r1.csv", "new/r2.csv"), ROWS))
    texts({"new/labels.csv": "file,label\nr1,up\nr2,down\n"})
    new = read("new", known=known)  # where neither pattern fits
    assert new.y.tolist() == ["up", "down"] and new.groups is None


def test_the_digest_counts_names_and_contents(sounds, tmp_path):
    sounds("a/x/1.wav", "a/y/2.wav")
    sounds("b/x/1.wav", "b/y/2.wav")
    assert file_digest(tmp_path / "a") == file_digest(tmp_path / "b")
    (tmp_path / "b" / "y").rename(tmp_path / "b" / "z")
    assert file_digest(tmp_path / "a") != file_digest(tmp_path / "b")


def test_recordings_may_be_called_like_one_of_a_pair(texts, tmp_path):
    text = "time,ax\n" + "".join(f"{i},{i}\n" for i in range(9))
    names = [f"{kind}_{end}.csv" for kind in ("bus", "car") for end in ("train", "tram")]
    texts(dict.fromkeys(names, text))
    task = FileTask(tmp_path, label_pattern="^([a-z]+)_", valid_share=0.0)
    assert task.class_names == ("bus", "car") and task.digest == file_digest(tmp_path)


def test_recordings_for_estimators(texts, tmp_path):
    for name, steps in (("a", 9), ("b", 7)):
        np.save(tmp_path / f"{name}.npy", np.ones((steps, 2)))
    texts({"labels.csv": "file,label,group\na,1,x\nb,2,y\n"})
    found = read_recordings(tmp_path)
    assert [x.shape for x in found.x] == [(2, 9), (2, 7)]
    assert found.y.tolist() == [1, 2] and found.groups.tolist() == ["x", "y"]
    again = read_recordings(tmp_path, columns=found.columns, targets=False)
    assert again.y is None and len(again.x) == 2


def test_what_was_trained_on_a_folder_predicts_folders_and_single_files(sounds, tmp_path, cli):
    from anharmonic.train import predict

    for number in range(24):
        sounds(f"sounds/{'low' if number % 2 else 'high'}/{number}.wav")
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


def test_advice_for_a_trained_model_is_to_correct_the_file_or_train_again(read, texts):
    good = "time,ax\n0,1\n1,2\n2,3\n"
    texts({"up/a.csv": good, "down/a.csv": good, "new/M1/a.csv": good.replace("\n2,", "\n1,")})
    texts({"words/a.csv": good.replace("2\n", "two\n")})
    known = read("up", label_pattern="(.*)").columns
    said = r"got 1.0 twice \(row 4 of .*a.csv; 1 such rows\); correct the file, or train again with"
    with pytest.raises(ValueError, match=f"{said} other options: keep one row .*--duplicates"):
        read("new", targets=False, known=known)
    with pytest.raises(ValueError, match=r"row 3 .*; correct the file, or train again .*--id-col"):
        read("words", targets=False, known=known)
    with pytest.raises(ValueError, match=r"such rows\); keep one row"):
        read("new", label_pattern="(.*)")
    texts({"words/a.csv": "time;ax\n0,5;1\n1.234,5;1\n" + "".join(f"{i},5;1\n" for i in range(9))})
    said = r"got '1.234,5' in row 3, column 'time' \(1 such cells\); correct the file, or train"
    with pytest.raises(ValueError, match=said):
        read("words", targets=False, known=known)


def test_errors_name_files_by_their_paths_in_the_folder(read, texts, tmp_path):
    good = "t,ax\n0,1\n1,2\n2,3\n"
    texts({"M0/a.csv": good, "M1/a.csv": ""})
    for text, said in (
        ("", "^M1/a.csv must be a table of text"),
        ("t,ax\n", "^M1/a.csv must hold rows"),
        (good.replace("ax", "ay"), "as in M0/a.csv; got .* in M1/a.csv"),
        (good.replace("\n2,", "\n1,"), r"\(row 4 of M1/a.csv;"),
    ):
        texts({"M1/a.csv": text})
        with pytest.raises(ValueError, match=said):
            read(targets=False)
    texts({"M1/a.csv": good, "M0/a.labels.csv": "1,2\n", "M1/b.labels.csv": "1,2\n"})
    with pytest.raises(ValueError, match=r"got \['M1/b.labels.csv'\]"):
        read()
    texts({f"new/{part}/M0/a.csv": good for part in ("train", "test")})
    texts({"new/test/M0/a.csv": ""})
    with pytest.raises(ValueError, match=r"^test/M0/a.csv must be a table"):
        read_parts(tmp_path / "new", targets=False)
    texts({"gaps/up/M1/a.csv": good.replace("2\n", "\n"), "gaps/down/M1/a.csv": good})
    with pytest.raises(ValueError, match=r"got nan at 'up/M1/a.csv', step 1, channel 'ax'"):
        FileTask(tmp_path / "gaps", label_pattern="^[a-z]+")


@pytest.mark.parametrize("bad", ["a.csv", "b.csv"])
def test_words_among_numbers_are_named_by_row_and_file(read, texts, bad):
    texts(dict.fromkeys(("up/a.csv", "up/b.csv"), "t,ax\n" + "".join(f"{i},1\n" for i in range(9))))
    for words, said in (("4,OK\n5,OK", "'OK' in row 6"), ("4,1\n5,ERR", "'ERR' in row 7")):
        texts({f"up/{bad}": f"t,ax\n0,1\n1,1\n2,1\n3,1\n{words}\n6,1\n7,1\n8,1\n"})
        with pytest.raises(ValueError, match=rf"^values in up/{bad} .* got {said}, column 'ax'"):
            read(targets=False)
