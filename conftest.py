"""What the tests of the library and of the papers share."""

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from anharmonic.cli.main import main
from anharmonic.data import Arrays, GraphTask
from anharmonic.train import Result


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips what is marked ``papers`` where that package is not installed."""
    if item.get_closest_marker("papers"):
        pytest.importorskip("anharmonic_papers", reason="anharmonic-papers is not installed")


@pytest.fixture
def make_result():
    """Makes the result of a run that was never trained."""

    def make(run, test=0.002, seconds=30.0, valid=(0.5, 0.1, 0.004), **changes):
        values = {
            "run": run,
            "hash": run.hash,
            "test": test,
            "valid": valid[-1],
            "metric": "mse",
            "higher_is_better": False,
            "parameters": 1234,
            "seconds": seconds,
            "memory_mb": 300.0,
            "epochs_run": len(valid),
            "best_epoch": len(valid),
            "stopped": "finished",
            "device": "cpu",
            "devices": 1,
            "threads": 1,
            "hardware": "A Processor <x>",
            "versions": {"anharmonic": "0.1.0", "torch": "2.13.0"},
            "commit": "0123456789abcdef",
            "started": "2026-01-02T03:04:05+00:00",
            "curve": {
                "epoch": list(range(1, len(valid) + 1)),
                "train_loss": [1.0] * len(valid),
                "valid": list(valid),
            },
        }
        return Result(**{**values, **changes})

    return make


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    """Runs a command line in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ANHARMONIC_DEBUG", raising=False)

    def run(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def data(tmp_path):
    """Forty short sequences of two classes."""
    rng = np.random.default_rng(0)
    x = rng.random((40, 12, 2)).astype(np.float32)
    y = np.where(x[:, :, 0].mean(1) > np.median(x[:, :, 0].mean(1)), "high", "low, <b>")
    path = tmp_path / "mine.npz"
    np.savez(path, x=x, y=y)
    return path


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
        if self.path.startswith("/drip"):  # a byte now and then
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(1000):
                    self.wfile.write(b"x")
                    time.sleep(0.05)
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


@pytest.fixture
def graph_data(real_data: Callable[..., Path]) -> Callable[[str], Path]:
    """Gives the data folder, or skips where an archive of graphs is absent."""
    return lambda name: real_data(f"{name}.npz", "graph")


@pytest.fixture
def tiny_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes an archive by hand for a task, in place of the real one with its digest."""

    def write(kind: type[GraphTask], arrays: Arrays) -> Path:
        source = kind.archive  # type: ignore[attr-defined]
        source = source.preferred or source
        monkeypatch.setattr(kind, "archive", replace(source, digest=None))
        folder = tmp_path / "graph"
        folder.mkdir(exist_ok=True)
        np.savez(folder / f"{source.name}.npz", **arrays)  # type: ignore[arg-type]
        return tmp_path

    return write
