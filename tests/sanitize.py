"""Runs the C code under sanitizers; `make sanitize` calls it. Needs gcc on Linux.

1. `ops/exercise.c` (pool and workspace) under AddressSanitizer and UndefinedBehaviorSanitizer,
   and again under ThreadSanitizer.
2. The whole library, built into a copy of the package: the tests of the native kernels, in a Python
   that has AddressSanitizer loaded first.
3. The same with vectors of 64 bytes, so that what runs on AVX-512 has run on any processor.

`python tests/sanitize.py resonator` runs of 2 and 3 only the tests whose file's name has the word.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from build_library import build

ROOT = Path(__file__).parents[1]
CSRC = ROOT / "src" / "anharmonic" / "ops" / "csrc"
TESTS = ROOT / "tests" / "ops"
BUILD = ROOT / "build" / "sanitize"
COMPILER = os.environ.get("CC", "cc")
MEMORY = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g"
OPTIONS = {
    # Python and PyTorch keep memory until the end; a huge request must fail as it does elsewhere.
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "die_after_fork=0:allocator_may_return_null=1",
}


def run(*command: object, **environment: str) -> None:
    words = [str(word) for word in command]
    print("+", " ".join(words), flush=True)
    subprocess.run(words, cwd=ROOT, env=os.environ | environment, check=True, timeout=1200)


def exercise(name: str, flags: str) -> None:
    program = BUILD / name
    sources = [TESTS / "exercise.c", CSRC / "pool.c", CSRC / "workspace.c"]
    always = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{CSRC}"]
    run(COMPILER, *always, *flags.split(), *sources, "-pthread", "-lm", "-o", program)
    run(program, 3, **OPTIONS)


def runtime(name: str) -> str:
    """Where the compiler's own shared library of that name lies."""
    command = [COMPILER, f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def native(name: str, flags: str, only: list[str]) -> None:
    # One instruction set without much optimisation: minutes less, and the sources are the same.
    package = BUILD / name
    shutil.copytree(ROOT / "src" / "anharmonic", package / "anharmonic", dirs_exist_ok=True)
    build(ROOT, package / "anharmonic" / "ops" / "libanharmonic.so", f"-O1 {flags}")
    # -S: an editable install of the package would come first otherwise.
    python, places = [sys.executable, "-S"], [p for p in sys.path if p.endswith("site-packages")]
    environment = OPTIONS | {
        "PYTHONPATH": os.pathsep.join([str(package), *places]),
        "LD_PRELOAD": f"{runtime('libasan.so')} {runtime('libstdc++.so.6')}",
    }
    check = (
        "from anharmonic.ops import library as l; "
        f"assert l.library(), l.why_not(); assert str(l.path()).startswith({str(package)!r})"
    )
    run(*python, "-c", check, **environment)
    names = "equations graph library native resonator sequence stream".split()
    tests = [TESTS / f"test_{name}.py" for name in names]
    tests = [test for test in tests if all(word in test.name for word in only)]
    if not tests:
        raise SystemExit(f"no tests of the native kernels are named {' and '.join(only)}")
    words = ["-q", "--capture=sys", "-m", "not slow", "-k", "not instruction_set"]  # there is one
    run(*python, "-m", "pytest", *words, *tests, **environment)


if __name__ == "__main__":
    BUILD.mkdir(parents=True, exist_ok=True)
    exercise("memory", MEMORY)
    exercise("threads", "-fsanitize=thread -g")
    native("package", MEMORY, sys.argv[1:])
    native("wide", f"{MEMORY} -DAN_VECTOR_BYTES=64", sys.argv[1:])
    print("the sanitizers found nothing")
