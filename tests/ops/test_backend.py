import functools
import threading

import pytest
import torch

import anharmonic as ah
from anharmonic import ops
from anharmonic.ops import backend as backends
from anharmonic.ops import library, sequence
from anharmonic.ops.backend import ContextSetting

ZERO, ONES = torch.zeros(1, 2, 3), torch.ones(4, 2, 1)
LEM = [ops.LEMWeights(torch.ones(12, 1), torch.ones(9, 3), torch.eye(3), None)]
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
    """The calls of the C library."""
    if library.library() is None:
        pytest.skip(f"needs the C library: {library.why_not()}")
    calls, run = [], sequence.native.run
    monkeypatch.setattr(sequence.native, "run", lambda *a, **w: calls.append(w) or run(*a, **w))
    return calls


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


def test_forced_backend_says_why_it_cannot(native):
    words = r"backend 'native' must be able to run.*; got torch.float32 beside torch.float64; use"
    with pytest.raises(ValueError, match=words):
        call(backend="native", elapsed=torch.ones(4, 2, dtype=torch.float64))
    weights = [ops.SkewWeights(torch.ones(6, 1), torch.ones(6, 3), None)]
    with pytest.raises(ValueError, match="backend must be one of"):
        ops.skew(ONES, weights, ZERO, dt=0.1, backend="native")


def test_missing_backend_says_why(monkeypatch):
    missing = {"native": "no compiler was found", "triton": ""}
    monkeypatch.setattr(backends, "_MISSING", missing)
    for run in (call, lambda backend: ah.use_backend(backend).__enter__()):
        with pytest.raises(ValueError, match=r"'native' must be available.*no compiler was found"):
            run(backend="native")


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
    setting = ContextSetting("setting", "a")
    compiled = torch.compile(
        lambda x: x + 1 if setting.get() == "a" else x * 10, backend="aot_eager", fullgraph=True
    )
    x = torch.full((1,), 5.0)
    found = [compiled(x).item()]
    with setting.set_to("b"):
        found.append(compiled(x).item())
    found.append(compiled(x).item())
    assert found == [6.0, 50.0, 6.0]
