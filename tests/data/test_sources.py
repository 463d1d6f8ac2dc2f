import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anharmonic.data.sources import Arrays, RemoteFile, Source, arrays_digest, load_arrays

WANTED = {"a": np.arange(5), "b": np.array(["x", "yy"])}


def prepare(files: Sequence[Path]) -> Arrays:
    assert [gzip.decompress(file.read_bytes()) for file in files] == [b"one", b"two"]
    return dict(WANTED)


def make_source(url: str, digest: str | None = arrays_digest(WANTED)) -> Source:
    files = (RemoteFile(f"{url}/one.gz", None), RemoteFile(f"{url}/two.gz", None))
    return Source("small", files, prepare, digest)


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No download is tried again, which would take seconds."""
    monkeypatch.setattr("anharmonic.data.download.RETRIES", 0)


@pytest.fixture
def served(server: tuple[str, Path]) -> str:
    url, folder = server
    for name in ("one", "two"):
        (folder / f"{name}.gz").write_bytes(gzip.compress(name.encode()))
    return url


def test_downloaded_prepared_and_kept(served: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    first = load_arrays(make_source(served), data, progress=False)
    assert [path.name for path in (data / "sequence").iterdir()] == ["small.npz"]
    offline = make_source("http://127.0.0.1:9")
    second = load_arrays(offline, data, progress=False)
    for arrays in (first, second):
        assert arrays.keys() == WANTED.keys()
        assert all((arrays[key] == WANTED[key]).all() for key in WANTED)


def test_without_a_known_digest_the_first_one_is_kept(served: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    load_arrays(make_source(served, None), data, progress=False)
    record = data / "sequence" / "small.sha256"
    assert record.read_text().strip() == arrays_digest(WANTED)
    load_arrays(make_source(served, None), data, progress=False)
    archive = data / "sequence" / "small.npz"
    other = replace(make_source(served, None), prepare=lambda files: WANTED | {"a": np.arange(6)})
    archive.unlink()
    with pytest.raises(ValueError, match=r"digest of .*small.npz must be .* as at first use"):
        load_arrays(other, data, progress=False)
    assert not archive.exists()
    np.savez(archive, **(WANTED | {"a": np.arange(6)}))
    with pytest.raises(ValueError, match=r"as at first use.*the data changed; delete small.sha256"):
        load_arrays(other, data, progress=False)


def test_wrong_content_at_the_source(served: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"digest of .*one.gz must be 000.*; got .*; download it"):
        load_arrays(make_source(served, "0" * 64), tmp_path / "data", progress=False)
    assert list((tmp_path / "data" / "sequence").iterdir()) == []


def test_wrong_content_in_the_folder(served: str, tmp_path: Path) -> None:
    path = tmp_path / "sequence" / "small.npz"
    path.parent.mkdir()
    np.savez(path, a=np.arange(6), b=WANTED["b"])
    with pytest.raises(ValueError, match=r"digest of .*small.npz must be .*; got .*; delete it"):
        load_arrays(make_source(served), tmp_path, progress=False)


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        (
            {"x": np.zeros(3)},
            r"arrays of .* must be x_train; got \['x'\]; delete it, so that it is",
        ),
        ({}, r"must be x_train; got \[\]"),
        ({"x_train": np.zeros((4, 3), np.uint8)}, r"must be \[5, 3\] uint8; got '\[4, 3\] uint8'"),
    ],
)
def test_wrong_content_without_a_digest(tmp_path: Path, arrays: Arrays, text: str) -> None:
    path = tmp_path / "sequence" / "small.npz"
    path.parent.mkdir()
    np.savez(path, **arrays)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=text):
        load_arrays(Source("small", form={"x_train": ((5, 3), "uint8")}), tmp_path)


def test_wrong_type_at_the_source(served: str, tmp_path: Path) -> None:
    source = replace(make_source(served, None), form={"a": ((5,), "uint8")})
    with pytest.raises(
        ValueError, match=r"a of .*one.gz must be \[5\] uint8; got '\[5\] int64'; dow"
    ):
        load_arrays(source, tmp_path / "data", progress=False)


def test_damaged_archive(served: str, tmp_path: Path) -> None:
    path = tmp_path / "sequence" / "small.npz"
    path.parent.mkdir()
    path.write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(
        ValueError, match=r"small.npz must be a readable .npz archive; got .*delete"
    ):
        load_arrays(make_source(served), tmp_path, progress=False)


def test_offline_says_which_file_goes_where(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load_arrays(make_source("http://127.0.0.1:9"), tmp_path, progress=False)
    folder = tmp_path / "sequence"
    assert str(caught.value) == (
        f"the data set small must lie at {folder / 'small.npz'}, or be downloaded; got no such "
        "file, and the download failed (Connection refused); try again; or put these 2 files into "
        f"{folder / 'raw'} and start again: http://127.0.0.1:9/one.gz, http://127.0.0.1:9/two.gz; "
        f"or copy small.npz from a computer that has it into {folder}; or name another folder "
        "with --data-dir or ANHARMONIC_DATA."
    )
    assert list(folder.iterdir()) == []


def put_raw(folder: Path, **contents: bytes) -> None:
    raw = folder / "sequence" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (raw / f"{name}.gz").write_bytes(content)


def test_files_put_there_by_hand_are_used_offline(tmp_path: Path) -> None:
    put_raw(tmp_path, one=gzip.compress(b"one"), two=gzip.compress(b"two"))
    arrays = load_arrays(make_source("http://127.0.0.1:9"), tmp_path, progress=False)
    assert arrays.keys() == WANTED.keys()
    assert sorted(path.name for path in (tmp_path / "sequence").iterdir()) == ["raw", "small.npz"]
    assert len(list((tmp_path / "sequence" / "raw").iterdir())) == 2


def test_only_the_files_that_are_not_there_are_downloaded(served: str, tmp_path: Path) -> None:
    put_raw(tmp_path, two=gzip.compress(b"two"))
    source = make_source(served)
    files = (source.files[0], RemoteFile("http://127.0.0.1:9/two.gz", None))
    assert load_arrays(replace(source, files=files), tmp_path, progress=False)


def test_wrong_files_put_there_by_hand(tmp_path: Path) -> None:
    put_raw(tmp_path, one=b"cut", two=gzip.compress(b"two"))
    source = make_source("http://127.0.0.1:9")
    with pytest.raises(ValueError, match=r"raw.one.gz must be a sound archive; got BadGzipFile: "):
        load_arrays(source, tmp_path, progress=False)
    files = (RemoteFile(source.files[0].url, "md5:" + "0" * 32), source.files[1])
    with pytest.raises(
        ValueError, match=r"md5 of .*raw.one.gz must be 0+; got '\w{32}'; download it again"
    ):
        load_arrays(replace(source, files=files), tmp_path, progress=False)
    put_raw(tmp_path, one=gzip.compress(b"one"))
    with pytest.raises(ValueError, match=r"digest of .*raw.one.gz must be 0000"):
        load_arrays(replace(source, digest="0" * 64), tmp_path, progress=False)


def test_a_data_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match=r"small.npz must be writable, to keep .*; got Not a direct"):
        load_arrays(make_source("http://127.0.0.1:9"), tmp_path / "file", progress=False)


def test_what_cannot_be_downloaded(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"photographs.npz must exist; got no such file, an"
    ):
        load_arrays(Source("photographs"), tmp_path)


def test_digest_sees_names_types_shapes_and_values() -> None:
    base = {"a": np.zeros((2, 3), np.int32)}
    others: list[Arrays] = [
        {"b": base["a"]},
        {"a": base["a"].astype(np.int64)},
        {"a": base["a"].reshape(3, 2)},
        {"a": base["a"] + 1},
        base | {"b": np.zeros(1)},
    ]
    digests = {arrays_digest(arrays) for arrays in [base, *others]}
    assert len(digests) == 6
    assert arrays_digest({"a": np.asfortranarray(base["a"])}) in digests
