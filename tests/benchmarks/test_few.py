"""Networks beside resonators on few series."""

from argparse import Namespace

import pytest

import few

pytest.importorskip("sklearn")


def test_networks_are_trained_by_the_recipe_and_shown(tmp_path, waves, environment):
    waves("CBF", 12)
    cases = few.cases(Namespace(data=tmp_path, quick=True))
    found = [{"case": case, **measure(), **environment} for case, measure in cases.items()]
    assert [one["case"] for one in found] == [f"CBF, {method}" for method in few.METHODS]
    assert found[0]["accuracy"] == 1.0 and all(one["per class"] == 6 for one in found)
    assert "| CBF | 6 | 100.0 (" in few.tables(found)["few"]
