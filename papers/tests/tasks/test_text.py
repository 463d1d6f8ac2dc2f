"""Reviews and the Penn Treebank: what the archives hold, in the parts that are stated."""

import itertools

import numpy as np
import pytest
import torch

from anharmonic.train import Run, RunEnvironment
from anharmonic_papers.tasks.text import MovieReviews, PennTreebankCharacters, PennTreebankWords


@pytest.fixture
def imdb(real_data):
    real_data("imdb_glove50.npz")
    return real_data("imdb.npz")


@pytest.mark.slow
def test_reviews_are_those_of_the_archive(imdb):
    task = MovieReviews(max_length=120, data_dir=imdb)
    archive = np.load(imdb / "sequence" / "imdb.npz")
    offsets = archive["offsets_test"].astype(np.int64)
    batch = task.loaders(0, 32).test[3]
    for row, place in enumerate(range(96, 128)):
        words = archive["tokens_test"][offsets[place] : offsets[place + 1]][:120]
        assert int(batch.lengths[row]) == len(words)
        assert batch.x[row, : len(words)].tolist() == words.tolist()
        assert int(batch.y[row]) == archive["label_test"][place]
    train, valid, _ = task.splits()
    assert torch.bincount(valid.y).tolist() == [3750, 3750]
    assert torch.bincount(train.y).tolist() == [8750, 8750]
    texts = [
        {part.x[a:b].numpy().tobytes() for a, b in itertools.pairwise(part.offsets.tolist())}
        for part in (train, valid)
    ]
    twice = 25_000 - len(texts[0] | texts[1])
    assert len(texts[0] & texts[1]) <= twice < 200, "but for what the data set itself has twice"
    small = MovieReviews(train_size=100, test_size=40, data_dir=imdb).splits()
    assert torch.bincount(small.test.y).tolist() == [20, 20]
    assert len(small.train) == 100


def test_vectors_of_words(imdb):
    task = MovieReviews(data_dir=imdb)
    archive = np.load(imdb / "sequence" / "imdb_glove50.npz")
    weight = Run("imdb", "CoRNN").build_model(task).embedding.weight
    found = torch.from_numpy(archive["found"])
    assert torch.equal(weight[found], torch.from_numpy(archive["vectors"]).float()[found])
    assert 0.9 < weight[~found].std() < 1.1
    assert MovieReviews(vectors=False, data_dir=imdb).vectors() is None


@pytest.mark.parametrize(
    ("kind", "part"), [(PennTreebankCharacters, "char"), (PennTreebankWords, "word")]
)
def test_the_penn_treebank_is_read_as_one_text(kind, part, real_data):
    folder = real_data("ptb.npz")
    task = kind(window=40, data_dir=folder)
    archive = np.load(folder / "sequence" / "ptb.npz")
    assert task.input_size == len(archive[f"{part}_vocab"])
    for name, found in zip(("train", "valid", "test"), task.splits(), strict=True):
        assert np.array_equal(found.tokens.numpy(), archive[f"{part}_{name}"])
        assert task.sizes[name] == len(found)
    batch = next(iter(task.loaders(0, 16).train(0)))
    assert batch.x.shape == (16, 40) and torch.equal(batch.y[:, :-1], batch.x[:, 1:])


def test_models_are_as_the_tasks_say(tmp_path):
    environment = RunEnvironment(data_dir=tmp_path)  # which no model of characters reads
    run = Run("ptb-char", "LEM", {"input_dropout": 0.1}, {"hidden_size": 7})
    model = run.build_model(run.make_task(environment))
    assert model.embedding.weight.shape == (50, 200) and model.readout == "all"
    assert model.input_dropout == 0.1
    words = Run("ptb-word", "LEM", model_options={"hidden_size": 256})
    tied = words.build_model(words.make_task(environment))
    # As the paper counts: 524k in the cell, and here words and biases beside.
    assert sum(p.numel() for p in tied.layer.parameters()) == 525_312
    assert sum(p.numel() for p in tied.parameters()) == 525_312 + 10_000 * 257
