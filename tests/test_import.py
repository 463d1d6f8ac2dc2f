"""What imports bring along, seen in fresh processes, what lazy packages name, and freed memory."""

import importlib
import pkgutil
import subprocess
import sys
from graphlib import TopologicalSorter

import grimp
import pytest

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
ah.GraphCON, ah.GradientGating
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


@pytest.mark.parametrize("package", ["anharmonic", "anharmonic_papers"])
def test_no_files_import_each_other_in_a_circle(package):
    pytest.importorskip(package)
    graph = grimp.build_graph(package)
    imports = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    TopologicalSorter(imports).prepare()  # a circle is a CycleError, which names its files


@pytest.mark.parametrize("part", ["", ".data", ".diagnostics", ".nn", ".pages"])
def test_exports_what_it_names(part):
    name = f"anharmonic{part}"
    package = importlib.import_module(name)
    names, modules = {*package.__all__}, {m.name for m in pkgutil.iter_modules(package.__path__)}
    assert [n for n in package.__all__ if not hasattr(package, n)] == []
    assert dir(package) == sorted(names)
    assert not modules & names  # importing a submodule would put it in the place of the name
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = package.nothing


def test_packages_are_imported_when_they_are_used():
    code = """
import sys
from anharmonic.cli.main import main
assert main(["--help"]) == 0 and not {"torch", "numpy"} & set(sys.modules)
import anharmonic, anharmonic.nn, anharmonic.data
assert "torch" not in sys.modules
from anharmonic.nn import LEM
assert anharmonic.LEM is LEM
assert "anharmonic.nn.graph.graphcon" not in sys.modules
import anharmonic.pages.plots
assert main(["list"]) == 0
heavy = {"torchmetrics", "matplotlib", "pandas", "sklearn", "tyro"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


FREED = """
import os
from anharmonic._processes import return_large_blocks

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

return_large_blocks()
largest = bytearray(20_000_000)
del largest  # glibc now keeps blocks up to this size
pairs = [(bytearray(2_000_000), bytearray(200_000)) for _ in range(20)]
before = resident()
between = [small for large, small in pairs]  # the heap cannot shrink from its end
del pairs
print(before - resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc")
def test_large_blocks_are_returned():
    freed = subprocess.run([sys.executable, "-c", FREED], stdout=subprocess.PIPE, check=True)
    assert int(freed.stdout) > 35_000_000
