"""Hostile data files through the command line: one clear error, nothing is run, no memory taken."""

import io
import os
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

X = np.random.default_rng(0).standard_normal((20, 5, 2)).astype(np.float32)
Y = np.arange(20) % 2
nan, inf = np.nan, np.inf

ARRAYS = {
    "x of objects": {"x": np.array([[1, 2], [3]], dtype=object), "y": Y},
    "x a number": {"x": np.float32(3), "y": Y},
    "x bool": {"x": X > 0, "y": Y},
    "x dates": {"x": np.zeros((20, 5), "M8[s]"), "y": Y},
    "x structured": {"x": np.zeros((20, 5), [("a", "f4")]), "y": Y},
    "x nan": {"x": np.full_like(X, nan), "y": Y},
    "x inf": {"x": np.full_like(X, inf), "y": Y},
    "x beyond float32": {"x": np.full(X.shape, 1e300), "y": Y},
    "x no time": {"x": X[:, :0], "y": Y},
    "y short": {"x": X, "y": Y[:7]},
    "y of four axes": {"x": X, "y": np.zeros((20, 1, 1, 1))},
    "y a number": {"x": X, "y": np.int64(3)},
    "y nan": {"x": X, "y": np.full(20, nan)},
    "y inf": {"x": X, "y": np.full(20, inf)},
    "y complex": {"x": X, "y": Y * 1j},
    "y dates": {"x": X, "y": np.zeros(20, "M8[s]")},
    "y structured": {"x": X, "y": np.zeros(20, [("a", "i4")])},
    "y one class": {"x": X, "y": Y * 0},
    "one sequence": {"x": X[:1], "y": Y[:1]},
    "two sequences": {"x": X[:2], "y": Y[:2]},
    "lengths largest": {"x": X, "y": Y, "lengths": np.full(20, 2**64 - 1, dtype=np.uint64)},
    "offsets overflow": {"x": X[0], "y": Y[:2], "offsets": np.array([0, 2**63 - 1, 5])},
    "offsets of two axes": {"x": X[0], "y": Y[:2], "offsets": np.array([[0, 5]])},
    "unseen class": {"x_train": X, "y_train": Y, "x_test": X, "y_test": Y + 5},
    "empty test": {"x_train": X, "y_train": Y, "x_test": X[:0], "y_test": Y[:0]},
}
QUICK = ("x of objects", "x nan", "y short", "lengths largest")


def some(cases, quick):
    return [
        pytest.param(case, id=name, marks=() if name in quick else pytest.mark.slow)
        for name, case in cases.items()
    ]


@pytest.mark.parametrize("given", some(ARRAYS, QUICK))
def test_arrays(given, refused_by_command, tiny):
    np.savez("d.npz", **given)
    refused_by_command("train", "lem", "d.npz", *tiny)


def npy(array, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), **options)
    return buffer.getvalue()


