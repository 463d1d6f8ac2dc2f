"""MiniRocket as a program, and the table of costs on a chip."""

import shutil

import numpy as np
import pytest

import microcontroller
from harness import results
from harness.minirocket import MiniRocket
from harness.targets import Program

pytest.importorskip("sklearn")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_the_program_of_minirocket_has_the_scores_of_the_model(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    waves = np.sin(np.array([0.3, 0.7, 1.2])[y][:, None] * np.arange(40))
    x = (waves + 0.3 * rng.normal(size=(30, 40))).astype(np.float32)
    model = MiniRocket(400).fit(x, y)
    assert model.transform(x).shape == (30, 4 * 84) and (model.predict(x) == y).all()
    model.write_c(tmp_path, 40)
    program = Program(tmp_path, "float", 1, 3)
    scores = np.stack([program(one[:, None]) for one in x])
    # A response next to a bias may fall on either side of it.
    expected = model.transform(x) @ model.weights.T + model.intercept
    np.testing.assert_allclose(scores, expected, atol=0.02)


def test_costs_are_shown_with_and_without_the_tools_of_the_chip():
    stored = results.read("microcontroller")[0]
    costs = {"flash": 5000, "state": 600, "step": 100, "answered": 110, "accuracy": 0.5}
    without = {key: value for key, value in stored.items() if key not in costs}
    found = [
        {**without, "case": "10 resonators", "accuracy": 0.75},
        {**stored, "case": "20 resonators", **costs},
        {**stored, "case": "MiniRocket, 84 features", **costs},
    ]
    text = microcontroller.tables(found)["microcontroller"]
    assert "| 10 resonators | 75.0 % | – | – | – | – |" in text
    assert "| 20 resonators | 50.0 % | 5.0 | 600 | 100 | 110 |" in text
    assert "| MiniRocket, 84 features | 50.0 % | 5.0 | 600 | 100 | 6,400 |" in text
