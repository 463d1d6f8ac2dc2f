"""Images read as sequences: pixel by pixel, or row by row with noise behind."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from anharmonic.data.digits import Digits
from anharmonic_papers.tasks import cifar
from anharmonic_papers.tasks.cifar import NoisePaddedCIFAR10, decode_jpegs
from anharmonic_papers.tasks.mnist import (
    PermutedSequentialMNIST,
    SequentialMNIST,
    moved,
    pixel_permutation,
)


def test_digits_are_those_of_scikit_learn():
    loaded, parts = load_digits(), Digits().splits()
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
    assert not torch.equal(Digits(split_seed=1).splits().test.x, parts.test.x)


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


@pytest.fixture
def mnist(real_data):
    return real_data("mnist.npz")


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


def test_psmnist_reorders_the_pixels_and_pool_averages_squares(mnist):
    options = {"train_size": 5, "test_size": 20, "data_dir": mnist}
    plain = SequentialMNIST(**options).loaders(0, 20).test[0]
    permuted = PermutedSequentialMNIST("cornn", **options).loaders(0, 20).test[0]
    assert torch.equal(permuted.x, plain.x[:, pixel_permutation("cornn")])
    assert torch.equal(permuted.y, plain.y)
    small = SequentialMNIST(pool=4, **options).loaders(0, 20).test[0].x
    mean = plain.x.reshape(20, 28, 28).unfold(1, 4, 4).unfold(2, 4, 4).mean((-1, -2))
    torch.testing.assert_close(small, mean.reshape(20, 49, 1))


def test_shift_moves_training_images_alone(mnist):
    options = {"train_size": 18, "valid_size": 5, "test_size": 5, "data_dir": mnist}
    plain = SequentialMNIST(**options | {"train_size": 2})
    task = SequentialMNIST(shift=1, **options)
    assert task.sizes == {"train": 18, "valid": 5, "test": 5}
    for ours, theirs in zip(task.splits()[1:], plain.splits()[1:], strict=True):
        assert torch.equal(ours.x, theirs.x) and torch.equal(ours.y, theirs.y)
    once = plain.splits().train
    x = task.splits().train.x.reshape(9, 2, 28, 28)
    image = once.x.reshape(2, 28, 28)
    assert torch.equal(task.splits().train.y.reshape(9, 2), once.y.expand(9, 2))
    # Digits have a black frame of four pixels, so rolling them moves black pixels in.
    for copy, (down, across) in zip(
        x, [(i, j) for i in (1, 0, -1) for j in (1, 0, -1)], strict=True
    ):
        assert torch.equal(copy, image.roll((down, across), (1, 2)))
    assert not moved(np.full((1, 28, 28), 9, np.uint8), 2)[0, :2].any()
    permuted = PermutedSequentialMNIST(shift=1, **options).splits().train.x
    assert torch.equal(permuted, x.reshape(18, 784, 1)[:, pixel_permutation("lem")])


FEW = {"train_size": 3, "valid_size": 2, "test_size": 4}


@pytest.fixture
def images(monkeypatch):
    """Stands in for the original archive of CIFAR-10."""
    rng = np.random.default_rng(0)
    arrays = {
        "x_train": np.broadcast_to(
            np.arange(3 * 32 * 32, dtype=np.uint8).reshape(3, 32, 32), (50000, 3, 32, 32)
        ),
        "y_train": np.zeros(50000, np.uint8),
        "x_test": rng.integers(0, 256, (10000, 3, 32, 32), dtype=np.uint8),
        "y_test": rng.integers(0, 10, 10000).astype(np.uint8),
    }
    monkeypatch.setattr(cifar, "load_arrays", lambda source, data_dir, progress: arrays)
    return arrays


def test_rows_are_channel_major_then_noise(images):
    task = NoisePaddedCIFAR10(length=40, **FEW)
    assert task.source == "CIFAR-10" and [len(part) for part in task.splits()] == [3, 2, 4]
    batch = task.loaders(0, 4).test[0]
    assert batch.x.shape == (4, 40, 96)
    image = images["x_test"][1].transpose(1, 0, 2).reshape(32, 96) / np.float32(255)
    np.testing.assert_allclose(batch.x[1, :32].numpy(), image, rtol=1e-6)
    assert batch.y.tolist() == images["y_test"][:4].tolist()
    assert NoisePaddedCIFAR10(length=32, **FEW).loaders(0, 1).test[0].x.shape == (1, 32, 96)


def test_flips_double_the_training_images_alone(images):
    plain = NoisePaddedCIFAR10(**FEW)
    task = NoisePaddedCIFAR10(flips=True, **FEW | {"train_size": 6})
    assert task.sizes == {"train": 6, "valid": 2, "test": 4}
    for ours, theirs in zip(task.splits()[1:], plain.splits()[1:], strict=True):
        assert torch.equal(ours.x, theirs.x)
    x, once = task.splits().train.x, plain.splits().train.x
    assert torch.equal(x[:3], once)
    rows = x.reshape(6, 32, 3, 32)
    assert torch.equal(rows[3:], rows[:3].flip(3))
    assert len(task.splits().train.y) == 6
    few = NoisePaddedCIFAR10(flips=True, **FEW | {"train_size": 4})
    assert few.sizes["train"] == len(few.splits().train) == 4


def test_noise_is_one_draw_for_all(images):
    loaders = NoisePaddedCIFAR10(**FEW).loaders(0, 2)
    noise = [loaders.train(0)[0].x[i, 32:] for i in (0, 1)]
    noise += [loaders.valid[0].x[0, 32:], loaders.test[0].x[1, 32:]]
    assert all(torch.equal(one, noise[0]) for one in noise)
    # 968 * 96 draws: mean and variance within six standard errors of N(0, 1).
    assert abs(float(noise[0].mean())) < 6 / 305
    assert abs(float(noise[0].var()) - 1) < 6 * 2**0.5 / 305
    uniform = NoisePaddedCIFAR10(noise="uniform", **FEW).loaders(0, 2).valid[0].x[0, 32:]
    assert 0 <= float(uniform.min()) < float(uniform.max()) < 1
    assert float(uniform.mean()) == pytest.approx(0.5, abs=6 * 0.289 / 305)
    other = NoisePaddedCIFAR10(noise_seed=1, **FEW).loaders(0, 2).valid[0].x[0, 32:]
    assert not torch.equal(other, noise[0])


def test_decoding_keeps_colours_and_order():
    files = []
    for colour in ((250, 10, 10), (10, 250, 10), (10, 10, 250)):
        out = io.BytesIO()
        Image.fromarray(np.full((32, 32, 3), colour, np.uint8)).save(out, "JPEG", quality=95)
        files.append(out.getvalue())
    content = np.frombuffer(b"".join(files), np.uint8)
    offsets = np.cumsum([0, *map(len, files)]).astype(np.uint32)
    decoded = decode_jpegs(content, offsets, np.array([2, 0]))
    assert decoded.shape == (2, 3, 32, 32)
    assert decoded.mean((2, 3)).argmax(1).tolist() == [2, 0]
    assert np.abs(decoded[0].mean((1, 2)) - [10, 10, 250]).max() < 6
    assert NoisePaddedCIFAR10("jpeg").source == "CIFAR-10 (JPEG)"
