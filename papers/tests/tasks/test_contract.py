"""The library's public suite over the papers' tasks on sequences and tables."""

import pytest

from anharmonic.data import make_task
from anharmonic.testing import check_task

SMALL = {"train_size": 500, "valid_size": 20, "test_size": 20}


@pytest.mark.parametrize(
    ("name", "archive", "options"),
    [
        ("lorenz96", None, {"length": 20}),
        ("breast-cancer", None, {}),
        ("beijing-air", "beijing_air", SMALL),
        ("smnist", "mnist", SMALL),
        ("noise-padded-cifar10", "cifar10_jpeg", {"form": "jpeg", "length": 33, **SMALL}),
        ("spoken-digits", "fsdd", {"subsample": 20}),
        ("spoken-digits", "fsdd", {"subsample": 20, "split": "speaker"}),
        ("ptb-word", "ptb", {"window": 200, "train_size": 100_000}),
        ("watch-imu", "watch_imu", {}),
    ],
)
def test_contract(name, archive, options, real_data):
    folder = real_data(f"{archive}.npz") if archive else None
    check_task(lambda: make_task(name, options, data_dir=folder))
