import pytest

from anharmonic_papers.tasks.graphs.heterophilic import ChameleonFiltered, Texas
from anharmonic_papers.tasks.graphs.networks import Minesweeper


def test_sizes_may_depend_on_the_split():
    assert ChameleonFiltered().sizes != ChameleonFiltered(split=1).sizes
    assert sum(ChameleonFiltered(split=1).sizes.values()) == 890
    assert Texas().sizes == Texas(split=9).sizes


def test_errors():
    with pytest.raises(ValueError, match=r"split must be in \[0, 9\]; got 10; choose a st"):
        Texas(split=10)
    with pytest.raises(ValueError, match=r"split must be in \[0, 9\]; got 12; choose"):
        Minesweeper(split=12)
    with pytest.raises(ValueError, match="split must be an int"):
        Texas(split=-1)
    with pytest.raises(TypeError, match="split must be an int"):
        Texas(split="0")
