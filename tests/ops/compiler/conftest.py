import os

import pytest

from anharmonic.ops import library
from anharmonic.ops.compiler import build
from anharmonic.ops.compiler.trace import Unsupported

LEVEL, QUICK_LEVEL = build.LEVEL, build.QUICK_LEVEL


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


@pytest.fixture(params=["for use", "quick"])
def level(request, monkeypatch):
    """Both levels of optimisation."""
    monkeypatch.setattr(build, "QUICK_LEVEL", QUICK_LEVEL)
    monkeypatch.setattr(build, "LEVEL", LEVEL if request.param == "for use" else QUICK_LEVEL)
