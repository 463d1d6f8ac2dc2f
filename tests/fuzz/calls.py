"""Builds and runs the fuzzer of the C library's calls: python tests/fuzz/calls.py SECONDS.

Needs clang with libFuzzer (CLANG names it). Inputs that reach new code are kept in
`corpus/calls/`; what fails is written to `findings/`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CSRC = ROOT / "src" / "anharmonic" / "ops" / "csrc"
BUILD = ROOT / "build" / "fuzz"
FLAGS = (
    "-g -O1 -std=gnu11 -Wno-psabi -fno-math-errno -fno-trapping-math -ffp-contract=fast "
    "-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all"
)


def main(seconds: str) -> int:
    """Builds what is older than the sources, and fuzzes; the exit code."""
    clang = os.environ.get("CLANG") or next(filter(shutil.which, ("clang", "clang-18", "clang-14")))
    (HERE / "findings").mkdir(exist_ok=True)
    corpus = HERE / "corpus" / "calls"
    corpus.mkdir(parents=True, exist_ok=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / "calls"
    sources = [*CSRC.iterdir(), HERE / "calls.c"]
    newest = max(path.stat().st_mtime for path in sources)
    if not program.exists() or program.stat().st_mtime < newest:
        common = [clang, *FLAGS.split(), f"-I{CSRC}"]
        objects = []
        for real, size in (("float", 4), ("double", 8)):
            objects.append(BUILD / f"engine-{real}.o")
            words = [f"-DAN_REAL={real}", f"-DAN_REAL_BYTES={size}"]
            words += [f"-DAN_ENGINE=an_engine_baseline_{real}", "-c", CSRC / "engine.c"]
            subprocess.run([*common, *words, "-o", objects[-1]], check=True)
        rest = [CSRC / f"{name}.c" for name in ("cpu", "library", "pool", "workspace")]
        words = ["-fsanitize=fuzzer", *rest, HERE / "calls.c", *objects, "-pthread", "-lm"]
        subprocess.run([*common, *words, "-o", program], check=True)
    command = [program, f"-max_total_time={seconds}", "-max_len=400", "-print_final_stats=1"]
    command += ["-verbosity=0", f"-artifact_prefix={HERE / 'findings'}/", corpus]
    # A huge request of memory fails as elsewhere; PyTorch is not here, so leaks count.
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "600"))
