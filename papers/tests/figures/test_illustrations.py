"""The molecule and the curves of few neurons."""

import pytest
import torch

from anharmonic.train.run import RunEnvironment
from anharmonic_papers.figures import illustrations


def test_every_atom_is_bonded_as_its_element_allows():
    for n, element in enumerate(illustrations._ATOMS):
        bonds = sum(n in bond for bond in illustrations._BONDS)
        assert 1 <= bonds <= {"C": 4, "O": 2, "F": 1}[element]


def test_the_molecule_oscillates_and_stays_apart():
    pytest.importorskip("torch_geometric", reason="its GCN")
    found = illustrations._molecule(RunEnvironment())
    assert len(found.values) == 2 * 19 and found.places["C0 x"][-1] == 20.0
    signs = torch.tensor(found.values["C0 x"]).sign()
    assert int((signs[1:] != signs[:-1]).sum()) >= 4
    last = torch.tensor([v[-1] for v in found.values.values()])
    assert last.std() > 0.1 and last.abs().max() < 5
