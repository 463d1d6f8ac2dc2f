"""Every error that `make mutate` plants has its place in the sources, and its tests exist."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATCHES = tomllib.loads((ROOT / "tests/mutate/patches.toml").read_text("utf-8"))["patch"]


def test_every_error_has_its_place_once():
    found = {p["error"]: (ROOT / p["file"]).read_text("utf-8").count(p["old"]) for p in PATCHES}
    assert {error: count for error, count in found.items() if count != 1} == {}
    assert len(found) == len(PATCHES)


def test_the_tests_of_every_error_exist():
    for patch in PATCHES:
        for name in patch["tests"]:
            file, _, function = name.partition("::")
            path = ROOT / file
            assert path.exists(), (patch["error"], file)
            words = f"def {function.partition('[')[0].rpartition('::')[2]}("
            assert not function or words in path.read_text("utf-8"), (patch["error"], name)
