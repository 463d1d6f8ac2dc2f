import gzip
from dataclasses import replace

import numpy as np
import pytest

from anharmonic.data.sources import RemoteFile, Source, arrays_digest, load_arrays

OFFLINE = "http://127.0.0.1:9"  # nobody listens there
WANTED = {"a": np.arange(5), "b": np.array(["x", "yy"])}
DIGEST = arrays_digest(WANTED)


def prepare(files):
    assert [gzip.decompress(file.read_bytes()) for file in files] == [b"one", b"two"]
    return dict(WANTED)


def make_source(url, digest=DIGEST):
    files = (RemoteFile(f"{url}/one.gz", None), RemoteFile(f"{url}/two.gz", None))
    return Source("small", files, prepare, digest)


@pytest.fixture(autouse=True)
def once(monkeypatch):
    """No download is tried again, which would take seconds."""
    monkeypatch.setattr("anharmonic.data.download.RETRIES", 0)


@pytest.fixture
def served(server):
    url, folder = server
    for name in ("one", "two"):
        (folder / f"{name}.gz").write_bytes(gzip.compress(name.encode()))
    return url


def test_downloaded_prepared_and_kept(served, tmp_path):
    for url in (served, OFFLINE):
        arrays = load_arrays(make_source(url), tmp_path / "data", progress=False)
        assert [path.name for path in (tmp_path / "data" / "sequence").iterdir()] == ["small.npz"]
        assert arrays.keys() == WANTED.keys()
        assert all((arrays[key] == WANTED[key]).all() for key in WANTED)


def test_without_a_known_digest_the_first_one_is_kept(served, tmp_path):
    source = make_source(served, None)
    load_arrays(source, tmp_path, progress=False)
    record, archive = (tmp_path / "sequence" / f"small.{kind}" for kind in ("sha256", "npz"))
    assert record.read_text().strip() == arrays_digest(WANTED)
    load_arrays(source, tmp_path, progress=False)
    changed = WANTED | {"a": np.arange(6)}
    archive.unlink()
    with pytest.raises(ValueError, match=r"digest of .*small.npz must be .* as at first use"):
        load_arrays(replace(source, prepare=lambda files: changed), tmp_path, progress=False)
    assert not archive.exists()
    np.savez(archive, **changed)
    with pytest.raises(ValueError, match=r"as at first use.*the data changed; delete small.sha256"):
        load_arrays(source, tmp_path, progress=False)


def test_wrong_content_at_the_source(served, tmp_path):
    with pytest.raises(ValueError, match=r"digest of .*one.gz must be 000.*; got .*; download it"):
        load_arrays(make_source(served, "0" * 64), tmp_path, progress=False)
    source = replace(make_source(served, None), form={"a": ((5,), "uint8")})
    with pytest.raises(
        ValueError, match=r"a of .*one.gz must be \[5\] uint8; got '\[5\] int64'; d"
    ):
        load_arrays(source, tmp_path, progress=False)
    assert list((tmp_path / "sequence").iterdir()) == []


SMALL = Source("small", digest=DIGEST)
FORMED = Source("small", form={"x_train": ((5, 3), "uint8")})


@pytest.mark.parametrize(
    ("source", "arrays", "text"),
    [
        (SMALL, WANTED | {"a": np.arange(6)}, r"digest of .*small.npz must be .*; got .*; delete"),
        (FORMED, {"x": np.zeros(3)}, r"arrays of .* must be x_train; got \['x'\]; delete it, so"),
        (FORMED, {}, r"must be x_train; got \[\]"),
        (FORMED, {"x_train": np.zeros((4, 3), np.uint8)}, r"\[5, 3\] uint8; got '\[4, 3\] uint8'"),
    ],
)
def test_wrong_content_in_the_folder(tmp_path, source, arrays, text):
    path = tmp_path / "sequence" / "small.npz"
    path.parent.mkdir()
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=text):
        load_arrays(source, tmp_path)


def test_a_damaged_archive_is_to_be_deleted(tmp_path):
    path = tmp_path / "sequence" / "small.npz"
    path.parent.mkdir()
    path.write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(ValueError, match=r"small.npz must be a readable .npz archive; got .*delet"):
        load_arrays(SMALL, tmp_path)


def test_offline_says_which_file_goes_where(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        load_arrays(make_source(OFFLINE), tmp_path, progress=False)
    folder = tmp_path / "sequence"
    assert str(caught.value) == (
        f"the data set small must lie at {folder / 'small.npz'}, or be downloaded; got no such "
        "file, and the download failed (Connection refused); try again; or put these 2 files into "
        f"{folder / 'raw'} and start again: http://127.0.0.1:9/one.gz, http://127.0.0.1:9/two.gz; "
        f"or copy small.npz from a computer that has it into {folder}; or name another folder "
        "with --data-dir or ANHARMONIC_DATA."
    )
    assert list(folder.iterdir()) == []


def put_raw(folder, **contents):
    raw = folder / "sequence" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (raw / f"{name}.gz").write_bytes(content)


def test_files_put_there_by_hand_are_used(served, tmp_path):
    put_raw(tmp_path, two=gzip.compress(b"two"))
    files = (RemoteFile(f"{served}/one.gz", None), RemoteFile(f"{OFFLINE}/two.gz", None))
    assert load_arrays(replace(make_source(served), files=files), tmp_path, progress=False)
    (tmp_path / "sequence" / "small.npz").unlink()
    put_raw(tmp_path, one=gzip.compress(b"one"))
    arrays = load_arrays(make_source(OFFLINE), tmp_path, progress=False)
    assert arrays.keys() == WANTED.keys()
    assert sorted(path.name for path in (tmp_path / "sequence").iterdir()) == ["raw", "small.npz"]
    assert len(list((tmp_path / "sequence" / "raw").iterdir())) == 2


def test_wrong_files_put_there_by_hand(tmp_path):
    put_raw(tmp_path, one=b"cut", two=gzip.compress(b"two"))
    source = make_source(OFFLINE)
    with pytest.raises(ValueError, match=r"raw.one.gz must be a sound archive; got BadGzipFile: "):
        load_arrays(source, tmp_path, progress=False)
    files = (RemoteFile(source.files[0].url, "md5:" + "0" * 32), source.files[1])
    with pytest.raises(ValueError, match=r"md5 of .*raw.one.gz must be 0+; got '\w{32}'; download"):
        load_arrays(replace(source, files=files), tmp_path, progress=False)
    put_raw(tmp_path, one=gzip.compress(b"one"))
    with pytest.raises(ValueError, match=r"digest of .*raw.one.gz must be 0000"):
        load_arrays(replace(source, digest="0" * 64), tmp_path, progress=False)


def test_a_data_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match=r"small.npz must be writable, to keep .*; got Not a direct"):
        load_arrays(make_source(OFFLINE), tmp_path / "file", progress=False)


def test_what_cannot_be_downloaded(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"photographs.npz must exist; got no such file, an"
    ):
        load_arrays(Source("photographs"), tmp_path)


def test_digest_sees_names_types_shapes_and_values():
    a = np.zeros((2, 3), np.int32)
    others = [{"b": a}, {"a": a.astype(np.int64)}, {"a": a.reshape(3, 2)}, {"a": a + 1}]
    digests = {arrays_digest(arrays) for arrays in [{"a": a}, *others, {"a": a, "b": a}]}
    assert len(digests) == 6
    assert arrays_digest({"a": np.asfortranarray(a)}) in digests
