"""Fuzzes the readers written here: `.ts`, `.npz` and result lines, guided by the lines they run.

Usage: python tests/fuzz/readers.py SECONDS [SEED]

Inputs are mutated from those in `corpus/`; one that runs a new line of the readers is kept, at
first in memory, and with `--keep` in the corpus. A reader may take an input or refuse it with a
clear error; anything else, and whatever takes more than ten seconds or 2 GB, is a finding: the
input is written to `findings/` and the exit code is 1.
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

from anharmonic.data import read_parts
from anharmonic.train import read_results

HERE = Path(__file__).parent
SUFFIXES = (".ts", ".npz", ".csv", ".jsonl")
WATCHED = re.compile(r"anharmonic/(data/(ts|npz|archive|files|readers|tables/\w+)|train/(results|run))\.py$")  # fmt: skip  # noqa: E501
WORDS = [
    *(b"@data\n", b"@univariate false\n", b"@classLabel true a b\n", b"@dimensions 2\n", b"?"),
    *(b"@targetLabel true\n", b"@timestamps true\n", b":", b",", b"\n"),
    *(
        b"nan",
        b"inf",
        b"1e999",
        b"-0",
        b"1_0",
        b"0x1",
        b"\xff",
        b"\0",
        b"\xc3\xa9",
        b'"',
        b"[" * 99,
    ),
    *(
        b"PK\x03\x04",
        b"PK\x01\x02",
        b"PK\x05\x06",
        b"\x93NUMPY\x01\x00",
        b"'<f4'",
        b"'|O'",
        b"'<U9'",
    ),
    *(
        b"(9999999999,)",
        b"(2,)",
        b"()",
        b"null",
        b"true",
        b"{",
        b"}",
        b'"run":',
        b'"hash":',
        b"9" * 400,
    ),
]


class Lines:
    """The lines of the readers that ran."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int]] = set()
        self.new = 0

    def trace(self, frame, event, argument):
        if not WATCHED.search(frame.f_code.co_filename):
            return None
        return self.line

    def line(self, frame, event, argument):
        place = frame.f_code.co_filename, frame.f_lineno
        if place not in self.seen:
            self.seen.add(place)
            self.new += 1
        return self.line


def mutated(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """The input changed at one to six places."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        at = rng.randrange(len(changed) + 1)
        end = min(len(changed), at + rng.choice((1, 1, 2, 4, 8, 40)))
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
                start = rng.randrange(len(other) + 1)
                changed[at:end] = other[start : start + rng.choice((1, 8, 64))]
    return bytes(changed[:20_000])


def trouble(path: Path) -> str | None:
    """What is wrong with how a file is read; None if it is read or clearly refused."""
    try:
        read_results(path) if path.suffix == ".jsonl" else read_parts(path)
    except (ValueError, TypeError) as error:
        clear = re.search(r"; got .+; .+", str(error), re.DOTALL)
        return None if clear else f"{type(error).__name__}: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return None


def late(number, frame):
    raise TimeoutError("ten seconds")


def main(words: list[str]) -> int:
    """Fuzzes; the exit code."""
    keep = "--keep" in words
    seconds, *seed = (int(word) for word in words if word != "--keep")
    rng = random.Random(seed[0] if seed else 0)
    pool = {suffix: [p.read_bytes() for p in sorted((HERE / "corpus").glob(f"*{suffix}"))] for suffix in SUFFIXES}  # fmt: skip  # noqa: E501
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    signal.signal(signal.SIGALRM, late)
    warnings.simplefilter("ignore")
    lines, runs, findings = Lines(), 0, 0
    began = time.monotonic()
    sys.settrace(lines.trace)
    with tempfile.TemporaryDirectory() as folder:
        for suffix in SUFFIXES:  # their lines are known then
            for number, data in enumerate(pool[suffix]):
                path = Path(folder) / f"seed{number}{suffix}"
                path.write_bytes(data)
                trouble(path)
        while time.monotonic() - began < seconds:
            suffix = rng.choice(SUFFIXES)
            path = Path(folder) / f"input{suffix}"
            data = mutated(rng, rng.choice(pool[suffix]), rng.choice(pool[suffix]))
            path.write_bytes(data)
            lines.new, runs = 0, runs + 1
            signal.alarm(10)
            found = trouble(path)
            signal.alarm(0)
            if lines.new:
                pool[suffix].append(data)
            if found or (keep and lines.new):
                place = HERE / ("findings" if found else "corpus")
                place.mkdir(exist_ok=True)
                (place / (hashlib.sha256(data).hexdigest()[:12] + suffix)).write_bytes(data)
            if found:
                findings += 1
                print(f"{suffix}: {found[:300]}", flush=True)
    sys.settrace(None)
    kept = sum(map(len, pool.values()))
    print(
        f"{runs} inputs in {seconds} s, {kept} kept, {len(lines.seen)} lines, {findings} findings"
    )
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
