"""EDF, BDF and WFDB, written by the libraries that read them."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from anharmonic.data.columns import Columns
from anharmonic.data.own import FileTask, read_inputs
from anharmonic.data.readers import read_parts


def wave(steps, speed=0.3):
    return np.sin(speed * np.arange(steps))


@pytest.fixture
def edf():
    edfio = pytest.importorskip("edfio", reason="edfio is not installed (extra edf)")

    def write(path, notes=(), seconds=6, kind="Edf", slow=True):
        """Two signals, of 50 and of 10 samples per second."""
        signals = [getattr(edfio, f"{kind}Signal")(wave(50 * seconds), 50, label="EEG")]
        if slow:
            temperature = getattr(edfio, f"{kind}Signal")(wave(10 * seconds, 0.1), 10, label="temp")
            signals.append(temperature)
        notes = [edfio.EdfAnnotation(*note) for note in notes]
        getattr(edfio, kind)(signals, annotations=notes).write(path)

    return write


NOTES = [(0, 2, "wake"), (2, 3, "N1")]


def test_annotations_of_edf_label_the_steps(tmp_path, edf):
    for name in ("a", "b", "c"):
        edf(tmp_path / f"{name}.edf", NOTES)
    part = read_parts(tmp_path)["all"]
    assert part.channels == ("EEG", "temp") and part.lengths.tolist() == [300] * 3
    assert part.columns.rate == 50 and part.per_step
    assert part.y[:300, 0].tolist() == ["wake"] * 100 + ["N1"] * 150 + ["none"] * 50
    assert "labels of steps from annotations in the files" in part.columns.describe()
    np.testing.assert_allclose(part.x[:300, 0], wave(300), atol=1e-3)
    # The slow signal as fast as the other.
    np.testing.assert_allclose(part.x[50:250:5, 1], wave(60, 0.1)[10:50], atol=0.1)


def test_a_run_predicts_from_one_new_edf(tmp_path, edf):
    (tmp_path / "old").mkdir()
    for name in "abcdefgh":
        edf(tmp_path / "old" / f"{name}.edf", NOTES)
    task = FileTask(tmp_path / "old")
    assert task.class_names == ("N1", "none", "wake") and task.readout == "all"
    edf(tmp_path / "new.edf", [(0, 1, "something else")])
    inputs = read_inputs(tmp_path / "new.edf", task.preprocessing, task.columns)
    assert inputs.dataset.x.shape == (1, 300, 2)
    edf(tmp_path / "new.edf", slow=False)
    with pytest.raises(ValueError, match="channels"):
        read_inputs(tmp_path / "new.edf", task.preprocessing, task.columns)


def test_a_signal_slower_than_a_second_and_a_rate_with_a_fraction(tmp_path, monkeypatch):
    def signal(count, hertz, label):
        return SimpleNamespace(data=np.ones(count), sampling_frequency=hertz, label=label)

    pytest.importorskip("pyarrow")
    from anharmonic.data.recordings.biosignals import read_edf

    note = SimpleNamespace(onset=10.0, duration=10.0, text="N1")
    signals = [signal(2010, 100.5, "EEG"), signal(4, 0.2, "temp")]
    file = SimpleNamespace(signals=signals, annotations=[note], reserved="EDF+C")
    monkeypatch.setitem(sys.modules, "edfio", SimpleNamespace(read_edf=lambda path: file))
    found = read_edf(tmp_path / "a.edf", "a.edf")
    assert found.rate == 100.5 and found.x.shape == (2010, 2) and np.allclose(found.x, 1)
    assert found.labels.tolist() == ["none"] * 1005 + ["N1"] * 1005


def test_annotations_beside_a_recording_follow_its_rate(tmp_path):
    edfio = pytest.importorskip("edfio", reason="edfio is not installed (extra edf)")
    edfio.Edf([edfio.EdfSignal(wave(1250), 62.5, label="EEG")]).write(tmp_path / "a.edf")
    (tmp_path / "a.labels.csv").write_text("start,end,label\n16,18,N1\n")
    part = read_parts(tmp_path)["all"]
    assert np.flatnonzero(part.y[:, 0] == "N1")[[0, -1]].tolist() == [1000, 1124]
    assert part.interval == 1 / 62.5 and "62.5 samples per second" in part.columns.describe()
    assert Columns.from_dict(part.columns.to_dict()) == part.columns


def test_a_file_without_annotations_among_others_is_named(tmp_path, edf):
    edf(tmp_path / "a.edf", NOTES)
    edf(tmp_path / "b.edf")
    with pytest.raises(ValueError, match=r"without annotations must be none; got \['b.edf'\]"):
        read_parts(tmp_path)
    assert read_parts(tmp_path, targets=False)["all"].y is None


def test_pauses_within_an_edf_are_refused(tmp_path, edf):
    edf(tmp_path / "a.edf", NOTES)
    whole = (tmp_path / "a.edf").read_bytes().replace(b"EDF+C", b"EDF+D")
    (tmp_path / "a.edf").write_bytes(whole)
    assert read_parts(tmp_path)["all"].y is not None  # marked as interrupted, but without pauses
    (tmp_path / "a.edf").write_bytes(whole.replace(b"+5\x14\x14", b"+9\x14\x14"))
    with pytest.raises(ValueError, match=r"a.edf must be one continuous recording; got pauses"):
        read_parts(tmp_path)


def test_labels_from_elsewhere_come_first(tmp_path, edf):
    for name in ("up-1", "up-2", "down-1"):
        edf(tmp_path / f"{name}.edf", NOTES)
    part = read_parts(tmp_path, columns=Columns(label_pattern=r"^(\w+)-"))["all"]
    assert part.y.tolist() == ["down", "up", "up"] and not part.per_step


def test_bdf_and_files_without_annotations(tmp_path, edf):
    for name in ("up/1", "down/1"):
        (tmp_path / name).parent.mkdir()
        edf(tmp_path / f"{name}.bdf", kind="Bdf")
    part = read_parts(tmp_path)["all"]
    assert part.y.tolist() == ["down", "up"]
    with pytest.raises(ValueError, match=r"recordings of .* must have labels"):
        read_parts(tmp_path / "up")


def test_damaged_files_are_named(tmp_path, edf):
    (tmp_path / "up").mkdir()
    edf(tmp_path / "up" / "a.edf")
    (tmp_path / "up" / "b.edf").write_bytes(b"0       not an EDF file")
    with pytest.raises(ValueError, match=r"b.edf must be an EDF file"):
        read_parts(tmp_path / "up", targets=False)


def test_a_cut_file_is_read_with_a_warning(tmp_path, edf):
    edf(tmp_path / "a.edf", NOTES)
    (tmp_path / "a.edf").write_bytes((tmp_path / "a.edf").read_bytes()[:-200])
    with pytest.warns(UserWarning, match=r"a.edf should be whole; got EDF header indicates 6"):
        assert read_parts(tmp_path, targets=False)["all"].lengths.tolist() == [200]


def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch):
    for module, name, extra in (("edfio", "a.edf", "edf"), ("wfdb", "a.hea", "wfdb")):
        monkeypatch.setitem(sys.modules, module, None)
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(ImportError, match=rf"anharmonic\[{extra}\]"):
            read_parts(tmp_path / name, targets=False)


def test_symbols_of_wfdb_label_the_steps(tmp_path):
    wfdb = pytest.importorskip("wfdb", reason="wfdb is not installed (extra wfdb)")
    x = np.stack([wave(40), wave(40, 0.1)], axis=1)
    for name in ("r1", "r2"):
        where = {"write_dir": str(tmp_path)}
        wfdb.wrsamp(name, 100, ["mV", "mV"], ["MLII", "V1"], p_signal=x, fmt=["16", "16"], **where)
        wfdb.wrann(name, "atr", np.array([5, 15, 30]), np.array(["N", "V", "N"]), **where)
    part = read_parts(tmp_path)["all"]
    assert part.channels == ("MLII", "V1") and part.columns.rate == 100
    assert part.lengths.tolist() == [40, 40]
    assert part.y[:40, 0].tolist() == ["none"] * 5 + ["N"] * 10 + ["V"] * 15 + ["N"] * 10
    np.testing.assert_allclose(part.x[:40], x, atol=1e-3)
    new = read_parts(tmp_path / "r1.hea", targets=False, columns=part.columns)["all"]
    assert new.y is None and np.array_equal(new.x, part.x[:40])
    (tmp_path / "r2.hea").write_text("nothing\n")
    with pytest.raises(ValueError, match=r"r2.hea must be the header of a WFDB record"):
        read_parts(tmp_path)


def test_segments_of_a_record_are_not_recordings_beside_it(tmp_path):
    wfdb = pytest.importorskip("wfdb", reason="wfdb is not installed (extra wfdb)")
    for name in ("r_1", "r_2"):
        x, where = wave(40)[:, None], {"write_dir": str(tmp_path)}
        wfdb.wrsamp(name, 100, ["mV"], ["MLII"], p_signal=x, fmt=["16"], **where)
    (tmp_path / "r.hea").write_text("# two segments\nr/2 1 100 80\nr_1 40\nr_2 40\n")
    part = read_parts(tmp_path, targets=False)["all"]
    assert part.ids.tolist() == ["r.hea"] and part.lengths.tolist() == [80]


def test_a_finer_clock_of_wfdb_annotations_and_a_header_without_signals(tmp_path):
    wfdb = pytest.importorskip("wfdb", reason="wfdb is not installed (extra wfdb)")
    where = {"write_dir": str(tmp_path)}
    wfdb.wrsamp("r", 100, ["mV"], ["MLII"], p_signal=wave(40)[:, None], fmt=["16"], **where)
    wfdb.wrann("r", "atr", np.array([50, 150]), np.array(["N", "V"]), fs=1000, **where)
    part = read_parts(tmp_path)["all"]
    assert part.y[:, 0].tolist() == ["none"] * 5 + ["N"] * 10 + ["V"] * 25
    (tmp_path / "r.hea").write_text("r 0 100 40\n")
    with pytest.raises(ValueError, match=r"r.hea must be the header of a WFDB record"):
        read_parts(tmp_path, targets=False)
