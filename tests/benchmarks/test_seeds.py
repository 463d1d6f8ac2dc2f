"""The worst of ten seeds."""

from argparse import Namespace

import seeds


def test_a_seed_is_trained_by_the_recipe_and_the_worst_is_shown(environment, monkeypatch):
    monkeypatch.setattr(seeds, "MODELS", {"digits": ("CoRNN", "UnICORNN")})
    cases = seeds.cases(Namespace(quick=True))
    assert len(cases) == 2 * len(seeds.SEEDS)
    one = cases["digits, UnICORNN, seed 3"]()
    assert (one["task"], one["model"], one["seed"]) == ("digits", "UnICORNN", 3)
    found = [{**one, **environment, "test": score} for score in (80.0, 82.0, 75.0)]
    assert "| digits | UnICORNN | 3 | 79.0 | 75.0 |" in seeds.tables(found)["seeds"]
