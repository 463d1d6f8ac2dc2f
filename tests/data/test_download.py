import hashlib
import sys

import pytest

from anharmonic.data import download as module
from anharmonic.data.download import data_folder, download

pytest.importorskip("pooch", reason="pooch is not installed")

CONTENT = bytes(range(256)) * 9000  # more than one piece


@pytest.fixture(autouse=True)
def once(monkeypatch):
    """Nothing is tried again, which would take seconds."""
    monkeypatch.setattr(module, "RETRIES", 0)


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_a_good_file_arrives(server, tmp_path, kind):
    url, folder = server
    (folder / "good.bin").write_bytes(CONTENT)
    checksum = f"{kind}:{hashlib.new(kind, CONTENT).hexdigest()}"
    target = tmp_path / "new" / "good.bin"
    download(f"{url}/good.bin", target, checksum, progress=False)
    assert target.read_bytes() == CONTENT
    assert list(target.parent.iterdir()) == [target]


def test_progress_is_shown(server, tmp_path, capsys):
    url, folder = server
    (folder / "good.bin").write_bytes(CONTENT)
    download(f"{url}/good.bin", tmp_path / "shown.bin", None)
    assert "shown.bin" in capsys.readouterr().err
    download(f"{url}/good.bin", tmp_path / "quiet.bin", None, progress=False)
    assert capsys.readouterr().err == ""


def test_missing_pooch_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r'package pooch; .* "anharmonic\[train\]"'):
        download("http://127.0.0.1:9/x.bin", tmp_path / "x.bin", None)


def test_a_failure_is_tried_again(server, tmp_path, monkeypatch):
    url, folder = server
    monkeypatch.setattr(module, "RETRIES", 1)
    # pooch waits before it tries again; meanwhile the file comes back.
    monkeypatch.setattr("time.sleep", lambda seconds: (folder / "late.bin").write_bytes(b"late"))
    download(f"{url}/late.bin", tmp_path / "late.bin", None, progress=False)
    assert (tmp_path / "late.bin").read_bytes() == b"late"


def test_a_wrong_checksum_leaves_what_was_there(server, tmp_path):
    url, folder = server
    (folder / "bad.bin").write_bytes(b"other")
    target = tmp_path / "got" / "bad.bin"
    for before in ([], [target]):
        with pytest.raises(ValueError, match=r"bad.bin must have the checksum md5:00; got .*795f3"):
            download(f"{url}/bad.bin", target, "md5:00", progress=False)
        assert list(target.parent.iterdir()) == before
        assert all(path.read_bytes() == b"mine" for path in before)
        target.write_bytes(b"mine")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (None, r"x.bin must be reachable; got .*404.*put it at"),
        ("cut", r"x.bin must be reachable; got .*9 bytes read"),
        ("http://127.0.0.1:9", r"must be reachable; got .*refused.* put it at"),  # nobody listens
    ],
)
def test_what_does_not_arrive_leaves_nothing(server, tmp_path, address, said):
    place = {None: server[0], "cut": f"{server[0]}/cut"}.get(address, address)
    with pytest.raises(ConnectionError, match=said):
        download(f"{place}/x.bin", tmp_path / "got" / "x.bin", None, progress=False)
    assert list((tmp_path / "got").iterdir()) == []


def test_data_folder(monkeypatch, tmp_path):
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


def test_a_connection_that_hardly_moves_is_given_up(server, tmp_path, monkeypatch):
    url, _ = server
    monkeypatch.setattr(module, "_PATIENCE", 0.2)
    with pytest.raises(ConnectionError, match=r"got [0-9]+ bytes in [0-9]+ s, slower than 1000"):
        download(f"{url}/drip.bin", tmp_path / "drip.bin", None, progress=False)
    assert not list(tmp_path.glob("*drip*"))
