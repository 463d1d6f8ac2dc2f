"""Folders of recordings: files, labels, groups, parts, and errors that name files."""

import signal
from pathlib import Path

import numpy as np
import pytest

from anharmonic.data import Columns, FileTask, file_digest, read_recordings
from anharmonic.data.readers import read_parts
from anharmonic.data.recordings import patterns

TWO, NUMBERED = ("b.wav", "a.wav"), ("1.wav", "2.wav", "3.wav")
NESTED, SAID = ("ann/up/a.wav", "bob/down/b.wav"), ("7_ann_0.wav", "8_bob_0.wav", "7_bob_1.wav")
NO_SOUND = dict.fromkeys((".DS_Store", "__MACOSX/a.wav", "notes.txt"), "no sound")
AXES, ROWS = "t,ax,ay\n0,1,3\n1,2,4\n", "t,ax\n0,1\n1,2\n"
IDS = "id,time,a\n{0},0,1\n{0},1,5\n{0},2,4\n"
CONSTANT = "time,x,quality\n0,1.5,OK\n1,2.5,OK\n"
WALK = dict.fromkeys(
    ("walk/a.csv", "walk/b.csv", "rest/c.csv"), "time,ax,ay\n0,1,2\n.5,3,4\n1,5,6\n"
)
XYS = "time,x,y\n0,1.5,2.5\n1,1.5,{}.5\n"
KINDS = {"good/a.csv": XYS.format(3), "worn/a.csv": XYS.format(3)}
SAME = {"good/a.csv": XYS.format(2), "worn/a.csv": XYS.replace("2", "4").format(4)}
STEPS = "start,end,label\n0,2,a\n2,4,b\n"
ANNOTATED = {f"{name}_1.npy": np.zeros(4) for name in ("up", "down")}
ANNOTATED |= {f"{name}_1.labels.csv": STEPS for name in ("up", "down")}
ANNOTATED["labels.csv"] = "file,group\nup_1,ann\ndown_1,bob\n"
STATES = "t,ax,label\n" + "".join(f"{i},{i % 3},{'rest' if i < 2 else 'walk'}\n" for i in range(4))
XY = dict.fromkeys(("x/a.csv", "y/a.csv"), STATES)
SPEAKER, COLUMN = {"group": "speaker"}, "label from the column 'label'"
FOLDERS = "3 .wav files, 8000 samples per second, label from the names of the folders"


