import hashlib
import sys
from pathlib import Path

import pytest

from anharmonic.data import download as module
from anharmonic.data.download import data_folder, download

pytest.importorskip("pooch", reason="pooch is not installed")

CONTENT = bytes(range(256)) * 9000  # more than one piece


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is tried again, which would take seconds."""
    monkeypatch.setattr(module, "RETRIES", 0)


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_a_good_file_arrives(server: tuple[str, Path], tmp_path: Path, kind: str) -> None:
    url, folder = server
    (folder / "good.bin").write_bytes(CONTENT)
    checksum = f"{kind}:{hashlib.new(kind, CONTENT).hexdigest()}"
    target = tmp_path / "new" / "good.bin"
    download(f"{url}/good.bin", target, checksum, progress=False)
    assert target.read_bytes() == CONTENT
    assert list(target.parent.iterdir()) == [target]


def test_progress_is_shown(
    server: tuple[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, folder = server
    (folder / "good.bin").write_bytes(CONTENT)
    download(f"{url}/good.bin", tmp_path / "shown.bin", None)
    assert "shown.bin" in capsys.readouterr().err
    download(f"{url}/good.bin", tmp_path / "quiet.bin", None, progress=False)
    assert capsys.readouterr().err == ""


def test_missing_pooch_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r'package pooch; .* "anharmonic\[train\]"'):
        download("http://127.0.0.1:9/x.bin", tmp_path / "x.bin", None)


def test_a_failure_is_tried_again(
    server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, folder = server
    monkeypatch.setattr(module, "RETRIES", 1)
    # pooch waits before it tries again; meanwhile the file comes back.
    monkeypatch.setattr("time.sleep", lambda seconds: (folder / "late.bin").write_bytes(b"late"))
    download(f"{url}/late.bin", tmp_path / "late.bin", None, progress=False)
    assert (tmp_path / "late.bin").read_bytes() == b"late"


def test_wrong_checksum_leaves_nothing(server: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = server
    (folder / "bad.bin").write_bytes(b"other")
    target = tmp_path / "got" / "bad.bin"
    with pytest.raises(ValueError, match=r"bad.bin must have the checksum md5:00; got .*795f3202"):
        download(f"{url}/bad.bin", target, "md5:00", progress=False)
    assert list(target.parent.iterdir()) == []


def test_a_file_already_there_survives_a_failure(server: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = server
    (folder / "bad.bin").write_bytes(b"other")
    target = tmp_path / "bad.bin"
    target.write_bytes(b"mine")
    with pytest.raises(ValueError, match="checksum"):
        download(f"{url}/bad.bin", target, "md5:00", progress=False)
    assert target.read_bytes() == b"mine"


def test_not_found(server: tuple[str, Path], tmp_path: Path) -> None:
    url, _ = server
    target = tmp_path / "got" / "none.bin"
    with pytest.raises(ConnectionError, match=r"none.bin must be reachable; got .*404.*put it at"):
        download(f"{url}/none.bin", target, None, progress=False)
    assert list(target.parent.iterdir()) == []


def test_connection_cut_in_the_middle(server: tuple[str, Path], tmp_path: Path) -> None:
    url, _ = server
    target = tmp_path / "got" / "cut.bin"
    with pytest.raises(ConnectionError, match=r"cut.bin must be reachable; got .*9 bytes read"):
        download(f"{url}/cut/cut.bin", target, None, progress=False)
    assert list(target.parent.iterdir()) == []


def test_no_server(tmp_path: Path) -> None:
    # Port 9 (discard) of this machine: nothing listens there.
    with pytest.raises(ConnectionError, match=r"must be reachable; got .*refused.* put it at"):
        download("http://127.0.0.1:9/x.bin", tmp_path / "x.bin", None, progress=False)


def test_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANHARMONIC_DATA", str(tmp_path / "env"))
    assert data_folder(tmp_path / "named") == tmp_path / "named"
    assert data_folder() == tmp_path / "env"
    monkeypatch.delenv("ANHARMONIC_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert data_folder() == tmp_path / "cache" / "anharmonic"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_folder() == tmp_path / ".cache" / "anharmonic"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert data_folder() == tmp_path / "Library" / "Caches" / "anharmonic"


def test_a_connection_that_hardly_moves_is_given_up(
    server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _ = server
    monkeypatch.setattr(module, "_PATIENCE", 0.2)
    with pytest.raises(ConnectionError, match=r"got [0-9]+ bytes in [0-9]+ s, slower than 1000"):
        download(f"{url}/drip.bin", tmp_path / "drip.bin", None, progress=False)
    assert not list(tmp_path.glob("*drip*"))
