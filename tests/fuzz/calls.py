"""Builds and runs the fuzzer of the C library's calls: python tests/fuzz/calls.py SECONDS.

With clang (CLANG names it) libFuzzer looks for inputs that reach new code and keeps them in
`corpus/calls/`. Without it gcc builds a driver of random inputs. What fails is written to
`findings/`.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CSRC = ROOT / "src" / "anharmonic" / "ops" / "csrc"
BUILD = ROOT / "build" / "fuzz"
FLAGS = (
    "-g -O1 -std=gnu11 -Wno-psabi -fno-math-errno -fno-trapping-math -ffp-contract=fast "
    "-fno-sanitize-recover=all"
)


def main(seconds: str) -> int:
    """Builds and fuzzes; the exit code."""
    known = filter(shutil.which, ("clang", "clang-18", "clang-14"))
    clang = os.environ.get("CLANG") or next(known, None)
    (HERE / "findings").mkdir(exist_ok=True)
    program, settings = built(clang), {}
    if clang is None:
        began = str(int(time.time()))
        settings = {name: "abort_on_error=1" for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS")}
        command = [program, seconds, began, HERE / "findings" / f"call-{began}"]
    else:
        corpus = HERE / "corpus" / "calls"
        corpus.mkdir(parents=True, exist_ok=True)
        command = [program, f"-max_total_time={seconds}", "-max_len=400", "-print_final_stats=1"]
        command += ["-verbosity=0", f"-artifact_prefix={HERE / 'findings'}/", corpus]
    # A huge request of memory fails as elsewhere; PyTorch is not here, so leaks count.
    return subprocess.run(command, check=False, env=os.environ | settings).returncode


def built(clang: str | None) -> Path:
    """The program, with libFuzzer if there is clang."""
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / ("calls" if clang else "calls-gcc")
    sanitizers = "address,undefined" + (",fuzzer-no-link" if clang else "")
    common = [clang or "gcc", *FLAGS.split(), f"-fsanitize={sanitizers}", f"-I{CSRC}"]
    objects = []
    for real, size in (("float", 4), ("double", 8)):
        objects.append(BUILD / f"engine-{real}.o")
        words = [f"-DAN_REAL={real}", f"-DAN_REAL_BYTES={size}"]
        words += [f"-DAN_ENGINE=an_engine_baseline_{real}", "-c", CSRC / "engine.c"]
        subprocess.run([*common, *words, "-o", objects[-1]], check=True)
    rest = [CSRC / f"{name}.c" for name in ("cpu", "library", "pool", "workspace")]
    driver = "-fsanitize=fuzzer" if clang else "-DAN_OWN_DRIVER"
    words = [driver, *rest, HERE / "calls.c", *objects, "-pthread", "-lm"]
    subprocess.run([*common, *words, "-o", program], check=True)
    return program


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "600"))