@pytest.mark.parametrize(
    ("files", "given_texts", "given", "right"),
    [
        # From the names of folders.
        (("yes/b.wav", "no/a.wav", "yes/a.wav"), NO_SOUND, {}, {
            "ids": ["no/a.wav", "yes/a.wav", "yes/b.wav"], "y": ["no", "yes", "yes"],
            "lengths": [15, 20, 10], "interval": 1 / 8000, "groups": None, "said": FOLDERS}),
        ((), WALK, {}, {"y": ["rest", "walk", "walk"], "channels": ("ax", "ay"),
                        "lengths": [3] * 3, "interval": 0.5}),
        # An id within the files is no measurement, a constant no second label.
        ((), {"up/1.csv": IDS.format(0), "down/1.csv": IDS.format(1)}, {},
         {"channels": ("a",), "y": ["down", "up"]}),
        ((), {"good/a.csv": CONSTANT, "worn/a.csv": CONSTANT}, {},
         {"y": ["good", "worn"], "channels": ("x",)}),
        # From patterns.
        (SAID, {}, {"label_pattern": r"^\d", "group_pattern": "_([a-z]+)_"},
         {"y": ["7", "7", "8"], "groups": ["ann", "bob", "bob"]}),
        (NESTED, {}, {"label_pattern": "/(.*)/", "group_pattern": "^([^/]+)/"},
         {"y": ["up", "down"], "groups": ["ann", "bob"]}),
        # From a column of the files.
        ((), {"x/a.csv": STATES}, {}, {"y": [["rest"]] * 2 + [["walk"]] * 2, "said": COLUMN}),
        ((), XY, {"target": "label"}, {"y": ([["rest"]] * 2 + [["walk"]] * 2) * 2}),
        ((), XY, {"label_pattern": "^([^/]+)/"}, {"y": ["x", "y"], "channels": ("ax",)}),
        # Annotations leave groups in force, and patterns come before them.
        ((), ANNOTATED, {}, {"y": [["a"], ["a"], ["b"], ["b"]] * 2, "groups": ["bob", "ann"]}),
        ((), ANNOTATED, {"label_pattern": "^([a-z]+)_"},
         {"y": ["down", "up"], "groups": ["bob", "ann"]}),
        # A y is an axis beside labels from outside, unless it may be the same label.
        ((), KINDS, {}, {"y": ["good", "worn"], "channels": ("x", "y")}),
        ((), SAME, {"target": "none"}, {"y": ["good", "worn"], "channels": ("x", "y")}),
        ((), SAME, {"label_pattern": "^([a-z]+)/"}, {"y": ["good", "worn"], "channels": ("x",)}),
        ((), SAME | {"labels.csv": "file,kind\ngood/a.csv,up\nworn/a.csv,down\n"}, {},
         {"y": ["up", "down"], "channels": ("x",)}),
        # From a table.
        (TWO, {"labels.csv": "file,label,speaker\na.wav,up,7\nb.wav,down,8\nother.wav,up,9\n"},
         SPEAKER, {"y": ["up", "down"], "groups": [*"78"]}),
        (TWO, {"labels.csv": "a.wav,up,7\nb.wav,down,8\n"}, {}, {"y": ["up", "down"]}),
        (TWO, {"labels.csv": "label;subject;path\nup;7;./a.wav\ndown;8;./b.wav\n"}, {},
         {"y": ["up", "down"], "groups": [*"78"]}),
        (TWO, {"labels.csv": "name,emotion\na,up\nb,down\n"}, {}, {"y": ["up", "down"]}),
        (TWO, {"labels.csv": "file,pump,state\na.wav,7,up\nb.wav,8,down\n"},
         {"target": "state", "group": "pump"}, {"y": ["up", "down"], "groups": [*"78"]}),
        (("01.wav", "02.wav"), {"labels.csv": "file,age\n01,20.5\n02,30\n"}, {},
         {"y": [20.5, 30.0], "groups": None}),
        # The column that names files is no label or subject with the same numbers.
        (NUMBERED, {"labels.csv": "label,file\n2,1\n3,2\n1,3\n"}, {}, {"y": [2, 3, 1]}),
        (NUMBERED, {"labels.csv": "subject,name,label\n3,1,2\n1,2,3\n2,3,1\n"}, {},
         {"y": [2, 3, 1], "groups": [*"312"]}),
    ],
)  # fmt: skip
def test_labels_and_groups(read, sounds, put, files, given_texts, given, right):
    sounds(*files)
    put(given_texts)
    part = read(**given)
    found = {name: getattr(part, name) for name in right if name != "said"}
    lists = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in found.items()}
    assert lists == {name: right[name] for name in found}
    assert right.get("said", "") in part.columns.describe()
    again = read(known=part.columns)
    assert again.y.tolist() == part.y.tolist() and np.array_equal(again.x, part.x)
    assert read(targets=False, known=part.columns).y is None


def test_a_pattern_that_takes_too_long_is_given_up(read, sounds, monkeypatch):
    monkeypatch.setattr(patterns, "_SECONDS", 0.1)
    sounds(f"{'a' * 40}1.wav")
    with pytest.raises(ValueError, match=r"label_pattern must be done in 0.1 s; got .*; leave"):
        read(label_pattern="^((a+)+)$")
    assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0
    assert signal.getsignal(signal.SIGVTALRM) is signal.SIG_DFL


INPUTS = {"targets": False}
DATED = "t,a\n2024-01-31 10:00:00,1\n2024-01-31 10:01:00,2\n"
GOOD, NINE = "t,ax\n0,1\n1,2\n2,3\n", "t,ax\n" + "".join(f"{i},1\n" for i in range(9))
OK = NINE.replace("4,1\n5,1", "4,OK\n5,OK")
ERR, WORD = NINE.replace("5,1", "5,ERR"), r"^values in up/{} .* got '{}' in row {}, column 'ax'"
TWICE = GOOD.replace("\n2,", "\n1,")


