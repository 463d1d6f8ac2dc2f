"""What ``import anharmonic`` brings along, seen in a fresh process."""

import subprocess
import sys

import anharmonic

CODE = """
import sys
before = set(sys.modules)
import torch, numpy, safetensors.torch
torch_brings = set(sys.modules)
import anharmonic
new = {m.split(".")[0] for m in set(sys.modules) - torch_brings}
print(" ".join(sorted(new)))
"""


def test_import_loads_nothing_else():
    result = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True
    )
    standard = set(sys.stdlib_module_names)
    assert set(result.stdout.split()) - standard == {"anharmonic"}


def test_public_names_exist():
    for name in anharmonic.__all__:
        assert getattr(anharmonic, name) is not None
