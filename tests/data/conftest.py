"""What the tests of data share."""

import numpy as np
import pytest


@pytest.fixture
def write(tmp_path):
    """Writes a file of text, of bytes, or of arrays in the form that its name says."""

    def written(name, content):
        path = tmp_path / name
        if isinstance(content, str | bytes):
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        elif name.endswith(".mat"):
            pytest.importorskip("scipy.io").savemat(path, content)
        else:
            np.savez(path, **content)
        return path

    return written
