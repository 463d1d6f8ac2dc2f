import os

import pytest

from anharmonic.ops import library
from anharmonic.ops.compiler import build
from anharmonic.ops.compiler.trace import Unsupported

LEVEL = build.LEVEL


@pytest.fixture(scope="session", autouse=True)
def compiled_steps(tmp_path_factory):
    """Steps compiled here go to a folder of their own, unless one is named."""
    if library.library() is None:
        pytest.skip("needs the C library")
    try:
        build._compiler()
    except Unsupported as error:
        pytest.skip(str(error))
    if build.FOLDER in os.environ:
        yield
        return
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # several processes share what they build
        folder = folder.parent
    (folder / "compiled").mkdir(mode=0o700, exist_ok=True)
    os.environ[build.FOLDER] = str(folder / "compiled")
    yield
    del os.environ[build.FOLDER]


@pytest.fixture(autouse=True)
def quick_level(monkeypatch):
    """The compiler optimises little here; tests with a parameter ``level`` use both levels."""
    monkeypatch.setattr(build, "LEVEL", build.QUICK_LEVEL)


@pytest.fixture(params=["for use", "quick"])
def level(request, monkeypatch, quick_level):
    """Both levels of optimisation."""
    if request.param == "for use":
        monkeypatch.setattr(build, "LEVEL", LEVEL)
