"""Every table runs end to end, on the smallest budget and on stand-in data."""

import io
import os
from dataclasses import replace

import numpy as np
import pytest

from anharmonic.cli.main import main
from anharmonic.train.results import read_results
from anharmonic_papers.report.compare import compare
from anharmonic_papers.tables.budget import BUDGET
from anharmonic_papers.tables.registry import list_tables, table
from anharmonic_papers.tasks import cifar, signals, text
from anharmonic_papers.tasks import mnist as images
from anharmonic_papers.tasks import tables as tabular
from anharmonic_papers.tasks.prepare import AIR_COLUMNS

LENGTHS = {"adding": 8, "lorenz96": 40, "smnist": 49, "psmnist": 49, "noise-padded-cifar10": 40,
           "spoken-digits": 30, "imdb": 12}  # fmt: skip
SIZES = {"epochs": 1, "train_size": 64, "eval_size": 16}


def stand_in(rng, count, shape):
    """Images of which the first few are random, as many as the real ones."""
    x = np.zeros((count, *shape), np.uint8)
    x[:200] = rng.integers(0, 256, (200, *shape))
    return x, rng.integers(0, 10, count).astype(np.uint8)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    from PIL import Image

    folder = tmp_path_factory.mktemp("data")
    (folder / "sequence").mkdir()
    rng = np.random.default_rng(0)

    def save(name, **arrays):
        np.savez_compressed(folder / "sequence" / f"{name}.npz", **arrays)

    for name, train, test, shape in (
        ("mnist", 60000, 10000, (28, 28)),
        ("cifar10", 50000, 10000, (3, 32, 32)),
    ):
        x_train, y_train = stand_in(rng, train, shape)
        x_test, y_test = stand_in(rng, test, shape)
        save(name, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    file = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (32, 32, 3), np.uint8)).save(file, "JPEG")
    image, jpegs = np.frombuffer(file.getvalue(), np.uint8), {}
    for part, count in (("train", 50000), ("test", 10000)):
        jpegs[f"jpeg_{part}"] = np.tile(image, count)
        jpegs[f"offsets_{part}"] = np.arange(count + 1) * len(image)
        jpegs[f"y_{part}"] = rng.integers(0, 10, count).astype(np.uint8)
    save("cifar10_jpeg", **jpegs)
    values = np.tile(rng.standard_normal((1, 1096, 11)), (12, 32, 1))[:, :35064].astype("f4")
    stations, start = np.arange(12).astype(str), "2013-03-01T00"
    save("beijing_air", values=values, columns=AIR_COLUMNS, stations=stations, time0=start)
    label, speaker, take = (a.ravel().astype(np.uint8) for a in np.mgrid[:10, :6, :50])
    audio = {"audio": rng.integers(-999, 999, 3000 * 50).astype(np.int16), "sample_rate": 8000}
    names = {"label": label, "speaker": speaker, "take": take, "speakers": signals.SPEAKERS}
    save("fsdd", offsets=np.arange(3001) * 50, **audio, **names)
    save("imdb_glove50", vectors=np.ones((25_002, 50), "f2"), found=np.ones(25_002, bool))
    reviews = {}
    for part in ("train", "test"):
        reviews[f"tokens_{part}"] = rng.integers(2, 25_002, 25_000 * 9).astype(np.uint16)
        reviews[f"offsets_{part}"] = np.arange(25_001) * 9
        reviews[f"label_{part}"] = np.arange(25_000) // 12_500
    save("imdb", **reviews)
    parts = [f"{kind}_{part}" for kind in ("char", "word") for part in ("train", "valid", "test")]
    save("ptb", **{part: rng.integers(0, 50, 9000).astype(np.uint16) for part in parts})
    return folder


def words_of(found):
    tasks = {row.run.task for row in found.rows if row.run is not None}
    known = {name for task in tasks for name in BUDGET.get(task, {})}
    chosen = {"epochs": 1, **{k: v for k, v in SIZES.items() if k in known}}
    if "length" in known:
        chosen["length"] = max(LENGTHS.get(task, 0) for task in tasks)
    return [w for k, v in chosen.items() for w in (f"--{k.replace('_', '-')}", str(v))]


WITHOUT_STAND_IN = {
    "graphcon-mnist-superpixel": "cutting 70,000 images takes minutes",
    "graphcon-depth-mnist": "cutting 70,000 images takes minutes",
    "graphcon-sensitivity": "cutting 70,000 images takes minutes",
    "worms": "its recordings have to have their real lengths",
    "cornn-watch-imu": "its recordings have to have their real lengths",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
@pytest.mark.parametrize("name", list_tables())
def test_table_runs_and_is_reported(name, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for module, source in (
        (images, "MNIST"), (signals, "FSDD"), (tabular, "BEIJING_AIR"), (cifar, "CIFAR10"),
        (cifar, "CIFAR10_JPEG"), (text, "IMDB"), (text, "IMDB_GLOVE"), (text, "PTB"),
    ):  # fmt: skip
        monkeypatch.setattr(module, source, replace(getattr(module, source), digest=None))
    found = table(name)
    seed = "0"
    if name in WITHOUT_STAND_IN:
        pytest.skip(WITHOUT_STAND_IN[name])
    if any(row.split for row in found.rows) or "cora" in name or "zinc" in name:
        pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
        if "ANHARMONIC_DATA" not in os.environ:
            pytest.skip("graphs are read from ANHARMONIC_DATA, which is not set")
        data, seed = os.environ["ANHARMONIC_DATA"], "1"
    words = ["table", name, *words_of(found), "--seeds", seed, "--data-dir", str(data)]
    assert main([*words, "--threads", "1", "--no-progress"]) == 0
    lines = compare(found, read_results(tmp_path / "results" / f"{name}.jsonl"))
    for line in lines:
        assert line.full is None
        assert bool(line.reduced) == (line.row.run is not None)
    assert main(["report", name, "--html", "page.html"]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('<tr class="reduced">') == sum(len(line.reduced) for line in lines)
