"""Downloads: whole and checked, or one clear error and nothing left behind."""

import hashlib
import http.server
import io
import socket
import struct
import sys
import tarfile
import threading
import time
import zipfile

import pytest

from anharmonic.data import RemoteFile, Source, load_arrays
from anharmonic.data import download as module
from anharmonic.data.download import data_folder, download

pytest.importorskip("pooch", reason="pooch is not installed")

CONTENT = bytes(range(256)) * 9000  # more than one piece
NOBODY = "http://127.0.0.1:1"
MOVED = {"/moved": "/good", "/loop": "/loop", "/file": "file:///etc/passwd"}
CODES = {"/404": 404}


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as the path says: /good, /short, /reset, /drip, /stall ..."""

    def log_message(self, *words):
        pass

    def do_GET(self):
        code = CODES.get(self.path, 302 if self.path in MOVED else 200)
        self.send_response(code)
        self.send_header("Location", MOVED.get(self.path, ""))
        self.send_header("Content-Length", str(len(CONTENT) if code == 200 else 0))
        self.end_headers()
        if code != 200:
            return
        try:
            if self.path in ("/drip", "/stall"):
                for _ in range(100):
                    self.wfile.write(b"x" if self.path == "/drip" else b"")
                    time.sleep(0.1)
            elif self.path == "/reset":
                self.wfile.write(CONTENT[:10])
                now = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
                self.connection.close()
            else:
                self.wfile.write(CONTENT[: 9 if self.path == "/short" else None])
        except OSError:
            pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.daemon_threads = True
        threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()


@pytest.fixture(autouse=True)
def once(monkeypatch):
    """Nothing is tried again or waited for, which would take seconds."""
    monkeypatch.setattr(module, "RETRIES", 0)
    monkeypatch.setattr(module, "_PATIENCE", 0.2)


@pytest.mark.parametrize("path, kind", [("/good", "sha256"), ("/good", "md5"), ("/moved", "md5")])
def test_a_good_file_arrives(server, tmp_path, path, kind):
    checksum = f"{kind}:{hashlib.new(kind, CONTENT).hexdigest()}"
    target = tmp_path / "new" / "good.bin"
    download(server + path, target, checksum, progress=False)
    assert target.read_bytes() == CONTENT
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize(
    ("url", "limits", "said"),
    [
        ("/404", {}, "/404 must be reachable; got .*404.*put it at"),
        ("/short", {}, "got .*9 bytes read"),
        ("/reset", {}, "must be reachable; got .*reset"),
        ("/loop", {}, "must be reachable; got .*redirects"),
        ("/file", {}, "must be reachable; got .*; "),
        (f"{NOBODY}/x", {}, "must be reachable; got .*refused.* put it at"),
        ("hello", {}, "; got .+; "),
        pytest.param("/stall", {}, "must be reachable; got .*; ", marks=pytest.mark.slow),
        # Downloads without an end.
        ("/drip", {}, "got [0-9]+ bytes in [0-9]+ s, slower than 1000"),
        ("/good", {"_LARGEST": 0}, "bytes announced"),
        ("/drip", {"_LONGEST": 0}, "and no end"),
    ],
)
def test_what_does_not_arrive_leaves_nothing(server, tmp_path, monkeypatch, url, limits, said):
    for name, value in limits.items():
        monkeypatch.setattr(module, name, value)
    with pytest.raises((ConnectionError, ValueError), match=said):
        download(server + url if url[:1] == "/" else url, tmp_path / "x.bin", None, progress=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("checksum", ["md5:00", "crc:00"])
def test_a_wrong_checksum_leaves_what_was_there(server, tmp_path, checksum):
    target = tmp_path / "got" / "bad.bin"
    for before in ([], [target]):
        with pytest.raises(ValueError, match=rf"good must have the checksum {checksum}; got .+; "):
            download(f"{server}/good", target, checksum, progress=False)
        assert list(target.parent.iterdir()) == before
        assert all(path.read_bytes() == b"mine" for path in before)
        target.write_bytes(b"mine")


def test_progress_is_shown(server, tmp_path, capsys):
    download(f"{server}/good", tmp_path / "shown.bin", None)
    assert "shown.bin" in capsys.readouterr().err
    download(f"{server}/good", tmp_path / "quiet.bin", None, progress=False)
    assert capsys.readouterr().err == ""


def test_a_failure_is_tried_again(server, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "RETRIES", 1)
    monkeypatch.setitem(CODES, "/late", 404)
    # pooch waits before it tries again; meanwhile the file comes back.
    monkeypatch.setattr("time.sleep", lambda seconds: CODES.pop("/late"))
    download(f"{server}/late", tmp_path / "late.bin", None, progress=False)
    assert (tmp_path / "late.bin").read_bytes() == CONTENT


def test_missing_pooch_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r'package pooch; .* "anharmonic\[train\]"'):
        download(f"{NOBODY}/x.bin", tmp_path / "x.bin", None)


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({"ANHARMONIC_DATA": "env", "XDG_CACHE_HOME": "cache"}, "linux", "env"),
        ({"XDG_CACHE_HOME": "cache"}, "linux", "cache/anharmonic"),
        ({}, "linux", ".cache/anharmonic"),
        ({}, "darwin", "Library/Caches/anharmonic"),
    ],
)
def test_data_folder(monkeypatch, tmp_path, environment, platform, expected):
    for name in ("ANHARMONIC_DATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "", **environment}.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setattr(sys, "platform", platform)
    assert data_folder() == tmp_path / expected
    assert data_folder(tmp_path / "named") == tmp_path / "named"


IMAGES = [f"../../../{name}.bin" for name in ("test_batch", *(f"data_batch_{i}" for i in "12345"))]


def tarred(path, size=2 * 3073, kind=tarfile.REGTYPE):
    with tarfile.open(path, "w:gz") as file:
        for name in IMAGES:
            member = tarfile.TarInfo(name)
            member.size, member.type, member.linkname = size, kind, "/etc/passwd"
            file.addfile(member, io.BytesIO(bytes(size)))


def zipped(path, name, content=b""):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"../../x/recordings/{name}", content)


@pytest.mark.papers
@pytest.mark.parametrize(
    ("make", "more"),
    [
        pytest.param(tarred, (), id="files outside"),
        pytest.param(tarred, (0, tarfile.SYMTYPE), id="links"),
        pytest.param(tarred, (100,), id="another size"),
        pytest.param(zipped, ("0_a.wav", b"RIFF"), id="another name"),
        pytest.param(zipped, ("0_a_1.wav", b"RIFFxx"), id="no sound"),
        pytest.param(zipped, ("x.wav",), id="no name"),
    ],
)
def test_archives_of_the_papers_are_read_but_never_unpacked(make, more, tmp_path):
    from anharmonic_papers.tasks.prepare import prepare_cifar10, prepare_fsdd

    data = tmp_path / "far" / "inside" / "data"
    (data / "sequence" / "raw").mkdir(parents=True)
    make(data / "sequence" / "raw" / "a", *more)
    prepare = prepare_cifar10 if make is tarred else prepare_fsdd
    source = Source("made", (RemoteFile(f"{NOBODY}/a", None),), prepare)
    if more:
        with pytest.raises(ValueError, match=r"a .*; got .+; .+"):
            load_arrays(source, data, progress=False)
    else:
        images = load_arrays(source, data, progress=False)["x_train"]
        assert images.shape == (10, 3, 32, 32)
    assert not [*tmp_path.rglob("*_batch*"), *tmp_path.rglob("*.wav")]
