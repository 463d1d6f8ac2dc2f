"""Runs ``test_triton.py`` through Triton's interpreter, in a process of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="triton is not installed")


@pytest.mark.parametrize(
    ("cases", "fewest"), [("not slow", 55), pytest.param("", 60, marks=pytest.mark.slow)]
)
def test_everything_through_the_interpreter(cases, fewest):
    tests = Path(__file__).with_name("test_triton.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", cases]
    command.append(str(tests))
    environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    print(done.stdout[-6000:], done.stderr[-2000:])
    assert done.returncode == 0
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= fewest
