"""What ``import anharmonic`` brings along, seen in a fresh process."""

import subprocess
import sys
from graphlib import TopologicalSorter

import grimp
import pytest

import anharmonic

CODE = """
import sys, time
import torch, numpy, safetensors.torch

before, start = set(sys.modules), time.process_time()
import anharmonic as ah
seconds = time.process_time() - start
print(*{name.split(".")[0] for name in set(sys.modules) - before})

output, _ = ah.LEM(1, 2)(torch.ones(3, 1, 1))
output.sum().backward()
print("torch._dynamo" in sys.modules)

start = time.process_time()
import anharmonic.train
print(seconds + time.process_time() - start)
for model in ah.list_models():
    anharmonic.train.Run("adding", model)
print(*{name.split(".")[0] for name in sys.modules})
"""
HEAVY = {"lightning", "torchmetrics", "cattrs", "sympy", "matplotlib", "pandas", "pyarrow"}
HEAVY |= {"sklearn", "scipy", "optuna", "torch_geometric", "torchdiffeq", "tyro", "onnx"}


def test_imports_load_nothing_else_and_take_less_than_a_second():
    for _ in range(3):  # other processes may slow one down
        done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        of_package, has_compiler, seconds, of_training = done.stdout.splitlines()
        assert set(of_package.split()) - set(sys.stdlib_module_names) == {"anharmonic"}
        assert has_compiler == "False"
        assert not HEAVY & set(of_training.split())
        if float(seconds) < 1:
            break
    assert float(seconds) < 1


def test_public_names_exist():
    for name in anharmonic.__all__:
        assert getattr(anharmonic, name) is not None


@pytest.mark.parametrize("package", ["anharmonic", "anharmonic_papers"])
def test_no_files_import_each_other_in_a_circle(package):
    pytest.importorskip(package)
    graph = grimp.build_graph(package)
    imports = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    TopologicalSorter(imports).prepare()  # a circle is a CycleError, which names its files
