"""The C library is found and loaded, or the reference says why not; backends are chosen."""

import ctypes
import ctypes.util
import functools
import os
import platform
import re
import shutil
import sys
import threading
from pathlib import Path

import pytest
import torch

import anharmonic as ah
from anharmonic import ops
from anharmonic.ops import backend as backends
from anharmonic.ops import library, sequence

COMPILER = shutil.which(os.environ.get("CC", "cc"))
needs_library = pytest.mark.skipif(
    library.library() is None, reason=f"needs the C library: {library.why_not()}"
)


@pytest.mark.skipif(
    COMPILER is None or sys.platform == "win32", reason="no C compiler here: the reference runs"
)
def test_where_a_compiler_is_there_is_the_library():
    assert library.library() is not None, library.why_not()


@needs_library
@pytest.mark.skipif(not os.path.exists("/proc/cpuinfo"), reason="the system does not list flags")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are flags of x86-64")
def test_instruction_sets_are_those_of_the_processor():
    flags = set(re.search(r"^flags\s*:(.*)", Path("/proc/cpuinfo").read_text(), re.M)[1].split())
    wanted = {"avx2": {"avx2", "fma"}, "avx512": {"avx512f", "avx512dq", "avx512bw", "avx512vl"}}
    for name, needed in wanted.items():
        assert needed <= flags or name not in library.available()
    assert "avx2" in library.available() or not wanted["avx2"] <= flags


@needs_library
@pytest.mark.parametrize("name", [*library.available()[:1], ""])
def test_an_instruction_set_is_that_forced_or_the_best(name, run_python):
    code = "from anharmonic.ops.library import *; print(instruction_set(), *available())"
    words = run_python(code, ANHARMONIC_INSTRUCTION_SET=name).stdout.split()
    assert words[0] == (name or words[-1])
    assert tuple(words[1:]) == library.available()


@needs_library
@pytest.mark.parametrize("name", ["AVX2", "é"])
def test_an_instruction_set_that_cannot_run_is_one_error(name, run_python):
    code = "from anharmonic.ops import library; library.library()"
    done = run_python(code, ANHARMONIC_INSTRUCTION_SET=name, PYTHONIOENCODING="utf-8")
    assert done.returncode == 1 and "ANHARMONIC_INSTRUCTION_SET must be one that" in done.stderr
    assert f"run: {', '.join(map(repr, library.available()))}; got {name!r}; choose" in done.stderr


def test_without_a_library(library_at):
    library_at(None)
    assert (library.library(), library.instruction_set(), library.available()) == (None, None, ())
    with pytest.raises(ValueError, match="an instruction set needs the compiled C library; got"):
        library.select("avx2")
    library_at(None, ANHARMONIC_INSTRUCTION_SET="avx2")
    with pytest.raises(ValueError, match=r"ANHARMONIC_INSTRUCTION_SET needs .*'avx2' without it"):
        library.library()


@pytest.mark.parametrize(
    "file, words",
    [
        (None, "libanharmonic.so was not built when the package was installed"),
        (__file__, "cannot be loaded ("),
        (ctypes.util.find_library("m"), "an_forward"),
    ],
    ids=["none", "no library", "another library"],
)
def test_a_file_that_is_not_the_library(library_at, file, words):
    library_at(file)
    assert library.library() is None
    assert words in library.why_not()


@needs_library
@pytest.mark.parametrize("name", ["Call", "GraphCall", "ResonatorCall", "one more"])
def test_a_library_of_another_version(library_at, monkeypatch, name):
    """The first two fields of a structure have each other's place, or it has one more."""
    kind = getattr(library, name, library.Call)
    (first, *a), (second, *b), *rest = kind._fields_
    fields = [(second, *a), (first, *b), *rest]
    if name == "one more":
        fields = [*kind._fields_, ("more", ctypes.c_int64)]
    made = type(kind.__name__, (ctypes.Structure,), {"_fields_": fields})
    monkeypatch.setattr(library, kind.__name__, made)
    library_at(library.path())
    assert library.library() is None
    assert "built from another version" in library.why_not()


WITHOUT = """
import ctypes, warnings, torch

load = ctypes.CDLL
def refuse(name, *rest, **more):
    if "libanharmonic" in str(name):
        raise OSError("no such thing")
    return load(name, *rest, **more)
ctypes.CDLL = refuse

import anharmonic
layer, x = anharmonic.LEM(2, 3), torch.zeros(5, 1, 2)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    with anharmonic.use_backend("reference"):
        layer(x)  # as wished
    layer.to(torch.bfloat16)(x.bfloat16())  # nothing fast would run this
    print(len(said))
    for _ in range(3):
        output, _ = layer.to(torch.float32)(x)
assert output.shape == (5, 1, 3)
for one in said:
    print(one.category.__name__, one.message)
"""


def test_without_a_library_the_reference_runs_and_says_so_once(run_python):
    done = run_python(WITHOUT, ANHARMONIC_INSTRUCTION_SET="", ANHARMONIC_BACKEND="")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0\nUserWarning fast CPU kernels need the compiled C library")
    assert "the slower reference runs instead" in done.stdout
    assert done.stdout.count("UserWarning") == 1


