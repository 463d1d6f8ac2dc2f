import os

import pytest

from anharmonic.ops import library
from anharmonic.ops.compiler import build
from anharmonic.ops.compiler.trace import Unsupported


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
    os.environ[build.FOLDER] = str(tmp_path_factory.mktemp("compiled"))
    yield
    del os.environ[build.FOLDER]