@pytest.mark.parametrize(
    ("files", "given_texts", "how", "said"),
    [
        # Labels and groups.
        (NUMBERED, {"labels.csv": "a,b,label\n3,1,2\n1,2,3\n2,3,1\n"}, {},
         "must name the files; got the columns 'a' and 'b'"),
        ((*TWO, "c.wav"), {"labels.csv": "file,label\na.wav,up\nb.wav,down\n"}, {},
         "files without a row in labels.csv .*'c.wav'"),
        (TWO, {"labels.csv": "what,label\nx,up\ny,down\n"}, {},
         "labels.csv must name the files.*such as a.wav"),
        (TWO, {"labels.csv": "file,pump,state\na.wav,p7,up\nb.wav,p8,down\n"}, {},
         "must be the label; got 'pump' and 'state'; .*--target-column"),
        (TWO, {}, {}, "must have labels; got files such as a.wav.*--label-pat"),
        (NESTED, {}, {}, "folders in folders.*--label-pattern"),
        (("spare/a.wav", "subject2/b.wav"), {}, {}, "'subject2', which may be groups"),
        (SAID, {}, {"label_pattern": r"^\d", "group_pattern": "ann_0|_([a-z]+)'"},
         r"must fit all files .*; got 7_ann_0.wav, .*--group-pat"),
        ((), XY, {}, r"from one place.*--target-column 'label', or --label-p"),
        (("a.wav",), {}, {"name": "a.wav"}, r"a.wav must lie in a folder .*; give the folder"),
        ((), {"M0/a.csv": GOOD, "M0/a.labels.csv": "1,2\n", "M1/b.labels.csv": "1,2\n"}, {},
         r"got \['M1/b.labels.csv'\]"),
        ((), SAME, {}, "folders of several names and the column 'y'"),
        # Files, by their paths in the folder.
        ((), {"a.npy": np.ones((9, 2)), "b.npy": np.ones((9, 3))}, INPUTS, "be 2, as in a.npy"),
        (("a.wav",), {"b.npy": np.ones(9)}, INPUTS, r"one kind.*got 1 \.wav and 1 \.npy"),
        ((), {"train/M0/a.csv": GOOD, "test/M0/a.csv": ""}, INPUTS, "^test/M0/a.csv must be a tab"),
        (("a/a.wav",), {"a/cut.wav": "RIFF", "b/no.wav": ""}, {},
         r"^a/cut\.wav must be .*\(also b/no\.wav\)"),
        ((), {}, INPUTS, "recordings of one kind.*got none"),
        ((), {"a.csv": ROWS, "b.csv": ROWS.replace("ax", "az")}, INPUTS,
         "as in a.csv; got 't' and 'az' in b.csv"),
        ((), {"a.csv": DATED, "b.csv": DATED.replace(":00,", ":00Z,")}, INPUTS,
         "in a.csv, dates with times; got dates with times and a time zone in column 't' of b.csv"),
        ((), {"a.csv": AXES, "b.csv": AXES.replace("\n1,", "\n0,")}, INPUTS, r"twice \(row 3 of b"),
        ((), {"M0/a.csv": GOOD, "M1/a.csv": ""}, INPUTS, "^M1/a.csv must be a table of text"),
        ((), {"M0/a.csv": GOOD, "M1/a.csv": "t,ax\n"}, INPUTS, "^M1/a.csv must hold rows"),
        ((), {"M0/a.csv": GOOD, "M1/a.csv": AXES}, INPUTS, "as in M0/a.csv; got .* in M1/a.csv"),
        ((), {"a.csv": TWICE}, {"label_pattern": "(.*)"}, r"such rows\); keep one row"),
        *(((), {"up/a.csv": NINE, "up/b.csv": NINE, f"up/{bad}": OK}, INPUTS,
           WORD.format(bad, "OK", 6)) for bad in ("a.csv", "b.csv")),
        *(((), {"up/a.csv": NINE, "up/b.csv": NINE, f"up/{bad}": ERR}, INPUTS,
           WORD.format(bad, "ERR", 7)) for bad in ("a.csv", "b.csv")),
    ],
)  # fmt: skip
def test_what_is_not_clear_is_refused_with_the_name_of_the_file(
    read, sounds, put, files, given_texts, how, said
):
    sounds(*files)
    put(given_texts)
    with pytest.raises(ValueError, match=said):
        read(**how)


FIRST = "correct the file, or train again with other options: "


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (TWICE, rf"got 1.0 twice \(row 4 of .*a.csv; 1 such rows\); {FIRST}keep one row.*--dupl"),
        (GOOD.replace("2\n", "two\n"), rf"row 3 .*; {FIRST}.*--id-col"),
        ("t;ax\n0,5;1\n1.234,5;1\n" + "".join(f"{i},5;1\n" for i in range(9)),
         r"got '1.234,5' in row 3, column 't' \(1 such cells\); correct the file, or train"),
        ("id,t,ax\n1,0,1\n1,1,2\n2,0,3\n", "hold one recording.*2 values in column 'id'"),
    ],
)  # fmt: skip
def test_advice_for_a_trained_model_is_to_correct_the_file_or_train_again(read, put, new, said):
    put({"up/a.csv": GOOD, "down/a.csv": GOOD, "new/M1/a.csv": new})
    known = read("up", label_pattern="(.*)").columns
    with pytest.raises(ValueError, match=said):
        read("new", False, known)


def test_gaps_are_told_by_the_path_of_the_file(put, tmp_path):
    put({"up/M1/a.csv": GOOD.replace("2\n", "\n"), "down/M1/a.csv": GOOD})
    with pytest.raises(ValueError, match=r"got nan at 'up/M1/a.csv', step 1, channel 'ax'"):
        FileTask(tmp_path, label_pattern="^[a-z]+")


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


