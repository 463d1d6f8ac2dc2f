from dataclasses import replace

import pytest

from anharmonic.data import RemoteFile, load_arrays
from anharmonic_papers.tasks.archives import (
    BEIJING_AIR,
    BIDMC_HEART,
    CIFAR10,
    CIFAR10_JPEG,
    EIGENWORMS,
    FSDD,
    HAR,
    IMDB,
    IMDB_GLOVE,
    MNIST,
    PTB,
    SPEECH_COMMANDS,
    WATCH_IMU,
)
from anharmonic_papers.tasks.graphs.large import ArxivYear, Genius, SnapPatents
from anharmonic_papers.tasks.graphs.proteins import ProteinInteractions
from anharmonic_papers.tasks.mnist import SequentialMNIST


@pytest.mark.parametrize(
    "source", [MNIST, CIFAR10_JPEG, FSDD, IMDB, IMDB_GLOVE, PTB, WATCH_IMU], ids=lambda s: s.name
)
def test_real_data_have_their_digest(source, real_data):
    folder = real_data(f"{source.name}.npz")
    assert source.digest is not None
    assert load_arrays(source, folder)


LARGE = [kind.archive for kind in (Genius, ArxivYear, SnapPatents, ProteinInteractions)]


@pytest.mark.parametrize(
    "source", [MNIST, CIFAR10, FSDD, BEIJING_AIR, SPEECH_COMMANDS], ids=lambda s: s.name
)
def test_every_download_is_checked(source):
    assert source.digest or (source.form and all(file.checksum for file in source.files))
    assert all(file.url.startswith("https://") for file in source.files)


@pytest.mark.parametrize("source", [HAR, EIGENWORMS, BIDMC_HEART, *LARGE], ids=lambda s: s.name)
def test_without_a_known_checksum_the_form_is_checked(source):
    assert source.form and source.digest is None
    assert all(file.url.startswith("https://") for file in source.files)


def test_a_task_says_which_file_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr("anharmonic.data.download.RETRIES", 0)
    nowhere = replace(MNIST, files=(RemoteFile("http://127.0.0.1:9/x.gz", None),))
    monkeypatch.setattr("anharmonic_papers.tasks.mnist.MNIST", nowhere)
    with pytest.raises(FileNotFoundError, match=r"mnist.npz"):
        SequentialMNIST(data_dir=tmp_path).loaders(0, 1)
