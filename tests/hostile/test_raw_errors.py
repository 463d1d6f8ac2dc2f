"""What other libraries would say in their own words, we say in ours."""

import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from anharmonic.cli import main as command_line
from anharmonic.data import read_parts
from anharmonic.data.options import DataOptions
from anharmonic.train.study import open_study


def _rows(path="d.csv", **columns):
    """Ten recordings of five steps."""
    table = {
        "id": [i // 5 for i in range(50)],
        "time": [i % 5 for i in range(50)],
        "x": [i * 0.1 for i in range(50)],
        "label": ["ab"[i // 5 % 2] for i in range(50)],
    }
    table = pa.table({**table, **columns})
    (pq.write_table if path.endswith("parquet") else csv.write_csv)(table, path)
    return Path(path)


@pytest.mark.covering
@pytest.mark.parametrize("year", ["0001", "1677", "2262", "9999"])
@pytest.mark.parametrize("form", ["{0}-12-0{1}", "0{1}.12.{0}", "{0}/12/0{1}", "s", "ms", "us"])
def test_dates_that_nanoseconds_do_not_reach(year, form, refused):
    is_text = "{" in form
    days = [(form if is_text else "{0}-12-0{1}").format(year, 1 + i % 5) for i in range(50)]
    time = days if is_text else pa.array(np.array(days, f"M8[{form}]"))
    path = _rows("d.csv" if is_text else "d.parquet", time=time)
    refused(lambda: read_parts(path), names="1678")


@pytest.mark.parametrize("kind", ["D", "s", "ms", "us"])
def test_dates_in_parquet(kind):
    days = np.array([f"2024-12-{1 + i % 5:02d}" for i in range(50)], "M8[D]")
    time = pa.array(days.astype(f"M8[{kind}]"))
    assert len(read_parts(_rows("d.parquet", time=time))["all"]) == 10


@pytest.mark.parametrize("base", [0, 2**53 + 1, 2**63 - 20, 2**63, 2**64 - 10])
def test_ids_of_64_bits_stay_apart(base):
    ids = pa.array([base + i // 5 for i in range(50)], pa.uint64())
    part = read_parts(_rows("d.parquet", id=ids))["all"]
    assert sorted(map(int, part.ids)) == [base + i for i in range(10)]


def test_nested_layout_without_lists(refused_by_command, tiny):
    _rows()
    words = ("train", "lem", "d.csv", "--layout", "nested", *tiny)
    refused_by_command(*words, names="lists")


@pytest.mark.covering
@pytest.mark.parametrize("name", ["test_groups", "forecast", "ignore"])
@pytest.mark.parametrize("value", ["ab", b"ab", 3, None])
def test_a_name_where_a_list_is_wanted(name, value, refused):
    refused(lambda: DataOptions(**{name: value}), names=name)


STORAGES = {
    "memory": ("sqlite://", ""),
    "memory by name": ("sqlite:///:memory:", ""),
    "no path": ("sqlite:///", ""),
    "an option": ("sqlite:///a.db?timeout=x", ""),
    "no such option": ("sqlite:///a.db?bogus=1", ""),
    "no such folder": ("sqlite:////nowhere/a.db", ""),
    "below a file": ("noise.db/below", "got unable to open database file; correct the path"),
    "no such kind": ("grpc://localhost:1", "opens: grpc://localhost:1; got Can't load plugin"),
    "a password": ("mysql+none://me:secret@here/a", "mysql+none://me:***@here/a; got Can't load"),
    "no such package": ("postgresql+psycopg2://here/a", "import of psycopg2 halted"),
    "nothing": ("://", "got '://'; write for example sqlite:///"),
    "a port": ("postgresql://u@h:x/a", ""),
    "a device": ("/dev/null", ""),
    "a folder": (".", "storage must be a file, new or of a search"),
    "a NUL": ("a\0b", ""),
    "a long name": ("a" * 5000, ""),
    "no database": ("noise.db", "got file is not a database; choose another file"),
    "half a database": ("half.db", ""),
    "a journal": ("old.journal", "what older versions wrote as a journal is not read"),
}


@pytest.mark.parametrize(("storage", "said"), STORAGES.values(), ids=STORAGES)
def test_storages(storage, said, refused, monkeypatch):
    monkeypatch.setattr("anharmonic.train.study._WAIT", 0.0)
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    Path("old.journal").write_text('{"op_code":0,"worker_id":"a","study_name":"one"}\n')
    noise = np.random.default_rng(0).bytes(4000)
    Path("noise.db").write_bytes(noise)
    Path("half.db").write_bytes(b"SQLite format 3\0" + noise)
    lock = Path("/dev/null.lock")
    try:
        refused(lambda: open_study(storage, print).__enter__(), names=said or "storage")
        assert not lock.exists()
    finally:
        lock.unlink(missing_ok=True)


NUMBERS = ("batch-size", "epochs", "patience", "lr-drop-epoch", "patch", "hidden-size")


@pytest.mark.covering
@pytest.mark.parametrize("flag", NUMBERS)
@pytest.mark.parametrize("value", [10**22, 2**63, 10**400])
def test_numbers_beyond_64_bits(flag, value, refused_by_command, arrays, tiny):
    np.savez("d.npz", x=arrays["x"], y=arrays["y"])
    refused_by_command("train", "lem", "d.npz", *tiny, f"--{flag}", value)


@pytest.mark.parametrize("output", [".", "", "/", ".."])
def test_an_output_that_is_a_folder(output, trained, refused_by_command):
    refused_by_command("predict", trained, "d.npz", "--output", output, names="--output")


def test_a_page_that_is_a_folder(trained, refused_by_command):
    refused_by_command("diagnose", trained, "--html", ".", names="--html")


ENCODINGS = ("ascii", "latin-1", "cp1252", "utf-8")


@pytest.mark.fast("ascii", "utf-8")
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_terminals_that_lack_characters(encoding, arrays, tiny, monkeypatch):
    """Table and page come whatever the terminal has."""
    np.savez("data ✓.npz", x=arrays["x"], y=np.array(["ä✓", "–"])[arrays["y"]])
    words = ("compare", "data ✓.npz", "--models", "gru", "--seeds", "0", "1", *tiny)
    with open("out.txt", "w", encoding=encoding) as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert command_line.main([*map(str, words), "--html", "page ✓.html"]) == 0
        run = next(path for path in Path("runs").iterdir() if path.is_dir())
        assert command_line.main(["predict", str(run), "data ✓.npz", "--output", "-"]) == 0
    said = Path("out.txt").read_bytes()
    assert "±".encode() in said if encoding == "utf-8" else b"50" in said
    assert Path("page ✓.html").exists()
    assert "p_ä✓".encode() in said  # the CSV is in UTF-8, as its file would be


def test_names_that_are_no_text(trained, cli, tiny):
    code, out, error = cli("predict", trained, "d.npz", "--output", "p\udce9.csv")
    assert code == 0 and "p\\udce9.csv" in out, (out, error)
    assert Path("p\udce9.csv").exists()
    code, out, error = cli("train", "lem", "d.npz", *tiny, "--seed", "1", "--out", "r\udce9")
    assert code == 0 and "run folder" in out, (out, error)


@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (KeyboardInterrupt(), 130, []),
        (SystemExit(143), 143, []),
        (ValueError("broken"), 0, ["broken"]),
    ],
)
def test_an_interruption_in_a_finaliser_ends_the_command(error, code, printed, monkeypatch):
    class Broken:
        def __del__(self):
            raise error

    def work(words, debug):
        Broken()
        end = time.monotonic() + (0 if printed else 20)
        while time.monotonic() < end:
            time.sleep(0.01)
        return 0

    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: seen.append(str(found.exc_value)))
    monkeypatch.setattr(command_line, "_dispatch", work)
    assert command_line.main(["list"]) == code and seen == printed
