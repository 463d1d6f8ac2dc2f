import gzip
import io
from dataclasses import replace

import numpy as np
import pytest

from anharmonic.data.sources import RemoteFile, Source, arrays_digest, load_arrays

OFFLINE = "http://127.0.0.1:9"  # nobody listens there
WANTED = {"a": np.arange(5), "b": np.array(["x", "yy"])}
DIGEST = arrays_digest(WANTED)
ONE, TWO = gzip.compress(b"one"), gzip.compress(b"two")


def prepare(files):
    assert [gzip.decompress(file.read_bytes()) for file in files] == [b"one", b"two"]
    return dict(WANTED)


def make_source(url, digest=DIGEST, other=None):
    files = (RemoteFile(f"{url}/one.gz", None), RemoteFile(f"{other or url}/two.gz", None))
    return Source("small", files, prepare, digest)


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Loads the arrays of a source; no download is tried again, which would take seconds."""
    monkeypatch.setattr("anharmonic.data.download.RETRIES", 0)
    return lambda source: load_arrays(source, tmp_path, progress=False)


@pytest.fixture
def served(server):
    url, folder = server
    (folder / "one.gz").write_bytes(ONE)
    (folder / "two.gz").write_bytes(TWO)
    return url


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sequence" / "raw").mkdir(parents=True)
    return tmp_path / "sequence"


def test_downloaded_prepared_and_kept(served, load, tmp_path):
    for url in (served, OFFLINE):
        arrays = load(make_source(url))
        assert [path.name for path in (tmp_path / "sequence").iterdir()] == ["small.npz"]
        assert arrays.keys() == WANTED.keys()
        assert all((arrays[key] == WANTED[key]).all() for key in WANTED)


def test_without_a_known_digest_the_first_one_is_kept(served, load, tmp_path):
    source = make_source(served, None)
    load(source)
    record, archive = (tmp_path / "sequence" / f"small.{kind}" for kind in ("sha256", "npz"))
    assert record.read_text().strip() == arrays_digest(WANTED)
    load(source)
    changed = WANTED | {"a": np.arange(6)}
    archive.unlink()
    with pytest.raises(ValueError, match=r"digest of .*small.npz must be .* as at first use"):
        load(replace(source, prepare=lambda files: changed))
    assert not archive.exists()
    np.savez(archive, **changed)
    with pytest.raises(ValueError, match=r"as at first use.*the data changed; delete small.sha256"):
        load(source)


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


SMALL = Source("small", digest=DIGEST)
FORMED = Source("small", form={"x_train": ((5, 3), "uint8")})
MADE, MD5 = make_source(OFFLINE), RemoteFile(f"{OFFLINE}/one.gz", "md5:" + "0" * 32)
RAW = {"raw/one.gz": ONE, "raw/two.gz": TWO}


@pytest.mark.parametrize(
    ("source", "files", "said"),
    [
        (SMALL, {"small.npz": npz(a=np.arange(6))}, r"digest of .*small.npz must .*; got .*; del"),
        (SMALL, {"small.npz": b"PK\x03\x04 broken"}, r"a readable .npz archive; got .*delet"),
        (FORMED, {"small.npz": npz(x=np.zeros(3))}, r"must be x_train; got \['x'\]; delete"),
        (FORMED, {"small.npz": npz(x_train=np.ones((4, 3), "u1"))}, r"\[5, 3\] uint8; got '\[4, 3"),
        (MADE, RAW | {"raw/one.gz": b"cut"}, r"one.gz must be a sound archive; got BadGzipFile: "),
        (replace(MADE, files=(MD5, MADE.files[1])), RAW, r"md5 of .*one.gz must be 0+; got '\w"),
        (replace(MADE, digest="0" * 64), RAW, r"digest of .*raw.one.gz must be 0000"),
        (replace(MADE, digest=None, form={"a": ((5,), "uint8")}), RAW,
         r"a of .*one.gz must be \[5\] uint8; got '\[5\] int64'; d"),
    ],
)  # fmt: skip
def test_wrong_files_in_the_folder(folder, load, source, files, said):
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=said):
        load(source)


def test_offline_says_which_file_goes_where(load, tmp_path):
    folder = tmp_path / "sequence"
    said = (
        f"at {folder / 'small.npz'}, .* download failed .Connection refused.; .* 2 files into "
        rf"{folder / 'raw'} .*: {OFFLINE}/one\.gz, {OFFLINE}/two\.gz; .* --data-dir"
    )
    with pytest.raises(FileNotFoundError, match=said):
        load(make_source(OFFLINE))
    assert list(folder.iterdir()) == []


def test_files_put_there_by_hand_are_used(served, load, folder):
    (folder / "raw" / "two.gz").write_bytes(TWO)
    assert load(make_source(served, other=OFFLINE))
    (folder / "small.npz").unlink()
    (folder / "raw" / "one.gz").write_bytes(ONE)
    assert load(make_source(OFFLINE)).keys() == WANTED.keys()
    assert sorted(path.name for path in folder.iterdir()) == ["raw", "small.npz"]
    assert len(list((folder / "raw").iterdir())) == 2


def test_what_cannot_be_kept_or_downloaded(load, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"photographs.npz must exist; got no such file, a"):
        load(Source("photographs"))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match=r"small.npz must be writable, to keep .*; got Not a direct"):
        load_arrays(make_source(OFFLINE), tmp_path / "file", progress=False)


def test_digest_sees_names_types_shapes_and_values():
    a = np.zeros((2, 3), np.int32)
    others = [{"b": a}, {"a": a.astype(np.int64)}, {"a": a.reshape(3, 2)}, {"a": a + 1}]
    digests = {arrays_digest(arrays) for arrays in [{"a": a}, *others, {"a": a, "b": a}]}
    assert len(digests) == 6
    assert arrays_digest({"a": np.asfortranarray(a)}) in digests