def test_own_parts(sounds, tmp_path):
    sounds("train/up/a.wav", "train/down/b.wav", "Test/up/c.wav", "Test/down/d.wav")
    parts = read_parts(tmp_path)
    assert list(parts) == ["train", "test"]
    assert parts["test"].y.tolist() == ["down", "up"]
    assert FileTask(tmp_path, valid_share=0.0).sizes == {"train": 2, "valid": 0, "test": 2}


def test_labels_outside_the_files_take_the_place_of_a_column(read, put):
    put({f"r{i}.csv": f"time,x,label\n0,{i},a\n1,{i}.5,a\n" for i in range(4)})
    rows = "".join(f"r{i}.csv,{'up' if i % 2 else 'down'}\n" for i in range(4))
    put({"labels.csv": f"file,kind of motion\n{rows}"})
    part = read()
    said = part.columns.describe()
    assert "label from the column 'kind of motion' of labels.csv" in said
    assert "left out 'label' of the files" in said
    for one in (part, read(known=part.columns)):  # as for an evaluation
        assert one.y.tolist() == ["down", "up"] * 2 and one.channels == ("x",)


def test_forecasts_of_a_folder_and_files_that_go_on_where_another_ends(put, tmp_path, recwarn):
    def day(month, date):
        hours = (f"2024-{month:02d}-{date:02d} {hour:02d}:00,{hour},1\n" for hour in range(24))
        return "time,load,price\n" + "".join(hours)

    put({f"{month}.csv": day(month, 1) for month in range(1, 6)})  # a day of each month
    task = FileTask(tmp_path, horizon=2, window=3)
    assert task.forecast_channels == ("load", "price") and not recwarn.list
    expected = r"--horizon .* must be at most 4, the steps for valid; got 5, and a recording of 24"
    with pytest.raises(ValueError, match=expected):
        FileTask(tmp_path, horizon=5, window=3)
    put({f"{date}.csv": day(1, date) for date in range(1, 6)})
    with pytest.warns(UserWarning, match="goes on where another one ends, but forecasts use the"):
        FileTask(tmp_path, horizon=2, window=3)


def test_patterns_apply_to_tables_of_all_parts_and_to_new_folders(read, put, tmp_path):
    put({f"{part}/{name}.csv": ROWS for part in ("train", "test") for name in ("up_1", "down_2")})
    given = Columns(label_pattern="^([a-z]+)_", group_pattern=r"_(\d)")
    parts = read_parts(tmp_path, columns=given)
    assert parts["test"].y.tolist() == ["down", "up"] and parts["test"].groups.tolist() == [*"21"]
    known = parts["train"].columns
    assert read("test", known=known).y.tolist() == ["down", "up"]
    put({"new/r1.csv": ROWS, "new/r2.csv": ROWS})
    put({"new/labels.csv": "file,label\nr1,up\nr2,down\n"})
    new = read("new", known=known)  # where neither pattern fits
    assert new.y.tolist() == ["up", "down"] and new.groups is None


def test_the_digest_counts_names_and_contents(sounds, tmp_path):
    sounds("a/x/1.wav", "a/y/2.wav")
    sounds("b/x/1.wav", "b/y/2.wav")
    assert file_digest(tmp_path / "a") == file_digest(tmp_path / "b")
    (tmp_path / "b" / "y").rename(tmp_path / "b" / "z")
    assert file_digest(tmp_path / "a") != file_digest(tmp_path / "b")


def test_recordings_may_be_called_like_one_of_a_pair(put, tmp_path):
    names = [f"{kind}_{end}.csv" for kind in ("bus", "car") for end in ("train", "tram")]
    put(dict.fromkeys(names, NINE))
    task = FileTask(tmp_path, label_pattern="^([a-z]+)_", valid_share=0.0)
    assert task.class_names == ("bus", "car") and task.digest == file_digest(tmp_path)


def test_recordings_for_estimators(put, tmp_path):
    put({"a.npy": np.ones((9, 2)), "b.npy": np.ones((7, 2))})
    put({"labels.csv": "file,label,group\na,1,x\nb,2,y\n"})
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
    (run,), new = tmp_path.glob("file-LEM-*"), tmp_path / "sounds" / "low"
    assert cli("predict", run, new, "--output", "p.csv")[0] == 0
    found = predict(run, new)
    rows = [line.split(",") for line in Path("p.csv").read_text().splitlines()[1:]]
    assert [(row[1], row[2]) for row in rows] == [*zip(found.ids, found.labels, strict=True)]
    assert [float(row[3]) for row in rows] == pytest.approx(found.values[:, 0], abs=1e-5)
    one = predict(run, new / "1.wav")
    assert one.values[0] == pytest.approx(found.values[0], abs=1e-6)
    assert one.ids == found.ids[:1] == ("1.wav",)
    _, _, refused = cli("predict", run, new, "--output", "p.csv", "--evaluate")
    assert "each class into a folder" in refused and "--label-pattern" not in refused
