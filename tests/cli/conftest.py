import numpy as np
import pytest

from anharmonic.cli.main import main
from anharmonic.training.results import Result


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


@pytest.fixture
def make_result():
    def make(run, test=0.002, seconds=30.0, valid=(0.5, 0.1, 0.004), **changes):
        values = {
            "run": run,
            "hash": run.hash,
            "test": test,
            "valid": valid[-1],
            "metric": "mse",
            "higher_is_better": False,
            "parameters": 1234,
            "seconds": seconds,
            "memory_mb": 300.0,
            "epochs_run": len(valid),
            "best_epoch": len(valid),
            "stopped": "finished",
            "device": "cpu",
            "devices": 1,
            "threads": 1,
            "hardware": "A Processor <x>",
            "versions": {"anharmonic": "0.1.0", "torch": "2.13.0"},
            "commit": "0123456789abcdef",
            "started": "2026-01-02T03:04:05+00:00",
            "curve": {
                "epoch": list(range(1, len(valid) + 1)),
                "train_loss": [1.0] * len(valid),
                "valid": list(valid),
            },
        }
        return Result(**{**values, **changes})

    return make
