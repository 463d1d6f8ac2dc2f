"""What the tests of tasks share: real data where present, and a web server of their own."""

import functools
import os
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest


@pytest.fixture
def real_data() -> Callable[..., Path]:
    """Gives the data folder, or skips where a data set is absent."""

    def find(name: str, kind: str = "sequence") -> Path:
        folder = os.environ.get("ANHARMONIC_DATA")
        if not folder:
            pytest.skip("ANHARMONIC_DATA is not set")
        if not (Path(folder) / kind / name).is_file():
            pytest.skip(f"ANHARMONIC_DATA holds no {kind}/{name}")
        return Path(folder)

    return find


class _Handler(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/cut/"):  # announces more than it sends
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"only this")
            return
        super().do_GET()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server on this machine: its address and the folder it serves."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(_Handler, directory=str(folder))
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}", folder
    httpd.shutdown()
    httpd.server_close()
    thread.join()
