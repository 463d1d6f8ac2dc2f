"""Plants the errors of `patches.toml` one after the other, and says which of them the tests find.

Usage: python tests/mutate/run.py [PART OF PARTS | WORDS OF AN ERROR]; `make mutate` runs all.

Each error is planted in a copy of the sources, where the tests run that should see it: they must
fail. An error in the C code means another library, built for one instruction set. Ends with 1 if
more than three errors survive.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from build_library import build  # noqa: E402

MAY_SURVIVE = 3
COPIED = ("src", "papers", "tests", "conftest.py", "pyproject.toml", "benchmarks", "CMakeLists.txt")


def tests_fail(copy: Path, tests: list[str]) -> bool:
    """Whether the tests fail, as they should."""
    places = [copy / "src", copy / "papers" / "src"]
    places += [path for path in sys.path if path.endswith("site-packages")]
    # -S: an editable install of the package would come first otherwise.
    command = [sys.executable, "-S", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-m", "not slow", *tests]
    settings = {
        "PYTHONPATH": os.pathsep.join(map(str, places)),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        command, cwd=copy, env=os.environ | settings, capture_output=True, text=True, timeout=600
    )
    if done.returncode < 0:  # ended by a signal: an error in C was met
        return True
    if done.returncode not in (0, 1):
        print(done.stdout[-2000:], done.stderr[-2000:])
        raise SystemExit(f"pytest ended with {done.returncode}")
    return done.returncode == 1


def installed() -> str:
    """The C library of the package as it is installed."""
    code = "from anharmonic.ops import library; print(library.path() or '')"
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    )
    if not done.stdout.strip():
        raise SystemExit("the C library is not built: make .venv/ready")
    return done.stdout.strip()


def chosen(patches: list[dict], words: list[str]) -> list[dict]:
    """Those asked for on the command line."""
    if len(words) == 2 and all(word.isdigit() for word in words):
        return patches[int(words[0]) :: int(words[1])]
    return [patch for patch in patches if " ".join(words) in patch["error"]]


def main(words: list[str]) -> int:
    """Plants the errors; the exit code."""
    with (Path(__file__).parent / "patches.toml").open("rb") as file:
        patches = chosen(tomllib.load(file)["patch"], words)
    began, survived = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / name)
        library = copy / "src" / "anharmonic" / "ops" / "libanharmonic.so"
        good = installed()
        shutil.copy(good, library)
        for patch in patches:
            path, start = copy / patch["file"], time.monotonic()
            whole = path.read_text(encoding="utf-8")
            if whole.count(patch["old"]) != 1:
                raise SystemExit(
                    f"{patch['error']}: the place in {patch['file']} is not there once"
                )
            path.write_text(whole.replace(patch["old"], patch["new"]), encoding="utf-8")
            in_c = "/csrc/" in patch["file"]
            if in_c:
                build(copy, library)
            found = tests_fail(copy, patch["tests"])
            path.write_text(whole, encoding="utf-8")
            if in_c:
                shutil.copy(good, library)
            if not found:
                survived.append(patch["error"])
            said = "found   " if found else "SURVIVED"
            print(f"{said} {patch['error']} ({time.monotonic() - start:.0f} s)", flush=True)
    print(
        f"{len(patches) - len(survived)} of {len(patches)} found, {time.monotonic() - began:.0f} s"
    )
    return int(len(survived) > MAY_SURVIVE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