THREADS = """
import os, threading
from anharmonic.ops import library
start, found = threading.Barrier(8), []
def ask():
    start.wait()
    found.append(library.instruction_set())
threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
child = os.fork()
if child == 0:
    os._exit(library.instruction_set() != found[0])
print(len(found), len(set(found)), os.waitpid(child, 0)[1])
"""


@needs_library
def test_several_threads_load_it_and_a_forked_child_has_it(run_python):
    assert run_python(THREADS).stdout == "8 1 0\n"


GATES = ("an_gate", "an_gate_backward")


@needs_library
@pytest.mark.parametrize(
    "name, field",
    [
        *((name, size) for name in ("an_neighbour_sum", *GATES) for size in ("nodes", "features")),
        *((name, "power") for name in GATES),
    ],
)
def test_graphs_of_a_negative_size_are_refused(name, field):
    call = library.GraphCall(real_bytes=4, threads=1, nodes=3, features=2, power=1.0)
    setattr(call, field, -1)
    assert getattr(library.library(), name)(ctypes.byref(call)) == 3


# ---- backends ----
ZERO, ONES = torch.zeros(2, 2, 3), torch.ones(4, 2, 1)
LEM = [ops.LEMWeights(torch.ones(12, F), torch.ones(9, 3), torch.eye(3), None) for F in (1, 3)]
call = functools.partial(ops.lem, ONES, LEM, ZERO, ZERO, dt=0.5)


def test_names():
    assert "reference" in ops.available_backends("lem")
    torch.testing.assert_close(call(), call(backend="reference"))
    with pytest.raises(ValueError, match=r"backend must be one of 'auto', .*'reference'.*'fast'"):
        call(backend="fast")
    with pytest.raises(ValueError, match=r"kernel must be one of .*did you mean 'lem'"):
        ops.available_backends("lemm")


@pytest.fixture
def native(monkeypatch):
    """The calls of the C library, each of a whole stack."""
    calls, run = [], sequence.native.run
    monkeypatch.setattr(sequence.native, "run", lambda *a, **w: calls.append(w) or run(*a, **w))
    return calls


@needs_library
def test_auto_takes_the_fast_one_where_it_fits(native):
    call()
    call(output="last", memory="chunked")
    assert [(words["return_sequence"], words["memory"]) for words in native] == [
        (True, "auto"),
        (False, "chunked"),
    ]
    call(backend="reference")
    torch.func.vmap(lambda dt: call(elapsed=dt)[0])(torch.ones(2, 4, 2))
    with torch.autograd.forward_ad.dual_level():
        call()
    assert len(native) == 2


@needs_library
def test_forced_backend_says_why_it_cannot(native):
    words = r"backend 'native' must be able to run.*; got torch.float32 beside torch.float64; use"
    with pytest.raises(ValueError, match=words):
        call(backend="native", elapsed=torch.ones(4, 2, dtype=torch.float64))
    weights = [ops.SkewWeights(torch.ones(6, 1), torch.ones(6, 3), None)]
    with pytest.raises(ValueError, match="backend must be one of"):
        ops.skew(ONES, weights, ZERO[:1], dt=0.1, backend="native")


def test_missing_backend_says_why(monkeypatch):
    missing = {"native": "no compiler was found", "triton": ""}
    monkeypatch.setattr(backends, "_MISSING", missing)
    for run in (call, lambda backend: ah.use_backend(backend).__enter__()):
        with pytest.raises(ValueError, match=r"'native' must be available.*no compiler was found"):
            run(backend="native")


@needs_library
def test_use_backend(native):
    with ah.use_backend("reference"):
        call()
        assert not native
        with ah.use_backend("native"):
            call()
        call(backend="native")  # what is said at the call wins
        other = threading.Thread(target=call)
        other.start()
        other.join()
        assert len(native) == 3
    call()
    with pytest.raises(RuntimeError), ah.use_backend("reference"):
        raise RuntimeError
    call()
    assert len(native) == 5
    with pytest.raises(ValueError, match=r"must be one of .*'natve'; did you mean 'native'"):
        ah.use_backend("natve").__enter__()


def test_environment_variable(run_python):
    code = "import torch, anharmonic as ah; ah.LEM(1, 2)(torch.zeros(1, 1, 1))"
    for value, error in (("reference", ""), ("refrence", "did you mean 'reference'")):
        done = run_python(code, ANHARMONIC_BACKEND=value)
        assert (done.returncode == 0) == (not error)
        assert error in done.stderr


def test_compiled_code_follows():
    setting = backends.ContextSetting("setting", "a")
    compiled = torch.compile(
        lambda x: x + 1 if setting.get() == "a" else x * 10, backend="aot_eager", fullgraph=True
    )
    x = torch.full((1,), 5.0)
    found = [compiled(x).item()]
    with setting.set_to("b"):
        found.append(compiled(x).item())
    found.append(compiled(x).item())
    assert found == [6.0, 50.0, 6.0]
