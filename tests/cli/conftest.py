import numpy as np
import pytest

from anharmonic.cli.main import main


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    """Runs a command line in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ANHARMONIC_DEBUG", raising=False)

    def run(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def data(tmp_path):
    """Forty short sequences of two classes."""
    rng = np.random.default_rng(0)
    x = rng.random((40, 12, 2)).astype(np.float32)
    y = np.where(x[:, :, 0].mean(1) > np.median(x[:, :, 0].mean(1)), "high", "low, <b>")
    path = tmp_path / "mine.npz"
    np.savez(path, x=x, y=y)
    return path
