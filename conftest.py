"""What the tests of the library and of the papers share."""

import functools
import itertools
import multiprocessing
import os
import signal
import subprocess
import threading
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from anharmonic.cli.main import main
from anharmonic.data import Arrays, Task
from anharmonic.ops import library, use_backend
from anharmonic.ops.compiler import build
from anharmonic.train import Result


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips what is marked ``papers`` where that package is not installed."""
    if item.get_closest_marker("papers"):
        pytest.importorskip("anharmonic_papers", reason="anharmonic-papers is not installed")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks as ``slow`` the cases that the fast suite can do without.

    ``@pytest.mark.fast("LEM", "GRU")`` keeps the cases with these ids.
    ``@pytest.mark.covering`` keeps cases until every value of every parameter occurs,
    ``covering(2)`` until every pair of values does (pairwise testing), and
    ``covering("layer dtype", "check")`` until every pair of layer and dtype and every check does.
    """
    tests = defaultdict(list)
    missing: dict[str, set[str]] = {}
    for item in items:
        if marker := item.get_closest_marker("fast"):
            test, _, case = item.nodeid.partition("[")
            missing.setdefault(test, set(marker.args)).discard(case.removesuffix("]"))
            if case.removesuffix("]") not in marker.args:
                item.add_marker("slow")
        if item.get_closest_marker("covering") and not item.get_closest_marker("slow"):
            tests[item.nodeid.partition("[")[0]].append(item)
    if any(missing.values()) and not any("::" in word for word in config.args):
        raise pytest.UsageError(f"cases of @pytest.mark.fast that do not exist: {missing}")
    for cases in tests.values():
        for case in _superfluous(cases):
            case.add_marker("slow")


def _covered(case: pytest.Item) -> set[tuple[str, ...]]:
    """The combinations of parameters that must occur and occur in this case."""
    params = case.callspec.params  # type: ignore[attr-defined]
    marker = case.get_closest_marker("covering")
    assert marker is not None
    groups: list[Sequence[str]]
    if all(isinstance(group, int) for group in marker.args):
        (strength,) = marker.args or (1,)
        groups = list(itertools.combinations(params, min(strength, len(params))))
    else:
        groups = [group.split() for group in marker.args]
    return {tuple(f"{name}={params[name]!r}" for name in group) for group in groups}


def _superfluous(cases: list[pytest.Item]) -> Iterable[pytest.Item]:
    """The cases without which every combination still occurs.

    What is kept is always one with most combinations that are still missing. Among equals the
    digest of the name decides, so that values of other parameters are mixed.
    """
    cases = sorted(cases, key=lambda case: zlib.crc32(case.nodeid.encode()))
    left = {case: _covered(case) for case in cases}
    missing = set().union(*left.values())
    while missing:
        missing -= left.pop(max(left, key=lambda case: len(left[case] & missing)))
    return left


@pytest.fixture
def library_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Lets the C library lie elsewhere for one test; afterwards all is as before."""
    in_use = library.instruction_set()

    def put(path: Path | None, **environment: str) -> None:
        monkeypatch.setattr(library, "path", lambda: path)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        library._load.cache_clear()
        library.library.cache_clear()

    yield put
    monkeypatch.undo()
    library._load.cache_clear()
    library.library.cache_clear()
    if in_use is not None:
        library.select(in_use)


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


@pytest.fixture(scope="session", autouse=True)
def no_optimisation():
    """Steps are compiled in the shortest time; test_truth.py uses both levels of the package."""
    levels = build.LEVEL, build.QUICK_LEVEL
    build.LEVEL = build.QUICK_LEVEL = "-O0"
    yield
    build.LEVEL, build.QUICK_LEVEL = levels


# Processes of their own are forked from one that has imported what takes seconds.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["torch", "torch._dynamo"])

_FORKED = """
import os, sys
os.environ.clear()
os.environ.update(environment)
os.chdir(folder)
for number, path in ((0, os.devnull), (1, out), (2, err)):
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.dup2(file, number)
    os.close(file)
sys.argv = words
exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})
"""


@pytest.fixture
def run_python(tmp_path):
    """Runs Python code in a process of its own, in the folder where the test is.

    Gives exit code, standard output and standard error. After five minutes the process is killed.
    """
    numbers = itertools.count()

    def run(code, *words, stdout=None, **environment):
        number = next(numbers)
        out, err = stdout or tmp_path / f"stdout-{number}", tmp_path / f"stderr-{number}"
        names = {
            "folder": str(Path.cwd()),
            "out": str(out),
            "err": str(err),
            "code": code,
            "words": ["-c", *map(str, words)],
            "environment": {**os.environ, "OMP_NUM_THREADS": "1", **environment},
        }
        process = FORKS.Process(target=exec, args=(_FORKED, names))
        process.start()
        try:
            process.join(300)
        finally:
            process.kill()
            process.join()
        said = [Path(p).read_text("utf-8") if Path(p).is_file() else "" for p in (out, err)]
        return subprocess.CompletedProcess([], process.exitcode, *said)

    return run


@pytest.fixture
def heeds_ctrl_c():
    """In the background of a shell the signal is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def loops():
    """PyTorch runs steps as they are: compiling them would take most of the time."""
    with use_backend("reference"):
        yield


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

    def write(kind: type[Task], arrays: Arrays) -> Path:
        source = kind.archive  # type: ignore[attr-defined]
        source = source.preferred or source
        monkeypatch.setattr(kind, "archive", replace(source, digest=None, form={}))
        folder = tmp_path / source.folder
        folder.mkdir(exist_ok=True)
        np.savez(folder / f"{source.name}.npz", **arrays)  # type: ignore[arg-type]
        return tmp_path

    return write
