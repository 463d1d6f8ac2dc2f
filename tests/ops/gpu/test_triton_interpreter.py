"""Runs ``test_triton.py`` through Triton's interpreter, in a process of its own."""

import re
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="triton is not installed")
CODE = """
import sys
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-m", *sys.argv[1:]]))
"""


@pytest.mark.parametrize(
    ("cases", "fewest"), [("not slow", 46), pytest.param("", 60, marks=pytest.mark.slow)]
)
def test_everything_through_the_interpreter(cases, fewest, run_python):
    environment = {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "", "PYTEST_ADDOPTS": ""}
    done = run_python(CODE, cases, Path(__file__).with_name("test_triton.py"), **environment)
    print(done.stdout[-6000:], done.stderr[-2000:])
    assert done.returncode == 0
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= fewest
