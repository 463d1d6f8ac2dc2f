"""Language models: windows of one text, whose state is carried from each to the next."""

import dataclasses
import math

import pytest
import torch

from anharmonic.data import StreamTask
from anharmonic.nn.store import from_pretrained
from anharmonic.train import BEST, Run, fit, run_folder
from anharmonic.train.evaluate import evaluate
from anharmonic.train.reader import Reader


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
    return Run(
        "adding", "LSTM", model_options=options, epochs=3, batch_size=4, lr=0.01, clip_norm=1
    )


@pytest.mark.parametrize("layer", ["LEM", "LSTM", "CoRNN"])
def test_windows_read_with_a_carried_state_are_the_whole_text(layer):
    task = Echo()
    model = Run("adding", layer, model_options={"hidden_size": 5}).build_model(task).eval()
    batches = task.loaders(0, 3).train(0)
    reader = Reader(model, carries_state=True)
    with torch.no_grad():
        parts = torch.cat([reader(batch) for batch in batches], 1)
        whole = model(torch.cat([batch.x for batch in batches], 1))
    torch.testing.assert_close(parts, whole)
    bits = evaluate(model, task.loaders(0, 3).test, task, torch.device("cpu")).metric
    again = evaluate(model, task.loaders(0, 3).test, task, torch.device("cpu")).metric
    assert bits == again, "every evaluation begins with zeros"


def test_training_steps_are_those_of_truncated_backpropagation(run, environment):
    task = Echo()
    plain = dataclasses.replace(run, epochs=2, model_options={"hidden_size": 6}, clip_norm=None)
    task.reading = {"embedding_size": 4}
    fit(dataclasses.replace(plain, select="last"), environment, task)
    folder = run_folder(dataclasses.replace(plain, select="last"), environment)
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
    kept = from_pretrained(folder / BEST)
    torch.testing.assert_close(kept.state_dict(), model.state_dict(), rtol=1e-4, atol=1e-6)


class Stopped(Exception):
    """An interruption."""


def test_an_interrupted_run_ends_with_the_same_bits(run, environment, tmp_path):
    whole = fit(run, environment, Echo())
    expected = from_pretrained(run_folder(run, environment) / BEST).state_dict()
    again = dataclasses.replace(environment, out=tmp_path / "again")

    def stop(epoch, value):
        if epoch == 2:
            raise Stopped

    with pytest.raises(Stopped):
        fit(run, again, Echo(), told=stop)
    result = fit(run, again, Echo())
    assert result.test == whole.test and result.curve == whole.curve
    assert result.metric == "bits_per_character" and result.trivial > 1.5
    found = from_pretrained(run_folder(run, again) / BEST).state_dict()
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())


def test_what_only_a_carried_state_knows_is_learned(run, environment):
    task = Echo()
    task.reading = {"embedding_size": 4}
    long = dataclasses.replace(run, epochs=60, model_options={"hidden_size": 16}, select="last")
    result = fit(long, environment, task)
    alone = from_pretrained(run_folder(long, environment) / BEST).eval()
    task.carries_state = False
    without = evaluate(alone, task.loaders(0, 4).test, task, torch.device("cpu")).metric
    assert result.test < 0.2 < without
    assert math.isfinite(without)
