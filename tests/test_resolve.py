"""What a stranger's machine resolves: every extra with constraints.txt, from the public index."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.slow  # asks the public index
ROOT = Path(__file__).parents[1]
PROJECTS = [
    path for path in (ROOT / "pyproject.toml", ROOT / "papers/pyproject.toml") if path.exists()
]
# How this machine reaches the index at all; nothing else of its settings may matter.
REACH = re.compile(r"PATH|SSL_CERT_(FILE|DIR)|(HTTPS?|ALL|NO)_PROXY", re.IGNORECASE)


def requirements():
    """Of every project and every extra, without the projects themselves."""
    projects = [tomllib.loads(path.read_text())["project"] for path in PROJECTS]
    names, lines = {project["name"] for project in projects}, []
    for project in projects:
        for group in (project["dependencies"], *project.get("optional-dependencies", {}).values()):
            lines += [line for line in group if Requirement(line).name not in names]
    return lines


def resolve(home, lines, *options):
    """Reads metadata only; exit code 1 says that there is no solution, 2 that uv could not ask."""
    environment = {name: value for name, value in os.environ.items() if REACH.fullmatch(name)}
    environment |= {
        "HOME": str(home),
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_HTTP_RETRIES": "1",
        # PyTorch's wheels for macOS begin there.
        "MACOSX_DEPLOYMENT_TARGET": "14.0",
    }
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", *options, "-"]
    return subprocess.run(
        command, cwd=home, env=environment, input="\n".join(lines), capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """An empty home, on a machine that is online."""
    folder = tmp_path_factory.mktemp("home")
    found = resolve(folder, ["packaging"])
    if found.returncode == 2:
        pytest.skip(f"the public package index does not answer: {found.stderr}")
    assert found.returncode == 0, found.stderr
    return folder


@pytest.mark.parametrize(
    "platform",
    [
        *(f"x86_64-manylinux_2_28 3.{minor}" for minor in (11, 12, 13)),
        "aarch64-manylinux_2_28 3.13",
        "aarch64-apple-darwin 3.13",
    ],
)
def test_every_extra_resolves_with_the_constraints(home, platform):
    platform, python = platform.split()
    words = ["--constraint", str(ROOT / "constraints.txt"), "--only-binary", ":all:"]
    words += ["--python-platform", platform, "--python-version", python]
    found = resolve(home, requirements(), *words)
    assert found.returncode == 0, found.stderr
    assert re.search(r"^torch==", found.stdout, re.MULTILINE)
