"""Language models: windows of one text, whose state is carried from each to the next."""

import dataclasses
import math

import pytest
import torch

from anharmonic.data import SequenceDataset, Splits, StreamTask, Task
from anharmonic.nn.store import from_pretrained
from anharmonic.train import BEST, Run, fit, read_results, recipe, run_folder
from anharmonic.train.scoring import Predictor, evaluate

CPU = torch.device("cpu")


class Echo(StreamTask):
    """Every letter is that of 6 steps before: with windows of 4 only a carried state knows it."""

    name = "adding"  # a name that a run knows
    metric = "bits_per_character"
    input_size = output_size = 4
    source, licence = "here", "none needed"
    window = 4
    reading = {"embedding_size": 4, "input_dropout": 0.1}  # noqa: RUF012

    def __init__(self):
        self.sizes = {"train": 240, "valid": 121, "test": 121}

    def _texts(self):
        period = torch.tensor([0, 3, 1, 1, 2, 0])
        return tuple(period.repeat(-(-n // 6))[:n] for n in self.sizes.values())


@pytest.fixture
def run():
    options = {"hidden_size": 12, "dropout": 0.2, "num_layers": 2}
    fields = {"epochs": 3, "batch_size": 4, "lr": 0.01, "clip_norm": 1}
    return Run("adding", "LSTM", model_options=options, **fields)


@pytest.mark.parametrize("layer", ["LEM", "LSTM", "CoRNN"])
def test_windows_read_with_a_carried_state_are_the_whole_text(layer):
    task = Echo()
    model = Run("adding", layer, model_options={"hidden_size": 5}).build_model(task).eval()
    test, reader = task.loaders(0, 3).test, Predictor(model, carries_state=True)
    with torch.no_grad():
        scores = model(torch.cat([batch.x for batch in test], 1))
        torch.testing.assert_close(torch.cat([reader(batch) for batch in test], 1), scores)
    y = torch.cat([batch.y for batch in test], 1).flatten()
    bits = float(torch.nn.functional.cross_entropy(scores.flatten(0, 1), y)) / math.log(2)
    for _ in range(2):  # every evaluation begins with zeros
        assert evaluate(model, test, task, CPU).metric == pytest.approx(bits, rel=1e-5)


def test_training_steps_are_those_of_truncated_backpropagation(run, environment):
    task = Echo()
    options = {"model_options": {"hidden_size": 6}, "clip_norm": None, "select": "last"}
    plain = dataclasses.replace(run, epochs=2, **options)
    task.reading = {"embedding_size": 4}
    fit(plain, environment, task)
    torch.manual_seed(plain.seed)
    model = plain.build_model(task)
    optimizer = torch.optim.Adam(model.parameters(), lr=plain.lr, fused=True)
    for _ in range(2):
        state = None
        for batch in task.loaders(0, plain.batch_size).train(0):
            scores, state = model(batch.x, state=state, return_state=True)
            state = type(state)(*(part.detach() for part in state))
            loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), batch.y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    kept = from_pretrained(run_folder(plain, environment) / BEST)
    torch.testing.assert_close(kept.state_dict(), model.state_dict(), rtol=1e-4, atol=1e-6)


class Reviews(Task):
    """Long texts, good where they say 1 more often than 2."""

    name = "adding"  # a name that a run knows
    target, readout, metric, tokens = "class", "last", "accuracy", True
    input_size, output_size = 3, 2
    source, licence = "here", "none needed"
    reading = {"embedding_size": 2}  # noqa: RUF012

    def __init__(self):
        self.sizes = {"train": 40, "valid": 20, "test": 20}

    def vectors(self):
        return torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, torch.nan]])

    def _build(self):
        gen = torch.Generator().manual_seed(0)
        x = torch.randint(1, 3, (80, 900), generator=gen, dtype=torch.int16)
        y = ((x == 1).sum(1) > 450).long()
        parts = zip(x.split([40, 20, 20]), y.split([40, 20, 20]), strict=True)
        return Splits(*(SequenceDataset(*part, tokens=True) for part in parts))


def test_long_texts_are_read_word_by_word(environment):
    task = Reviews()
    chosen = recipe("LEM", task, {"epochs": 1, "model_options": {"hidden_size": 4}}).run
    assert chosen.patch == 1 and chosen.readout == "mean"
    model = chosen.build_model(task)
    assert model.embedding.weight[:2].tolist() == [[0, 0], [1, 0]]
    assert model.embedding.weight[2, 0] == 0 and model.embedding.weight[2, 1] != 0
    assert 0 <= fit(chosen, environment, task).test <= 100


def test_the_recipe_counts_windows(environment):
    task = Echo()
    chosen = recipe("LEM", task, {"batch_size": 4}).run
    assert chosen.epochs > 20, "some 60 windows are few"
    assert "bidirectional" not in chosen.model_options
    assert chosen.build_model(task).readout == "all"


def test_an_interrupted_run_ends_with_the_same_bits(run, environment, goes_on):
    goes_on(run, environment, Echo())
    (result,) = read_results(environment.results_path)
    assert result.metric == "bits_per_character" and result.trivial > 1.5
