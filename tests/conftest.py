"""What tests of several rooms share."""

import pytest

from anharmonic.training.results import Result


@pytest.fixture
def make_result():
    """Makes the result of a run that was never trained."""

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
