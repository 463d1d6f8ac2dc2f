import numpy as np
import pytest
import torch

from anharmonic.data import FileTask, SequencesTask, save_npz, sequences_from
from anharmonic.data.own import inputs_of


@pytest.fixture
def part():
    rng = np.random.default_rng(0)
    x = [rng.random((steps, 2)) for steps in rng.integers(5, 9, 30)]
    return sequences_from(x, np.tile(["a", "b", "c"], 10))


OPTIONS = {"difference": True, "split_seed": 3, "valid_share": 0.2}


def test_data_in_memory_are_cut_and_prepared_as_those_of_a_file(part, tmp_path):
    here = SequencesTask({"all": part}, **OPTIONS)
    there = FileTask(save_npz(tmp_path / "mine.npz", part), **OPTIONS)
    assert here.sizes == there.sizes
    assert here.class_names == there.class_names
    assert here.preprocessing == there.preprocessing
    every = torch.arange(4)
    for mine, other in zip(here.splits(), there.splits(), strict=True):
        assert torch.equal(mine.take(every).x, other.take(every).x)
        assert torch.equal(mine.take(every).y, other.take(every).y)


def test_messages_name_the_source(part):
    with pytest.raises(ValueError, match="classes of y in my arrays"):
        SequencesTask({"all": part.with_targets(np.zeros(30, int))}, source="my arrays")


def test_class_weights_are_one_per_class(part):
    assert SequencesTask({"all": part}, class_weights=[1, 2, 3]).class_weights == (1.0, 2.0, 3.0)
    with pytest.raises(ValueError, match=r"class_weights.*3 numbers.*\[1, 2\]"):
        SequencesTask({"all": part}, class_weights=[1, 2])
    with pytest.raises(ValueError, match="class_weights"):
        SequencesTask({"all": part.with_targets(np.arange(30.0) / 7)}, class_weights=[1.0])


def test_inputs_are_prepared_with_the_numbers_of_training(part):
    task = SequencesTask({"train": part, "test": part})
    inputs = inputs_of(part, task.preprocessing)
    every = torch.arange(len(part))
    assert torch.equal(inputs.dataset.take(every).x, task.splits().test.take(every).x)
    assert inputs.owners.tolist() == every.tolist()
