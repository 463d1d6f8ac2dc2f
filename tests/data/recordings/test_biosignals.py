"""EDF, BDF and WFDB, written by the libraries that read them."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from anharmonic.data.columns import Columns
from anharmonic.data.own import FileTask, read_inputs


def wave(steps, speed=0.3):
    return np.sin(speed * np.arange(steps))


NOTES = [(0, 2, "wake"), (2, 3, "N1")]
EEG, TEMP = (wave(300), 50, "EEG"), (wave(60, 0.1), 10, "temp")


@pytest.fixture
def edf(tmp_path):
    edfio = pytest.importorskip("edfio", reason="edfio is not installed (extra edf)")

    def write(name, notes=NOTES, signals=(EEG, TEMP)):
        """Signals are samples, samples per second, name; `notes` onset, duration, text."""
        kind = "Bdf" if name.endswith(".bdf") else "Edf"
        made = [getattr(edfio, f"{kind}Signal")(x, rate, label=label) for x, rate, label in signals]
        notes = [edfio.EdfAnnotation(*note) for note in notes]
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        getattr(edfio, kind)(made, annotations=notes).write(path)
        return path

    return write


@pytest.fixture
def wfdb(tmp_path):
    wfdb = pytest.importorskip("wfdb", reason="wfdb is not installed (extra wfdb)")

    def write(name, x, notes=(), **clock):
        """`notes` are samples and symbols."""
        where, count = {"write_dir": str(tmp_path)}, x.shape[1]
        units, names, form = ["mV"] * count, ["MLII", "V1"][:count], ["16"] * count
        wfdb.wrsamp(name, 100, units, names, p_signal=x, fmt=form, **where)
        if notes:
            wfdb.wrann(name, "atr", *map(np.array, notes), **clock, **where)

    return write


def test_annotations_of_edf_label_the_steps(read, edf):
    for name in "abc":
        edf(f"{name}.edf")
    part = read()
    assert part.channels == ("EEG", "temp") and part.lengths.tolist() == [300] * 3
    assert part.columns.rate == 50 and part.per_step
    assert part.y[:300, 0].tolist() == ["wake"] * 100 + ["N1"] * 150 + ["none"] * 50
    assert "labels of steps from annotations in the files" in part.columns.describe()
    np.testing.assert_allclose(part.x[:300, 0], wave(300), atol=1e-3)
    # The slow signal as fast as the other.
    np.testing.assert_allclose(part.x[50:250:5, 1], wave(60, 0.1)[10:50], atol=0.1)
    # Labels from elsewhere come first.
    named = read(label_pattern=r"^([a-z])")
    assert named.y.tolist() == [*"abc"] and not named.per_step


def test_a_run_predicts_from_one_new_edf(tmp_path, edf):
    for name in "abcdefgh":
        edf(f"old/{name}.edf")
    task = FileTask(tmp_path / "old")
    assert task.class_names == ("N1", "none", "wake") and task.readout == "all"
    new = edf("new.edf", [(0, 1, "something else")])
    inputs = read_inputs(new, task.preprocessing, task.columns)
    assert inputs.dataset.x.shape == (1, 300, 2)
    edf("new.edf", signals=[EEG])
    with pytest.raises(ValueError, match="channels"):
        read_inputs(new, task.preprocessing, task.columns)


def test_a_signal_slower_than_a_second_and_a_rate_with_a_fraction(tmp_path, monkeypatch):
    def signal(count, hertz, label):
        return SimpleNamespace(data=np.ones(count), sampling_frequency=hertz, label=label)

    from anharmonic.data.recordings.biosignals import read_edf

    note = SimpleNamespace(onset=10.0, duration=10.0, text="N1")
    signals = [signal(2010, 100.5, "EEG"), signal(4, 0.2, "temp")]
    file = SimpleNamespace(signals=signals, annotations=[note], reserved="EDF+C")
    monkeypatch.setitem(sys.modules, "edfio", SimpleNamespace(read_edf=lambda path: file))
    found = read_edf(tmp_path / "a.edf", "a.edf")
    assert found.rate == 100.5 and found.x.shape == (2010, 2) and np.allclose(found.x, 1)
    assert found.labels.tolist() == ["none"] * 1005 + ["N1"] * 1005


def test_annotations_beside_a_recording_follow_its_rate(read, edf, put):
    edf("a.edf", (), [(wave(1250), 62.5, "EEG")])
    put({"a.labels.csv": "start,end,label\n16,18,N1\n"})
    part = read()
    assert np.flatnonzero(part.y[:, 0] == "N1")[[0, -1]].tolist() == [1000, 1124]
    assert part.interval == 1 / 62.5 and "62.5 samples per second" in part.columns.describe()
    assert Columns.from_dict(part.columns.to_dict()) == part.columns


def test_edf_files_that_lack_annotations_or_samples(read, edf):
    whole = edf("a.edf").read_bytes().replace(b"EDF+C", b"EDF+D")
    path = edf("b.edf", ())
    with pytest.raises(ValueError, match=r"without annotations must be none; got \['b.edf'\]"):
        read()
    assert read(targets=False).y is None
    path.write_bytes(b"0       not an EDF file")
    with pytest.raises(ValueError, match=r"b.edf must be an EDF file"):
        read(targets=False)
    path.write_bytes(whole)
    assert read().y is not None  # marked as interrupted, but without pauses
    path.write_bytes(whole.replace(b"+5\x14\x14", b"+9\x14\x14"))
    with pytest.raises(ValueError, match=r"b.edf must be one continuous recording; got pauses"):
        read()
    path.write_bytes(whole.replace(b"EDF+D", b"EDF+C")[:-200])
    with pytest.warns(UserWarning, match=r"b.edf should be whole; got EDF header indicates 6"):
        assert read(targets=False).lengths.tolist() == [300, 200]


def test_bdf_in_folders(read, edf):
    for name in ("up", "down"):
        edf(f"{name}/1.bdf", ())
    assert read().y.tolist() == ["down", "up"]


@pytest.mark.parametrize(("module", "name"), [("edfio", "a.edf"), ("wfdb", "a.hea")])
def test_without_the_library_the_extra_is_named(read, put, monkeypatch, module, name):
    monkeypatch.setitem(sys.modules, module, None)
    put({name: ""})
    with pytest.raises(ImportError, match=rf"anharmonic\[{module.removesuffix('io')}\]"):
        read(name, targets=False)


def test_symbols_of_wfdb_label_the_steps(read, wfdb, put):
    x = np.stack([wave(40), wave(40, 0.1)], axis=1)
    wfdb("r1", x, ([5, 15, 30], ["N", "V", "N"]))
    wfdb("r2", x, ([50, 150, 300], ["N", "V", "N"]), fs=1000)  # a finer clock of the annotations
    part = read()
    assert part.channels == ("MLII", "V1") and part.columns.rate == 100
    assert part.lengths.tolist() == [40, 40]
    assert part.y[:, 0].tolist() == 2 * (["none"] * 5 + ["N"] * 10 + ["V"] * 15 + ["N"] * 10)
    np.testing.assert_allclose(part.x[:40], x, atol=1e-3)
    new = read("r1.hea", False, part.columns)
    assert new.y is None and np.array_equal(new.x, part.x[:40])
    for damaged in ("nothing\n", "r 0 100 40\n"):  # without signals
        put({"r2.hea": damaged})
        with pytest.raises(ValueError, match=r"r2.hea must be the header of a WFDB record"):
            read(targets=False)


def test_segments_of_a_record_are_not_recordings_beside_it(read, wfdb, put):
    for name in ("r_1", "r_2"):
        wfdb(name, wave(40)[:, None])
    put({"r.hea": "# two segments\nr/2 1 100 80\nr_1 40\nr_2 40\n"})
    part = read(targets=False)
    assert part.ids.tolist() == ["r.hea"] and part.lengths.tolist() == [80]
