import numpy as np
import pytest
import torch

from anharmonic.data.digits import Digits
from anharmonic_papers.tasks.mnist import (
    PermutedSequentialMNIST,
    SequentialMNIST,
    pixel_permutation,
)


@pytest.fixture
def mnist(real_data):
    return real_data("mnist.npz")


def test_digits():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.datasets import load_digits

    task, loaded = Digits(), load_digits()
    parts = [part for part in task.splits() if part is not None]
    assert {"train": 1257, "valid": 180, "test": 360} == task.sizes
    assert [len(part) for part in parts] == [1257, 180, 360]
    # The parts together are the whole set, so they are disjoint; pixels are in reading order.
    x = 16 * torch.cat([part.x.flatten(1) for part in parts])
    y = torch.cat([part.y for part in parts])
    ours = [(*row, label) for row, label in zip(x.tolist(), y.tolist(), strict=True)]
    theirs = [(*row, y) for row, y in zip(loaded.data, loaded.target, strict=True)]
    assert sorted(ours) == sorted(theirs)
    for part in parts:
        share = np.bincount(loaded.target) * len(part) / 1797
        assert (np.abs(torch.bincount(part.y, minlength=10).numpy() - share) <= 1).all()
    assert torch.equal(Digits().splits().test.y, parts[2].y)
    assert not torch.equal(Digits(split_seed=1).splits().test.x, parts[2].x)


@pytest.mark.parametrize(
    ("kind", "entries"),
    [
        ("lem", [327, 72, 48, 129, 109, 101, 69, 569, 79, 263]),
        ("cornn", [91, 97, 471, 426, 157, 451, 312, 198, 117, 454]),
        ("exprnn", [319, 576, 323, 107, 355, 716, 197, 20, 625, 60]),
    ],
)
def test_permutations_are_the_published_ones(kind, entries):
    permutation = pixel_permutation(kind)
    assert permutation[:10].tolist() == entries
    assert sorted(permutation.tolist()) == list(range(784))


def test_smnist_is_mnist(mnist):
    task = SequentialMNIST(data_dir=mnist)
    train, valid, test = task.splits()
    assert (len(train), len(valid), len(test)) == (57000, 3000, 10000)
    archive = np.load(mnist / "sequence" / "mnist.npz")
    batch = task.loaders(0, 100).test[0]
    expected = archive["x_test"][:100].reshape(100, 784) / np.float32(255)
    np.testing.assert_array_equal(batch.x[:, :, 0].numpy(), expected)
    assert batch.y.tolist() == archive["y_test"][:100].tolist()
    # Training and validation labels together are the official ones.
    together = torch.bincount(torch.cat([train.y, valid.y]).long())
    assert together.tolist() == np.bincount(archive["y_train"]).tolist()
    # No validation image is a training image. (MNIST itself holds no duplicates.)
    seen = {image.tobytes() for image in train.x.numpy()}
    assert not any(image.tobytes() in seen for image in valid.x.numpy())


def test_psmnist_reorders_the_pixels(mnist):
    options = {"train_size": 5, "test_size": 20, "data_dir": mnist}
    plain = SequentialMNIST(**options).loaders(0, 20).test[0]
    order = pixel_permutation("cornn")
    task = PermutedSequentialMNIST(permutation="cornn", **options)
    batch = task.loaders(0, 20).test[0]
    assert torch.equal(batch.x, plain.x[:, order])
    assert torch.equal(batch.y, plain.y)
    assert {"train": 5, "valid": 3000, "test": 20} == task.sizes
    assert [len(part) for part in task.splits() if part is not None] == [5, 3000, 20]


def test_pool_averages_squares(mnist):
    small = SequentialMNIST(test_size=3, pool=4, data_dir=mnist).loaders(0, 3).test[0].x
    full = SequentialMNIST(test_size=3, data_dir=mnist).loaders(0, 3).test[0].x
    assert small.shape == (3, 49, 1)
    mean = full.reshape(3, 1, 28, 28).unfold(2, 4, 4).unfold(3, 4, 4).mean((-1, -2))
    torch.testing.assert_close(small.reshape(3, 1, 7, 7), mean)
