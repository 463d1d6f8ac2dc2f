"""The C pool and workspace, compiled alone: threads, nesting, forks, Python threads, DataLoader."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CSRC = HERE.parents[1] / "src" / "anharmonic" / "ops" / "csrc"
COMPILER = shutil.which(os.environ.get("CC", "cc"))
pytestmark = pytest.mark.skipif(
    COMPILER is None or sys.platform == "win32", reason="needs a C compiler"
)


def compiled(target, *flags):
    sources = [HERE / "exercise.c", CSRC / "pool.c", CSRC / "workspace.c"]
    always = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{CSRC}"]
    command = [COMPILER, *always, *flags, *sources, "-pthread", "-lm", "-o", target]
    subprocess.run([str(word) for word in command], check=True)
    return target


def test_the_c_program_ends_well(tmp_path):
    program = compiled(tmp_path / "exercise")
    result = subprocess.run([program, "5"], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr


PYTHON = """
import ctypes, multiprocessing, sys, threading
from torch.utils.data import DataLoader

library = ctypes.CDLL(sys.argv[1])

def often():
    for n in range(300):
        library.check_each_once(n, 4)

class Data:
    def __len__(self):
        return 8
    def __getitem__(self, index):
        library.threads_work_together(5)
        often()
        return index

threads = [threading.Thread(target=often) for _ in range(4)]
for thread in threads:
    thread.start()
context = multiprocessing.get_context("fork")
children = [context.Process(target=Data().__getitem__, args=(0,)) for _ in range(4)]
for child in children:
    child.start()
for one in (*threads, *children):
    one.join()
assert [child.exitcode for child in children] == [0] * 4
loader = DataLoader(Data(), num_workers=2, multiprocessing_context="fork")
print(sum(int(batch) for batch in loader))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Python forks safely on Linux only")
def test_python_threads_forks_and_data_loader_workers(tmp_path, run_python):
    library = compiled(tmp_path / "exercise.so", "-shared", "-fPIC")
    done = run_python(PYTHON, library)
    assert (done.returncode, done.stdout) == (0, "28\n"), done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the sanitizers' target is for Linux")
def test_sanitizers_find_nothing():
    command = [sys.executable, HERE.parent / "sanitize.py"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert result.returncode == 0, result.stdout + result.stderr
