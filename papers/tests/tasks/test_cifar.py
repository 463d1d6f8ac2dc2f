import io

import numpy as np
import pytest
import torch

from anharmonic_papers.tasks import cifar
from anharmonic_papers.tasks.cifar import NoisePaddedCIFAR10, decode_jpegs


@pytest.fixture
def small(monkeypatch):
    """Stands in for the original archive: images whose pixels say where they are."""
    rng = np.random.default_rng(0)
    arrays = {
        "x_train": np.broadcast_to(
            np.arange(3 * 32 * 32, dtype=np.uint8).reshape(3, 32, 32), (50000, 3, 32, 32)
        ),
        "y_train": rng.integers(0, 10, 50000).astype(np.uint8),
        "x_test": rng.integers(0, 256, (10000, 3, 32, 32), dtype=np.uint8),
        "y_test": rng.integers(0, 10, 10000).astype(np.uint8),
    }
    monkeypatch.setattr(cifar, "load_arrays", lambda source, data_dir, progress: arrays)
    return arrays


def test_rows_are_channel_major_then_noise(small):
    task = NoisePaddedCIFAR10(length=40, train_size=3, test_size=4, valid_size=2)
    batch = task.loaders(0, 4).test[0]
    assert batch.x.shape == (4, 40, 96)
    image = small["x_test"][1]
    for row in (0, 17, 31):
        expected = np.concatenate([image[0, row], image[1, row], image[2, row]]) / np.float32(255)
        np.testing.assert_allclose(batch.x[1, row].numpy(), expected, rtol=1e-6)
    assert batch.y.tolist() == small["y_test"][:4].tolist()
    assert task.source == "CIFAR-10"


def test_noise_is_one_draw_for_all(small):
    options = {"length": 1000, "train_size": 2, "test_size": 2, "valid_size": 2}
    loaders = NoisePaddedCIFAR10(**options).loaders(0, 2)
    noise = [loaders.train(0)[0].x[i, 32:] for i in (0, 1)]
    noise += [loaders.valid[0].x[0, 32:], loaders.test[0].x[1, 32:]]
    assert all(torch.equal(one, noise[0]) for one in noise)
    # 968 * 96 draws: mean and variance within six standard errors of N(0, 1).
    assert abs(float(noise[0].mean())) < 6 / 305
    assert abs(float(noise[0].var()) - 1) < 6 * 2**0.5 / 305
    uniform = NoisePaddedCIFAR10(noise="uniform", **options).loaders(0, 2).valid[0].x[0, 32:]
    assert float(uniform.min()) >= 0
    assert float(uniform.max()) < 1
    assert float(uniform.mean()) == pytest.approx(0.5, abs=6 * 0.289 / 305)
    other = NoisePaddedCIFAR10(noise_seed=1, **options).loaders(0, 2).valid[0].x[0, 32:]
    assert not torch.equal(other, noise[0])


def test_parts_have_their_sizes_and_no_noise_at_length_32(small):
    small["y_train"] = np.zeros(50000, np.uint8)
    task = NoisePaddedCIFAR10(length=32, train_size=70, valid_size=30, test_size=5)
    assert {"train": 70, "valid": 30, "test": 5} == task.sizes
    assert [len(part) for part in task.splits() if part is not None] == [70, 30, 5]
    assert task.loaders(0, 1).test[0].x.shape == (1, 32, 96)


def test_decoding_keeps_colours_and_order():
    from PIL import Image

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


def test_jpeg_form_says_so_and_has_the_known_means(real_data):
    folder = real_data("cifar10_jpeg.npz")
    task = NoisePaddedCIFAR10(
        form="jpeg", length=40, train_size=500, valid_size=300, test_size=1000, data_dir=folder
    )
    assert task.source == "CIFAR-10 (JPEG)"
    x = torch.cat([batch.x[:, :32] for batch in task.loaders(0, 500).test])
    means = x.reshape(-1, 32, 3, 32).mean((0, 1, 3))
    # Channel means of the whole test set; a thousand images give them to about 0.01.
    np.testing.assert_allclose(means.numpy(), [0.4941, 0.4851, 0.4504], atol=0.03)
    train, valid, _ = task.splits()
    seen = {image.tobytes() for image in train.x.numpy()}
    assert len(seen) > 490
    assert not any(image.tobytes() in seen for image in valid.x.numpy())
