"""What ``import anharmonic`` brings along, seen in a fresh process."""

import sys
from graphlib import TopologicalSorter

import grimp
import pytest

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


def test_import_loads_nothing_else(run_python):
    result = run_python(CODE)
    assert result.returncode == 0, result.stderr
    standard = set(sys.stdlib_module_names)
    assert set(result.stdout.split()) - standard == {"anharmonic"}


def test_public_names_exist():
    for name in anharmonic.__all__:
        assert getattr(anharmonic, name) is not None


@pytest.mark.parametrize("package", ["anharmonic", "anharmonic_papers"])
def test_no_files_import_each_other_in_a_circle(package):
    pytest.importorskip(package)
    graph = grimp.build_graph(package)
    imports = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    TopologicalSorter(imports).prepare()  # a circle is a CycleError, which names its files
