"""Arguments that tasks refuse, archives that are not there, and what they say."""

import pytest

from anharmonic.data.digits import Digits
from anharmonic_papers.tasks.cifar import NoisePaddedCIFAR10
from anharmonic_papers.tasks.dynamics import FitzHughNagumo, Lorenz96
from anharmonic_papers.tasks.graphs.heterophilic import Cornell, Texas
from anharmonic_papers.tasks.graphs.molecules import ZincRebuilt
from anharmonic_papers.tasks.graphs.networks import Minesweeper
from anharmonic_papers.tasks.graphs.superpixels import MNISTSuperpixels
from anharmonic_papers.tasks.graphs.synthetic_cora import SyntheticCora
from anharmonic_papers.tasks.graphs.traffic import ChameleonTraffic
from anharmonic_papers.tasks.mnist import PermutedSequentialMNIST, SequentialMNIST
from anharmonic_papers.tasks.sensors import Worms
from anharmonic_papers.tasks.signals import SpokenDigits
from anharmonic_papers.tasks.tables import BeijingAir, BreastCancer
from anharmonic_papers.tasks.text import MovieReviews, PennTreebankCharacters, PennTreebankWords


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (ZincRebuilt, {"atoms": "embedding"}, "atoms must be one of 'onehot', 'number'; got 'em"),
        (Texas, {"split": 10}, r"split must be in \[0, 9\]; got 10; choose a st"),
        (Minesweeper, {"split": 12}, r"split must be in \[0, 9\]; got 12; choose"),
        (Texas, {"split": -1}, "split must be an int"),
        (MNISTSuperpixels, {"nearest": 0}, "nearest must be an int"),
        (MNISTSuperpixels, {"split_seed": -1}, "split_seed must be an int"),
        (MNISTSuperpixels, {"train_size": 60000}, r"train_size must be in \[1, 55000\]"),
        (SyntheticCora, {"homophily": 0.15}, r"homophily must be one of 0.0, 0.1, .*; got 0.15"),
        (SyntheticCora, {"homophily": 1.5}, "homophily must be a finite number"),
        (SyntheticCora, {"repeat": 4}, r"repeat must be in \[1, 3\]; got 4; choose"),
        (NoisePaddedCIFAR10, {"form": "png"}, "form must be one of 'original', 'jpeg'"),
        (NoisePaddedCIFAR10, {"noise": "pink"}, "noise must be one of 'normal', 'uniform'"),
        (NoisePaddedCIFAR10, {"length": 31}, "length must be >= 32; got 31"),
        (NoisePaddedCIFAR10, {"noise_seed": -1}, "noise_seed must be"),
        (NoisePaddedCIFAR10, {"test_size": 10001}, r"test_size must be in \[1, 10000\]"),
        (FitzHughNagumo, {"tolerance": "loose"}, "tolerance must be one of 'default', 'tight'"),
        (FitzHughNagumo, {"data_seed": -1}, "data_seed must be"),
        (Lorenz96, {"forcing": 1e9}, r"forcing must be a finite number in \[-20, 20\]"),
        (Lorenz96, {"length": 0}, "length must be an int >= 1"),
        (Lorenz96, {"horizon": 0}, "horizon must be an int >= 1"),
        (PermutedSequentialMNIST, {"permutation": "cornm"}, "did you mean 'cornn'"),
        (SequentialMNIST, {"pool": 3}, "pool must be 1, 2, 4, 7 or 14; got 3; choose"),
        (SequentialMNIST, {"valid_size": 60000}, r"valid_size must be in \[1, 59999\]; got 60000"),
        (SequentialMNIST, {"valid_size": 0}, "valid_size must be an int >= 1"),
        (SequentialMNIST, {"train_size": 60000}, r"train_size must be in \[1, 57000\]"),
        (Digits, {"split_seed": -1}, "split_seed must be"),
        (SpokenDigits, {"split": "random"}, "split must be one of 'official', 'speaker'"),
        (SpokenDigits, {"subsample": 0}, "subsample must be an int >= 1"),
        (SpokenDigits, {"max_length": 0}, "max_length must be an int >= 1"),
        (SpokenDigits, {"test_speaker": "luca"}, "test_speaker must .* did you mean 'lucas'"),
        (SpokenDigits, {"valid_speaker": "yweweler"}, "test_speaker must be .*valid_speaker; got"),
        (SpokenDigits, {"train_size": 2431}, r"train_size must be in \[1, 2430\]; got 2431"),
        (Worms, {"last": 5, "random": 5}, "random must be None beside last"),
        (Worms, {"last": 901}, r"last must be in \[1, 900\]"),
        (BeijingAir, {"train_size": 400_000}, r"train_size must be in \[1, 306869\]; got 4000"),
        (BeijingAir, {"test_size": 0}, "test_size must be an int >= 1"),
        (MovieReviews, {"max_length": 0}, "max_length must be an int >= 1"),
        (PennTreebankWords, {"train_size": 10**6}, r"train_size must be in \[1, 929589\]"),
        (PennTreebankCharacters, {"window": 0}, "window must be an int >= 1"),
        (BreastCancer, {"metric": "f1"}, "metric must be one of 'accuracy', 'cross_entropy'"),
        (Texas, {"undirected": "no"}, "undirected must be True or False; got undirected='no'"),
        (Texas, {"split": "0"}, "split must be an int"),
        (MNISTSuperpixels, {"standardise": 1}, "standardise must be True or False"),
        (SyntheticCora, {"repeat": True}, "repeat must be an int >= 1; got repeat=True"),
        (ChameleonTraffic, {"published_numbering": 1}, "published_numbering must be True or False"),
        (SequentialMNIST, {"pool": True}, "pool must be an int >= 1; got pool=True"),
    ],
)
def test_a_value_that_a_task_cannot_use_is_refused(task, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        task(**options)


@pytest.mark.parametrize("task", [Cornell, ZincRebuilt])
def test_an_archive_that_is_not_there_is_named_and_its_folder(task, tmp_path):
    there = rf"{task.archive.name}.npz must exist; got no such file, .*ANHARMONIC_DATA .* holds gr"
    with pytest.raises(FileNotFoundError, match=there):
        task(data_dir=tmp_path).splits()
