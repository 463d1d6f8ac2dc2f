"""Plants the errors of `patches.toml` one after the other, and says which of them the tests find.

Usage: python tests/mutate/run.py [map [FOLDERS] | PART OF PARTS | WORDS OF AN ERROR]
`make mutate` makes the map and runs all.

`map` runs the fast suite once and stores which tests run which line, and how long each takes.
Each error is planted in a copy of the sources. There the tests run that run one of its lines, the
quickest case of every test function first: one must fail. If none does, as for lines that run on
import or in another process, the tests that the error names run. An error in the C code means
another library, built for one instruction set, and tests/ops and tests/export in the end. Ends with
1 if more than three errors survive.
"""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import coverage

from anharmonic.ops import library

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from build_library import build  # noqa: E402

MAY_SURVIVE = 3
MAP = ROOT / "build" / "mutate"
PYTEST = ["-q", "-p", "no:cacheprovider", "-m", "not slow"]
LONGEST = 120.0  # seconds of tests for one error
COPIED = ("src", "papers", "tests", "conftest.py", "pyproject.toml", "benchmarks", "CMakeLists.txt")


class Map:
    """Which tests run which line, as `make_map` stored it."""

    def __init__(self) -> None:
        self.data = coverage.CoverageData(str(MAP / "lines"))
        self.data.read()
        self.seconds: dict[str, float] = {}
        for case in ElementTree.parse(MAP / "tests.xml").iter("testcase"):
            if len(case) == 0:  # it did not fail and was not skipped
                name = f"{case.attrib['file']}::{case.attrib['name']}"
                self.seconds[name] = float(case.attrib["time"])

    def tests(self, file: str, lines: set[int]) -> list[str]:
        """The tests that run these lines: a case of every test function first, quick ones first.

        Together they take `LONGEST` at most.
        """
        contexts = self.data.contexts_by_lineno(file)
        names = {name.rpartition("|")[0] for line in lines for name in contexts.get(line, ())}
        quickest = sorted(names & self.seconds.keys(), key=self.seconds.__getitem__)
        first = {name.partition("[")[0]: name for name in reversed(quickest)}
        chosen, left = [], LONGEST
        for name in sorted(quickest, key=lambda name: first[name.partition("[")[0]] != name):
            left -= self.seconds[name]
            if left < 0:
                break
            chosen.append(name)
        return chosen


def lines_of(whole: str, part: str) -> set[int]:
    """The lines of a part of Python source, and the rest of their statements."""
    first = whole[: whole.index(part)].count("\n") + 1
    lines = set(range(first, first + part.count("\n") + 1))
    for node in ast.walk(ast.parse(whole)):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            statement = set(range(node.lineno, node.end_lineno + 1))
            lines |= statement if lines & statement else set()
    return lines


def run_pytest(
    copy: Path, words: list[str], timeout: float | None = None, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Runs pytest in the copy of the sources."""
    places = [copy / "src", copy / "papers" / "src"]
    places += [path for path in sys.path if path.endswith("site-packages")]
    settings["PYTHONPATH"] = os.pathsep.join(map(str, places))
    settings |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    # -S: an editable install of the package would come first otherwise.
    command = [sys.executable, "-S", "-m", "pytest", *PYTEST, *words]
    return subprocess.run(
        command,
        cwd=copy,
        env=os.environ | settings,
        timeout=timeout,
        capture_output=True,
        text=True,
    )


def make_map(copy: Path, folders: list[str]) -> int:
    """Runs the fast suite in the copy and stores what each test runs and takes; an exit code."""
    shutil.rmtree(MAP, ignore_errors=True)
    MAP.mkdir(parents=True)
    words = ["-n", "2", "--dist", "worksteal", "--cov-context=test", "-o", "junit_family=xunit1"]
    words += ["--cov=anharmonic", "--cov=anharmonic_papers", "--cov-report=", "--cov-fail-under=0"]
    words += ["--junit-xml", str(MAP / "tests.xml"), *folders]
    done = run_pytest(copy, words, COVERAGE_FILE=str(MAP / "lines"))
    print(done.stdout[-2000:], done.stderr[-2000:])
    return int(done.returncode > 1)  # a test that fails in a copy is never chosen


def tests_fail(copy: Path, tests: list[str]) -> bool:
    """Whether the tests fail, as they should."""
    (copy / "chosen").write_text("\n".join(tests), encoding="utf-8")
    done = run_pytest(copy, ["-x", "@chosen"], timeout=600)
    if done.returncode < 0:  # ended by a signal: an error in C was met
        return True
    if done.returncode not in (0, 1, 5):  # 5: all chosen tests are slow since the map was made
        print(done.stdout[-2000:], done.stderr[-2000:])
        raise SystemExit(f"pytest ended with {done.returncode}")
    return done.returncode == 1


def installed() -> Path:
    """The C library of the package as it is installed."""
    found = library.path()
    if found is None:
        raise SystemExit("the C library is not built: make .venv/ready")
    return found


def chosen(patches: list[dict], words: list[str]) -> list[dict]:
    """Those asked for on the command line."""
    if len(words) == 2 and all(word.isdigit() for word in words):
        return patches[int(words[0]) :: int(words[1])]
    return [patch for patch in patches if " ".join(words) in patch["error"]]


def errors(copy: Path, words: list[str]) -> int:
    """Plants the errors; the exit code."""
    with (Path(__file__).parent / "patches.toml").open("rb") as file:
        patches = chosen(tomllib.load(file)["patch"], words)
    lines = Map() if (MAP / "tests.xml").exists() else None
    built = copy / "src" / "anharmonic" / "ops" / "libanharmonic.so"
    began, survived = time.monotonic(), []
    for patch in patches:
        path, start = copy / patch["file"], time.monotonic()
        whole = path.read_text(encoding="utf-8")
        if whole.count(patch["old"]) != 1:
            raise SystemExit(f"{patch['error']}: the place in {patch['file']} is not there once")
        path.write_text(whole.replace(patch["old"], patch["new"]), encoding="utf-8")
        in_c = "/csrc/" in patch["file"]
        if in_c:
            build(copy, built)
        tests = []
        if lines and path.suffix == ".py":
            tests = lines.tests(patch["file"], lines_of(whole, patch["old"]))
        # Those named are also met where the map knows none, or those that it knows pass.
        found = bool(tests) and tests_fail(copy, tests)
        by = f"{len(tests)} tests" if found else "tests named"
        found = found or tests_fail(copy, patch["tests"])
        if not found and lines and path.suffix != ".py":
            found = tests_fail(copy, ["tests/ops", "tests/export"])
        path.write_text(whole, encoding="utf-8")
        if in_c:
            shutil.copy(installed(), built)
        if not found:
            survived.append(patch["error"])
        said = "found   " if found else "SURVIVED"
        print(f"{said} {patch['error']} ({by}, {time.monotonic() - start:.0f} s)", flush=True)
    number = f"{len(patches) - len(survived)} of {len(patches)}"
    print(f"{number} found, {time.monotonic() - began:.0f} s")
    return int(len(survived) > MAY_SURVIVE)


def main(words: list[str]) -> int:
    """Makes the map, or plants the errors; the exit code."""
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / name)
        shutil.copy(installed(), copy / "src" / "anharmonic" / "ops" / "libanharmonic.so")
        return make_map(copy, words[1:]) if words[:1] == ["map"] else errors(copy, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
