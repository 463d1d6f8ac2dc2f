"""What the tests of bad input share: how a clear error is recognised, and how a crash is seen."""

import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

from anharmonic.data import file_digest
from anharmonic.train import Run, RunEnvironment, fit

sys.path.insert(0, str(Path(__file__).parent))  # of refusals.py
CLEAR = re.compile(r"; got .+; .+", re.DOTALL)
"""Every error says what was expected; what came; what to do."""
SECONDS = 120
TINY = ("--epochs", "1", "--hidden-size", "2", "--no-progress", "--threads", "1")


@pytest.fixture(autouse=True)
def deadline(tmp_path, monkeypatch):
    """What hangs fails; files lie in a folder of the test's own."""

    def late(number, frame):
        raise TimeoutError(f"still busy after {SECONDS} seconds")

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ANHARMONIC_DEBUG", raising=False)
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def refused():
    """Calls a function; it must raise one clear error."""

    def check(call, *kinds, names=""):
        with pytest.raises(kinds or (ValueError, TypeError)) as caught:
            call()
        text = str(caught.value)
        assert CLEAR.search(text), text
        assert names in text, text

    return check


@pytest.fixture
def refused_by_command(cli):
    """Runs a command; it must end with code 1 or 2 and one clear error, and no trace."""

    def check(*words, names=""):
        code, out, error = cli(*words)
        assert code in (1, 2), f"{code}: {out[-300:]} {error}"
        assert "Traceback" not in error and "unexpected" not in error, error
        # tyro draws a box around what it says of flags.
        assert CLEAR.search(error) or "For full helptext" in error, error
        assert names in error, error

    return check


@pytest.fixture
def in_child():
    """Calls a function in a forked child with little memory; gives what it returned or raised.

    A crash of the child, or more than `megabytes` of memory beyond what the parent has, fails.
    """

    def child(work, megabytes, pipe):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if (held := Path("/proc/self/statm")).exists():
            most = int(held.read_text().split()[0]) * 4096 + (megabytes << 20)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        signal.alarm(SECONDS)
        try:
            pipe.send(("returned", work()))
        except Exception as error:
            traceback.print_exc()
            pipe.send((type(error).__name__, str(error)))

    def call(work, megabytes=1500):
        here, there = multiprocessing.Pipe()
        forks = multiprocessing.get_context("fork")
        process = forks.Process(target=child, args=(work, megabytes, there))
        process.start()
        there.close()
        answer = here.recv()
        process.join()
        assert process.exitcode == 0
        return answer

    return call


@pytest.fixture
def outcome():
    """Reads the lines of all results: what each says, except times and places; none comes twice."""

    def read(is_whole=True):
        found = {}
        for path in sorted(Path.cwd().rglob("*.jsonl")):
            for line in path.read_text().splitlines():
                try:
                    result = json.loads(line)
                except ValueError:  # a write that was cut short may leave half a line
                    assert not is_whole, line
                    continue
                if "hash" in result:
                    found[line] = (result["hash"], result["test"], result["valid"])
        assert len({name for name, *_ in found.values()}) == len(found)
        return found

    return read


@pytest.fixture(scope="session")
def arrays():
    """Twenty labelled sequences of five steps and two channels."""
    x = np.random.default_rng(0).standard_normal((20, 5, 2)).astype(np.float32)
    return {"x": x, "y": np.arange(20) % 2}


@pytest.fixture(scope="session")
def made(arrays, tmp_path_factory):
    """Finished runs by name, and the file that they predict for."""
    folder = tmp_path_factory.mktemp("made")
    classes, series = folder / "d.npz", folder / "s.csv"
    np.savez(classes, x=arrays["x"], y=np.array(["no", "yes"])[arrays["y"]])
    series.write_text("a,b\n" + "".join(f"{np.sin(i)},{np.cos(i)}\n" for i in range(60)))

    def run(path, model, model_options, **options):
        epochs = {} if model == "Resonators" else {"epochs": 1}
        given = {"sha256": file_digest(path), **options}
        one = Run("file", model, given, model_options, **epochs)
        fit(one, RunEnvironment(file=path, out=folder / model, progress=False))
        return folder / model / one.folder_name, path

    two = {"hidden_size": 2}
    return {
        "classes": run(classes, "LEM", two),
        "forecast": run(series, "GRU", two, window=6, horizon=3, difference=True),
        "resonators": run(classes, "Resonators", {"num_oscillators": 5}),
    }


@pytest.fixture
def trained(made):
    """The folder of a run of classes, trained on `d.npz`; test and test share no file."""
    run, data = made["classes"]
    shutil.copy(data, "d.npz")
    return Path(shutil.copytree(run, Path("runs", run.name)))


@pytest.fixture
def tiny():
    """Flags of a training that takes no time."""
    return TINY


class Evil:
    """Leaves a file behind where a pickle of it is read."""

    def __reduce__(self):
        return os.system, ("touch EVIL",)


@pytest.fixture
def evil():
    """An object whose pickle runs code; the test fails if it ran."""
    yield Evil()
    assert not Path("EVIL").exists(), "the content of a file was run"
