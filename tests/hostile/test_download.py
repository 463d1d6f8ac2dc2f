"""Servers that answer wrongly, slowly or never: one clear error, and nothing is left behind."""

import hashlib
import http.server
import io
import socket
import struct
import tarfile
import threading
import time
import zipfile
from pathlib import Path

import pytest

import anharmonic.data.download as downloads
from anharmonic.data import RemoteFile, Source, load_arrays
from anharmonic.data.download import download

BODY = b"x" * 1000
GOOD = "sha256:" + hashlib.sha256(BODY).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def do_GET(self):
        to = {"/redirect": "/ok", "/loop": "/loop", "/tofile": "file:///etc/passwd"}
        if self.path in to:
            self.send_response(302)
            self.send_header("Location", to[self.path])
            self.end_headers()
        elif self.path in ("/404", "/500"):
            self.send_error(int(self.path[1:]))
        else:
            length = {"/short": "2000", "/bad-length": "abc", "/negative": "-5"}
            self.send_response(200)
            self.send_header("Content-Length", length.get(self.path, "1000"))
            self.end_headers()
            self.body()

    def body(self):
        try:
            if self.path == "/reset":
                self.wfile.write(BODY[:10])
                self.wfile.flush()
                now = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
                self.connection.close()
            elif self.path in ("/drip", "/stall"):
                for _ in range(100):
                    if self.path == "/drip":
                        self.wfile.write(b"x")
                    time.sleep(0.1)
            else:
                self.wfile.write(BODY)
        except OSError:
            pass


@pytest.fixture(autouse=True)
def no_retries(monkeypatch):
    """Waits of seconds; tests/data/test_download.py tests that a download is tried again."""
    monkeypatch.setattr(downloads, "RETRIES", 0)


@pytest.fixture
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()


@pytest.mark.parametrize("path", ["/ok", "/redirect"])
def test_good_answers(address, path):
    download(address + path, Path("f.bin"), GOOD, progress=False)
    assert Path("f.bin").read_bytes() == BODY


BAD = ["/404", "/500", "/short", "/loop", "/tofile", "/reset"]


@pytest.mark.parametrize("path", BAD)
def test_bad_answers(address, path, refused):
    Path("d").mkdir()
    kinds = (ConnectionError, ValueError)
    refused(lambda: download(address + path, Path("d/f.bin"), GOOD, progress=False), *kinds)
    assert not list(Path("d").iterdir())


@pytest.mark.parametrize("checksum", ["sha256:" + "0" * 64, "crc:00"])
def test_checksums(address, checksum, refused):
    Path("d").mkdir()
    refused(lambda: download(address + "/ok", Path("d/f.bin"), checksum, progress=False))
    assert not list(Path("d").iterdir())


NOWHERE = ["http://127.0.0.1:1/x", "http://no-such-host.invalid/x", "gopher://x/y", "hello", ""]


@pytest.mark.parametrize("url", NOWHERE)
def test_addresses(url, refused):
    kinds = (ConnectionError, ValueError)
    refused(lambda: download(url, Path("f.bin"), None, progress=False), *kinds)


@pytest.fixture
def of_papers():
    """Makes arrays of an archive that lies where the user would put it."""

    def make(name, function):
        from anharmonic_papers.tasks import prepare

        Path("sequence/raw").mkdir(parents=True)
        Path(name).rename(f"sequence/raw/{name}")
        file = RemoteFile(f"https://no-such-host.invalid/{name}", None)
        source = Source("made", (file,), getattr(prepare, function))
        return load_arrays(source, Path.cwd(), progress=False)

    return make


@pytest.mark.papers
@pytest.mark.parametrize("kind", ["outside", "link", "size"])
def test_archives_of_the_papers(kind, refused, of_papers):
    with tarfile.open("a.tgz", "w:gz") as file:
        for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]:
            member = tarfile.TarInfo("../../../" + name)
            member.size = 100 if kind == "size" else 2 * 3073
            if kind == "link":
                member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/passwd", 0
            file.addfile(member, io.BytesIO(bytes(member.size)))
    if kind == "outside":  # read from the archive, never unpacked
        assert of_papers("a.tgz", "prepare_cifar10")["x_train"].shape == (10, 3, 32, 32)
    else:
        refused(lambda: of_papers("a.tgz", "prepare_cifar10"), ValueError, names="a.tgz")
    assert not list(Path("../../..").glob("data_batch_*"))


SOUNDS = [("0_a.wav", b"RIFF"), ("0_a_1.wav", b"RIFFxx"), ("0_a_1.wav", b""), ("x.wav", b"")]


@pytest.mark.papers
@pytest.mark.parametrize(("name", "content"), SOUNDS)
def test_sounds_of_the_papers(name, content, refused, of_papers):
    with zipfile.ZipFile("a.zip", "w") as file:
        file.writestr(f"../../x/recordings/{name}", content)
    refused(lambda: of_papers("a.zip", "prepare_fsdd"), ValueError, names="a.zip")
    assert not list(Path("../..").glob("x/recordings"))


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/drip", "/stall"])
def test_a_server_that_hardly_sends(address, path, refused, monkeypatch):
    monkeypatch.setattr(downloads, "_PATIENCE", 0.2)
    began = time.monotonic()
    refused(lambda: download(address + path, Path("f.bin"), GOOD, progress=False), ConnectionError)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("limit", ["_LARGEST", "_LONGEST"])
def test_a_download_without_end(address, limit, refused, monkeypatch):
    monkeypatch.setattr(downloads, limit, 0)
    path = "/ok" if limit == "_LARGEST" else "/drip"
    refused(lambda: download(address + path, Path("f.bin"), GOOD, progress=False), ConnectionError)
    assert not any(Path().glob("*"))
