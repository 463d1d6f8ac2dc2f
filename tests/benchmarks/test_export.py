"""Exported programs as the benchmark measures them, and the program that chips run, here."""

import shutil

import numpy as np
import pytest
import torch

import anharmonic as ah
import export
from anharmonic.export import write_c
from harness import targets
from harness.targets import Program

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
    targets.copy_main(program, "here.c", samples, answers)
    program.run("gcc", "-std=c99", "here.c", "model.c", "-lm", "-o", "here")
    raw, counted = targets.said(program, program.run("./here"), len(x))
    assert counted == 2 * 7
    np.testing.assert_array_equal(raw, [program.raw(one) for one in samples])


@needs_gcc
def test_resonators_are_measured_and_shown(measured):
    (found,) = measured("export", "resonators")
    assert all(one["error"] < 1e-3 and one["accuracy"] > 80 for one in found["programs"])
    text = export.tables([found])["export"]
    assert "| resonators | C, double |" in text and "are equal bit for bit" in text
