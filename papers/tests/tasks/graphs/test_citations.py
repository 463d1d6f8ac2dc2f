from anharmonic_papers.tasks.graphs.citations import Citeseer


def test_sizes():
    assert Citeseer().sizes == {"train": 120, "valid": 500, "test": 1000}
    assert Citeseer("random").sizes == {"train": 120, "valid": 1380, "test": 610}
