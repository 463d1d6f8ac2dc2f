"""The data a model is looked at with, and the log that is read again."""

import pytest
import torch

from anharmonic.data.dataset import Batch, Batches
from anharmonic.data.graph_batch import GraphBatch
from anharmonic.ops.graph import Adjacency
from anharmonic.train.probes import probe_of, read_diagnostics


def batches(batch):
    return Batches(1, lambda index: batch)


def test_the_first_sequences_with_the_loss_of_their_targets():
    x, y = torch.randn(10, 7, 2), torch.arange(10) % 3
    probe = probe_of(batches(Batch(x, y, None)), "cross_entropy")
    assert len(probe.inputs) == 1 and torch.equal(probe.inputs[0], x[:8])
    logits = torch.randn(8, 3)
    expected = torch.nn.functional.cross_entropy(logits, y[:8], reduction="sum")
    assert torch.equal(probe.loss(logits), expected)


def test_ragged_sequences_are_cut_to_the_shortest_and_of_their_steps_the_last_counts():
    x, y, lengths = torch.randn(3, 7, 2), torch.randn(3, 7, 1), torch.tensor([7, 4, 5])
    probe = probe_of(batches(Batch(x, y[:, 0], lengths)), "squared_error")
    assert torch.equal(probe.inputs[0], x[:, :4])
    assert probe.loss(y[:, 0] + 2).item() == pytest.approx(12.0)
    probe = probe_of(batches(Batch(x, y, None)), "absolute_error")
    assert probe.loss(y[:, -1] + 2).item() == pytest.approx(6.0)
    probe = probe_of(batches(Batch(x, y, lengths)), "absolute_error")
    assert probe.loss(y[:, 3]).item() == 0


def test_of_graphs_the_first_batch_is_taken_whole():
    graph = Adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
    batch = GraphBatch(torch.rand(2, 3), graph, torch.zeros(2), None, None)
    probe = probe_of(batches(batch), "squared_error")
    assert probe.inputs is batch.inputs or probe.inputs[1] is graph
    assert probe.loss is None


def test_a_damaged_line_is_left_out_and_the_last_of_an_epoch_counts(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"epoch": 1, "a": 1}\n{"epoch": 0}\n{"epoch": 1, "a": 2}\n{"epo')
    with pytest.warns(UserWarning, match="line 4 is skipped"):
        assert read_diagnostics(path) == [{"epoch": 0}, {"epoch": 1, "a": 2}]
    path.write_text('{"epoch": 0}\n', encoding="utf-8-sig")
    assert read_diagnostics(path) == [{"epoch": 0}]
