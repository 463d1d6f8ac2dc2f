"""Fuzzes the readers: tables, `.ts`, `.npz`, result lines and saved folders, by the lines they run.

Usage: python tests/fuzz/readers.py SECONDS [SEED]

Inputs are mutated from those in `corpus/`; one that runs a new line of the readers is kept, at
first in memory, and with `--keep` in the corpus. A reader may take an input or refuse it with a
clear error; anything else, and whatever takes more than ten seconds of the CPU or 2 GB, is a
finding: the input is written to `findings/` and the exit code is 1.
"""

import hashlib
import random
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from anharmonic.data import file_digest, read_parts
from anharmonic.train import Run, RunEnvironment, fit, read_results, trained

HERE = Path(__file__).parent
SUFFIXES = (".ts", ".npz", ".csv", ".jsonl", ".parquet", ".json")
# The JSON files of a run's folder: mutated ones are read in their places.
SAVED = ("task.json", "run.json", "best/config.json")
WATCHED = re.compile(
    r"anharmonic/(data/(ts|npz|archive|files|readers|preprocessing|columns|tables/\w+)"
    r"|train/(results|run|trained)|nn/store)\.py$"
)
WORDS = [
    *b"@data\n|@univariate false\n|@classLabel true a b\n|@dimensions 2\n|?|:|,|\n".split(b"|"),
    *b"@targetLabel true\n|@timestamps true\n|(9999999999,)|(2,)|()|null|true|{|}".split(b"|"),
    *b"nan inf 1e999 -0 1_0 0x1 \xff \0 \xc3\xa9 \" '<f4' '|O' '<U9'".split(b" "),
    *b'PK\x03\x04 PK\x01\x02 PK\x05\x06 \x93NUMPY\x01\x00 "run": "hash":'.split(b" "),
    *(b"[" * 99, b"9" * 400),
]
seen: set[tuple[str, int]] = set()
"""The lines of the readers that ran."""


def watch(frame, event, argument):
    """Python tells of every call, and then of every line."""
    if event == "line":
        seen.add((frame.f_code.co_filename, frame.f_lineno))
    return watch if WATCHED.search(frame.f_code.co_filename) else None


def mutated(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """The input changed at one to six places."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        at = rng.randrange(len(changed) + 1)
        end = min(len(changed), at + rng.choice((1, 1, 2, 4, 8, 40)))
        start = rng.randrange(len(other) + 1)
        match rng.randrange(7):
            case 0 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(changed):
                changed[at] = rng.choice((0, 1, 10, 44, 58, 127, 128, 255, rng.randrange(256)))
            case 2:
                del changed[at:end]
            case 3:
                changed[at:at] = changed[at:end] * rng.choice((1, 2, 50))
            case 4:
                changed[at:at] = rng.choice(WORDS)
            case 5:
                changed[at:end] = rng.choice(WORDS)
            case _:
                changed[at:end] = other[start : start + rng.choice((1, 8, 64))]
    return bytes(changed[:20_000])


def run_folder(place: Path) -> Path:
    """Trains a model as small as possible; returns the folder of its run."""
    file = place / "d.npz"
    x = np.random.default_rng(0).standard_normal((20, 5, 2)).astype(np.float32)
    np.savez(file, x=x, y=np.arange(20) % 2)
    run = Run("file", "LEM", {"sha256": file_digest(file)}, {"hidden_size": 2}, epochs=1)
    fit(run, RunEnvironment(file=file, out=place, progress=False))
    return place / run.folder_name


def read(path: Path, data: bytes, folder: Path) -> None:
    """Reads a file; one of JSON stands in the place of one of the run's own."""
    if path.suffix == ".json":
        name = SAVED[2 if b'"arguments"' in data else 0 if b'"class_names"' in data else 1]
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(data)
        try:
            _ = trained(folder).run
        finally:
            (folder / name).write_bytes(whole)
        return
    path.write_bytes(data)
    read_results(path) if path.suffix == ".jsonl" else read_parts(path)


def trouble(path: Path, data: bytes, folder: Path) -> str | None:
    """What is wrong with how a file is read; None if it is read or clearly refused."""
    signal.setitimer(signal.ITIMER_PROF, 10)
    try:
        read(path, data, folder)
    except BaseException as error:
        refused = isinstance(error, ValueError | TypeError)
        clear = refused and re.search(r"; got .+; .+", str(error), re.DOTALL)
        return None if clear else f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def late(number, frame):
    raise TimeoutError("ten seconds")


def main(words: list[str]) -> int:
    """Fuzzes; the exit code."""
    keep = "--keep" in words
    seconds, *seed = (int(word) for word in words if word != "--keep")
    rng, runs, findings = random.Random(seed[0] if seed else 0), 0, 0
    pool = {
        suffix: [path.read_bytes() for path in sorted((HERE / "corpus").glob(f"*{suffix}"))]
        for suffix in SUFFIXES
    }
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    signal.signal(signal.SIGPROF, late)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        saved = run_folder(Path(folder))
        pool[".json"] += [(saved / name).read_bytes() for name in SAVED]
        began = time.monotonic()
        sys.settrace(watch)
        for suffix in SUFFIXES:  # their lines are known then
            for data in pool[suffix]:
                trouble(Path(folder, f"input{suffix}"), data, saved)
        while time.monotonic() - began < seconds:
            suffix, known = rng.choice(SUFFIXES), len(seen)
            data = mutated(rng, rng.choice(pool[suffix]), rng.choice(pool[suffix]))
            found, runs = trouble(Path(folder, f"input{suffix}"), data, saved), runs + 1
            if is_new := len(seen) > known:
                pool[suffix].append(data)
            if found or (keep and is_new):
                place = HERE / ("findings" if found else "corpus")
                place.mkdir(exist_ok=True)
                (place / (hashlib.sha256(data).hexdigest()[:12] + suffix)).write_bytes(data)
            if found:
                findings += 1
                print(f"{suffix}: {found[:300]}", flush=True)
    sys.settrace(None)
    kept, ran = sum(map(len, pool.values())), len(seen)
    print(f"{runs} inputs in {seconds} s, {kept} kept, {ran} lines, {findings} findings")
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
