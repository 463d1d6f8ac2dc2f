"""The site builds without a warning: every page is reachable, every link leads somewhere."""

import importlib
import inspect
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
API = ROOT / "docs" / "api"


@pytest.mark.slow
def test_the_site_builds(tmp_path):
    pytest.importorskip("sphinx", reason="Sphinx is not installed; make docs brings it")
    command = ["-b", "html", "-c", ROOT / "docs", "-d", tmp_path / "trees", "-W", "--keep-going"]
    command = [sys.executable, "-m", "sphinx", *command, "-q", ROOT, tmp_path / "site"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    home = (tmp_path / "site" / "docs" / "index.html").read_text("utf-8")
    assert "Gallery" in home
    objects = tmp_path / "site" / "docs" / "api" / "objects"
    page = (objects / "anharmonic.LEM.html").read_text("utf-8")
    assert "<math" in page and "Discretisation" in page
    assert (objects / "anharmonic.nn.StepLayer.html").is_file()
    pages = "".join(page.read_text("utf-8") for page in objects.glob("*.html"))
    assert "Alias for field number" not in pages
    index = (tmp_path / "site" / "searchindex.js").read_text("utf-8").lower()
    for word in ("tutorial", "licens", "anomali", "arduino", "stm32", "mamba", '"s4"', "faq"):
        assert word in index, word


def test_every_public_name_has_a_place_in_the_reference():
    import anharmonic

    pages = "".join(page.read_text("utf-8") for page in API.glob("*.md"))
    bodies = re.findall(r"\.\. objects:: anharmonic\n\n((?:   \w+\n)+)", pages)
    said = " ".join(bodies).split()
    assert sorted(said) == sorted(name for name in anharmonic.__all__ if name != "__version__")
    packages = [path.parent.name for path in (ROOT / "src" / "anharmonic").glob("*/__init__.py")]
    internal = {"cli", "pages"}
    listed = set(re.findall(r"\.\. objects:: anharmonic\.(\w+)\n", pages))
    assert listed == set(packages) - internal


def test_every_public_class_and_function_has_an_example():
    lacking = []
    for name in ("anharmonic", *(f"anharmonic.{page.stem}" for page in API.glob("*.md"))):
        try:
            package = importlib.import_module(name)
        except ModuleNotFoundError:
            continue  # a page of names from several packages
        for entry in getattr(package, "__all__", ()):
            one = getattr(package, entry)
            if inspect.isclass(one) or inspect.isroutine(one):
                lacking += [f"{name}.{entry}"] * (">>>" not in (inspect.getdoc(one) or ""))
    assert lacking == []


def test_the_page_of_the_command_line_is_current():
    # If this fails: python tools/command_line_page.py
    script = runpy.run_path(str(ROOT / "tools" / "command_line_page.py"))
    assert script["PAGE"].read_text("utf-8") == script["page"]()


def test_versions_are_listed_newest_first(tmp_path):
    for name in ("0.9.0", "0.10.0", "dev", "pictures"):
        (tmp_path / name).mkdir()
        if name != "pictures":
            (tmp_path / name / "index.html").write_text("")
    write = runpy.run_path(str(ROOT / "tools" / "site_versions.py"))["write_versions"]
    assert write(tmp_path, "https://x.org/y") == ["0.10.0", "0.9.0", "dev"]
    listed = json.loads((tmp_path / "versions.json").read_text())
    assert [one["url"] for one in listed] == [
        f"https://x.org/y/{name}/" for name in ("0.10.0", "0.9.0", "dev")
    ]
    assert 'url=0.10.0/index.html"' in (tmp_path / "index.html").read_text()