def headed(shape, dtype="'<f4'", body=b""):
    """An array's file whose header says what it will."""
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (63 - (10 + len(text)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin1") + body


MEMBERS = {
    "no array": {"x.npy": b"hello"},
    "no ending": {"x": b"hello"},
    "10**12 rows": {"x.npy": headed("(1000000000000, 5)")},
    "10**9 rows": {"x.npy": headed("(1000000000, 2)")},
    "negative": {"x.npy": headed("(-1, 5)", body=b"0" * 400)},
    "overflow": {"x.npy": headed(f"({2**40}, {2**40})")},
    "bool": {"x.npy": headed("(True, 5)")},
    "code": {"x.npy": headed("__import__('os').system('touch EVIL')")},
    "nested": {"x.npy": headed("(" * 3000)},
    "brackets": {"x.npy": headed("[" * 90)},
    "objects": {"x.npy": headed("(2,)", "'O8'")},
    "long text": {"x.npy": npy(X), "y.npy": headed("(20,)", "'<U1000000000'")},
    "version 9": {"x.npy": b"\x93NUMPY\x09\x00" + b"\0" * 50},
    "a path": {"../../x.npy": npy(X)},
    "another name": {"z.npy": npy(Y)},
}


@pytest.mark.parametrize("members", some(MEMBERS, ("10**12 rows", "code")))
def test_members(members, refused_by_command, tiny, evil):
    with zipfile.ZipFile("d.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in {"y.npy": npy(Y), **members}.items():
            file.writestr(name, content)
    refused_by_command("train", "lem", "d.npz", *tiny)
    assert not Path("../../x.npy").exists()


def test_pickles(refused_by_command, tiny, evil):
    for content in (npy(np.array([evil, 1], object), allow_pickle=True), pickle.dumps(evil)):
        with zipfile.ZipFile("d.npz", "w") as file:
            file.writestr("x.npy", content)
            file.writestr("y.npy", npy(Y))
        refused_by_command("train", "lem", "d.npz", *tiny)


def changed(position, offset, value):
    """A header of the archive's first member, changed in both places."""

    def change(whole):
        data = bytearray(whole)
        data[data.find(b"PK\x01\x02") + offset] = value
        data[position] = value
        return bytes(data)

    return change


ARCHIVES = {
    "no archive": lambda whole: b"hello",
    "empty": lambda whole: b"",
    "cut": lambda whole: whole[:-40],
    "other bytes": lambda whole: whole.replace(X.tobytes()[40:60], b"\0" * 20),
    "encrypted": changed(6, 8, 1),
    "unknown compression": changed(8, 10, 99),
}


@pytest.mark.parametrize("change", some(ARCHIVES, ("cut",)))
def test_archives(change, refused_by_command, tiny):
    np.savez("d.npz", x=X, y=Y)
    path = Path("d.npz")
    path.write_bytes(change(path.read_bytes()))
    refused_by_command("train", "lem", "d.npz", *tiny)


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True], ids=["cut", "whole"])
def test_gigabytes_of_zeros(whole, process, tiny):
    """A small file; the process may have 4 GB of addresses more than it starts with."""
    with zipfile.ZipFile("d.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("y.npy", npy(Y))
        with file.open("x.npy", "w", force_zip64=True) as x:
            x.write(headed("(20, 12500000, 4)"))
            for _ in range(250 if whole else 1):
                x.write(bytes(16 * 10**6))
    code, _, error = process("train", "lem", "d.npz", *tiny)
    assert code in (1, 2) and "; got " in error and "unexpected" not in error, error
    assert "Traceback" not in error


ODD = {
    "y bool": {"x": X, "y": Y > 0},
    "float16": {"x": X.astype(np.float16), "y": Y},
    "big-endian": {"x": X.astype(">f8"), "y": Y.astype(">i4")},
    "Fortran order": {"x": np.asfortranarray(X), "y": Y},
    "odd labels": {"x": X, "y": np.array(['a,b"\n', "=1+1", "", "ü✓", " "] * 4)},
    "constant": {"x": np.ones_like(X), "y": Y},
    "one step": {"x": X[:, :1], "y": Y},
}


@pytest.mark.slow
@pytest.mark.parametrize("given", ODD.values(), ids=ODD)
def test_odd_arrays_train_or_are_refused(given, cli, tiny):
    np.savez("Ünï ✓ x.npz", **given)
    code, _, error = cli("train", "lem", "Ünï ✓ x.npz", *tiny)
    assert code in (0, 1, 2) and "Traceback" not in error and "unexpected" not in error, error
    assert code == 0 or "; got " in error


HEAD = "@problemName x\n@univariate true\n@classLabel true a b\n@data\n"
GOOD = "".join(f"{i},{i + 1},2:{'ab'[i % 2]}\n" for i in range(20))
TS = {
    "empty": "",
    "a tag without a name": "@\n@data\n",
    "a word": HEAD + GOOD + "1,x,3:a\n",
    "no label": HEAD + GOOD + "1,2,3\n",
    "empty case": HEAD + GOOD + ":a\n",
    "inf": HEAD + GOOD + "1,inf,3:a\n",
    "1e999": HEAD + GOOD + "1,1e999,3:a\n",
    "timestamps": "@timestamps true\n" + HEAD + GOOD,
    "NUL": HEAD + GOOD + "1,\0,3:a\n",
    "hex": HEAD + GOOD + "0x10,2,3:a\n",
    "commas": HEAD + GOOD + "," * 2_000_000 + ":a\n",
    "UTF-16": (HEAD + GOOD).encode("utf-16"),
}


@pytest.mark.parametrize("content", some(TS, ("a word", "NUL")))
def test_ts(content, refused_by_command, tiny):
    Path("d.ts").write_bytes(content if isinstance(content, bytes) else content.encode())
    refused_by_command("train", "lem", "d.ts", *tiny)


@pytest.mark.slow
@pytest.mark.parametrize("make", ["crlf", "bom", "no end", "missing"])
def test_odd_ts_train_or_are_refused(make, cli, tiny):
    text = HEAD + GOOD
    content = {
        "crlf": text.replace("\n", "\r\n").encode(),
        "bom": text.encode("utf-8-sig"),
        "no end": text[:-1].encode(),
        "missing": (text + "1,?,3:a\n").encode(),
    }[make]
    Path("d.ts").write_bytes(content)
    code, _, error = cli("train", "lem", "d.ts", *tiny)
    assert code in (0, 1, 2) and "Traceback" not in error and "unexpected" not in error, error


PLACES = {
    "a folder": lambda path: path.mkdir(),
    "nothing": lambda path: None,
    "a dangling link": lambda path: path.symlink_to("no"),
    "a pipe": lambda path: os.mkfifo(path),
}


@pytest.mark.covering
@pytest.mark.parametrize("make", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("name", ["d.ts", "d.npz", "d.csv", "d.parquet"])
def test_places(make, name, refused_by_command, tiny):
    make(Path(name))
    refused_by_command("train", "lem", name, *tiny)
