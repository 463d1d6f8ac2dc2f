"""Programs as the benchmarks measure them, and the program that chips run, here."""

import shutil

import numpy as np
import pytest
import torch

import anharmonic as ah
import export
import microcontroller
from anharmonic.export import write_c
from harness import results, targets
from harness.targets import Program

pytest.importorskip("sklearn")

PLATFORM = """
#include <stdio.h>
static void put(const char *text) { fputs(text, stdout); }
static void start_clock(void) {}
static unsigned read_clock(void) { return 7; }
#include "main.c"
int main(void) { all(); return 0; }
"""
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")


@needs_gcc
@pytest.mark.parametrize(("weights", "answers"), [("float", False), ("int8", True)])
def test_what_chips_run_says_the_outputs_of_the_program(tmp_path, monkeypatch, weights, answers):
    torch.manual_seed(0)
    model = ah.SequenceModel("LEM", 2, 3, hidden_size=4).eval()
    x = np.random.default_rng(0).normal(size=(2, 9, 2)).astype(np.float32)
    write_c(model, tmp_path, weights=weights, calibration=list(x))
    program = Program(tmp_path, weights, 2, 3)
    samples = program.samples(x)
    shutil.copytree(targets.PROGRAMS, tmp_path / "programs")
    (tmp_path / "programs" / "here.c").write_text(PLATFORM)
    monkeypatch.setattr(targets, "PROGRAMS", tmp_path / "programs")
    targets.write_main(program, "here.c", samples, answers)
    program.run("gcc", "-std=c99", "here.c", "model.c", "-lm", "-o", "here")
    raw, counted = targets.said(program, program.run("./here"), len(x))
    assert counted == 2 * 7
    np.testing.assert_array_equal(raw, [program.raw(one) for one in samples])


@needs_gcc
def test_resonators_are_measured_and_shown(measured):
    (found,) = measured("export", "resonators")
    assert all(one["error"] < 1e-3 and one["accuracy"] > 80 for one in found["programs"])
    assert [one.get("state") for one in found["programs"]] == [None, 1040, 528]
    text = export.tables([found])["export"]
    assert "| resonators | C, double |" in text and "are equal bit for bit" in text


@needs_gcc
def test_the_program_of_minirocket_has_the_scores_of_the_model(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    waves = np.sin(np.array([0.3, 0.7, 1.2])[y][:, None] * np.arange(40))
    x = (waves + 0.3 * rng.normal(size=(30, 40))).astype(np.float32)
    model = microcontroller.MiniRocket(400).fit(x, y)
    assert model.transform(x).shape == (30, 4 * 84) and (model.predict(x) == y).all()
    model.write_c(tmp_path)
    program = Program(tmp_path, "float", 1, 3)
    scores = np.stack([program(one[:, None]) for one in x])
    # A response next to a bias may fall on either side of it.
    expected = model.transform(x) @ model.weights.T + model.intercept
    np.testing.assert_allclose(scores, expected, atol=0.02)


def test_without_the_tools_of_the_chip_the_accuracy_is_shown():
    stored = results.read("microcontroller")[0]
    found = {key: stored[key] for key in ("case", "machine", "versions")} | {"accuracy": 0.75}
    text = microcontroller.tables([found])["microcontroller"]
    assert f"| {stored['case']} | 75.0 % | – | – | – | – |" in text
