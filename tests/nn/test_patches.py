"""Several steps of a sequence as one for the layer."""

import pytest
import torch

from anharmonic.nn import SequenceModel
from anharmonic.nn.store import from_pretrained, save_pretrained


def model(patch, layer="LEM", **options):
    torch.manual_seed(0)
    return SequenceModel(layer, 2, 3, hidden_size=5, readout="mean", patch=patch, **options)


def test_patches_are_steps_of_a_wider_input():
    ours = model(3)
    torch.manual_seed(0)
    plain = SequenceModel("LEM", 6, 3, hidden_size=5, readout="mean")
    x = torch.randn(4, 12, 2)
    assert torch.equal(ours(x), plain(x.reshape(4, 4, 6)))


def test_the_last_patch_is_filled_with_zeros_and_padding_does_not_count():
    ours, x = model(4), torch.randn(3, 10, 2)
    filled = torch.cat([x, torch.zeros(3, 2, 2)], dim=1)
    assert torch.equal(ours(x), ours(filled))
    lengths = torch.tensor([10, 7, 1])
    spoiled = x.clone()
    spoiled[1, 7:], spoiled[2, 1:] = torch.nan, torch.inf
    found = ours(spoiled, lengths)
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(found[row], ours(x[row : row + 1, :length])[0])


def test_elapsed_is_the_mean_of_a_patch():
    ours, x = model(2, dt=0.3), torch.randn(2, 6, 2)
    elapsed = torch.tensor([[1.0, 3.0, 2.0, 2.0, 0.5, 1.5]]).repeat(2, 1)
    torch.manual_seed(0)
    plain = SequenceModel("LEM", 4, 3, hidden_size=5, readout="mean", dt=0.3)
    steps = torch.tensor([[2.0, 2.0, 1.0]]).repeat(2, 1)
    assert torch.equal(ours(x, elapsed=elapsed), plain(x.reshape(2, 3, 4), elapsed=steps))


def test_elapsed_beyond_the_end_of_a_sequence_does_not_count():
    ours, x, elapsed = model(4, dt=0.3), torch.randn(3, 10, 2), torch.rand(3, 10) + 0.5
    lengths = torch.tensor([10, 7, 1])
    spoiled = elapsed.clone()
    spoiled[1, 7:], spoiled[2, 1:] = torch.nan, 9.0
    found = ours(x, lengths, spoiled)
    for row, length in enumerate(lengths.tolist()):
        alone = ours(x[row : row + 1, :length], elapsed=elapsed[row : row + 1, :length])
        torch.testing.assert_close(found[row], alone[0])


def test_it_is_saved_with_the_model(tmp_path):
    ours, x = model(3), torch.randn(2, 7, 2)
    save_pretrained(ours, tmp_path / "model")
    assert torch.equal(from_pretrained(tmp_path / "model")(x), ours(x))
    assert "patch" not in model(1).config()


def test_a_prediction_at_every_step_needs_every_step():
    with pytest.raises(ValueError, match=r"patch must be 1 .*; got (patch=)?2"):
        SequenceModel("LEM", 2, 3, hidden_size=5, readout="all", patch=2)
