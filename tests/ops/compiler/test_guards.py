"""Where a compiled step could give a wrong answer, the loop runs, and says so."""

import math
import pickle
import random
import shutil
import warnings
from importlib.readers import MultiplexedPath

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from anharmonic.ops import use_backend
from anharmonic.ops.compiler import build, cache
from anharmonic.ops.compiler.kernel import ALL, NOTHING, STARTS
from anharmonic.ops.compiler.recurrence import explain, recurrence
from anharmonic.ops.compiler.trace import Unsupported
from anharmonic.ops.compiler.values import Values

H = 8


def data(batch=4, steps=6):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(steps, batch, H, generator=generator)
    return x, torch.zeros(batch, H), {"a": torch.rand(H, generator=generator).requires_grad_()}


@pytest.fixture
def same_as_loop(values):
    """Checks that a recurrence gives what its loop gives; whether it is compiled."""

    def check(run, *call):
        found = []
        for one in (recurrence(run.step, compiled=False), run):
            torch.manual_seed(0)
            found.append(values(one, *(call or data())))
        for right, ours in zip(*found, strict=True):
            torch.testing.assert_close(ours, right, rtol=1e-5, atol=1e-6, equal_nan=True)
        return run._kernel is not None

    return check


def _tanh(u, h, w):
    return torch.tanh(h * w["a"] + u)


class Settings:
    """What steps read outside of their arguments."""

    factor = None


# ---- what is compiled ----
def _in_place(u, h, w):
    h = h.clone()
    h[:, 0] = 0.5
    h[:, 2:4] *= w["a"][2:4]
    h += torch.tanh(u)
    return h.mul_(w["a"])


_GATES = torch.linspace(-1, 1, 3 * H * H).view(3 * H, H)
_FROZEN = torch.nn.Linear(H, H).requires_grad_(False)


@pytest.mark.parametrize(
    "step",
    [
        _in_place,
        lambda u, h, w: torch.where(torch.isnan(h), u, torch.roll(h, 3, 1) * w["a"] + u),
        lambda u, h, w: torch.logaddexp(h * w["a"], u) - 1,
        lambda u, h, w: torch.gru_cell(u, h, _GATES, _GATES) * w["a"],
        lambda u, h, w: torch.tanh(h * w["a"]) + (u - 9).amax(1, keepdim=True) / 9,
        lambda u, h, w: torch.tanh(h * w["a"]) + (u + 9).amin(1, keepdim=True) / 9,
        lambda u, h, w: torch.tanh(h * w["a"]) + (0.5 * u) ** 3,
        lambda u, h, w: torch.tanh(h * w["a"]) + u * torch.relu(u).bool(),
        lambda u, h, w: torch.tanh(h * w["a"]) + u * torch.logical_xor(u.relu(), h.relu()),
        lambda u, h, w: torch.tanh(h * w["a"] + u - u.var(-1, keepdim=True) + u.std(1)[:, None]),
        lambda u, h, w: (h * w["a"] + u).view(len(h), -1),
        lambda u, h, w: torch.tanh(_FROZEN(h) + u * w["a"]),
        lambda u, h, w: h * w["a"] + u if h.shape[0] < 100 else h,
        lambda u, h, w: torch.tanh(h * w["a"] + u).detach(),
        lambda u, h, w: torch.tanh(h.detach() * w["a"] + u),
        lambda u, h, w: u,
        lambda u, h, w: torch.ones_like(h),
        lambda u, h, w: w["a"].expand(h.shape),
        # Python asks a Parameter first: of x < w it makes w > x, and of a tensor it does not.
        lambda u, h, w: torch.where(torch.tanh(h * w["a"] + u) < w["b"], h + u * w["b"], h - 1),
        # The gradient of an unused column is 0 times what forward computed, which is saved.
        *(
            lambda u, h, w, part=part: (
                torch.tanh((u * (h @ w["W"]))[:, part].sum(1, keepdim=True) + 0.5 * h) + w["a"]
            )
            for part in (slice(1, None), slice(0, 1))
        ),
    ],
)
def test_runs_compiled(same_as_loop, step):
    """Two weights are one Parameter."""
    x, h, w = data()
    a = torch.nn.Parameter(w["a"].detach())
    W = torch.linspace(-9, 9, H * H).view(H, H).sin().requires_grad_()
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # else what PyTorch says of a variance is said once in a process
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert same_as_loop(recurrence(step), x, h, {"a": a, "b": a, "W": W})
    finally:
        torch.set_warn_always(always)


# ---- what runs as the loop ----
def _cumulative(u, h, w):
    return torch.cumsum(h * w["a"], 1) + u


def _without_gradient(u, h, w):
    with torch.no_grad():
        gate = torch.sigmoid(h * w["a"])
    return gate * u + h * w["a"]


class _Spike(torch.autograd.Function):
    slope = 1.0

    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx, grad):
        return grad / (1 + _Spike.slope * ctx.saved_tensors[0].abs()) ** 2


_OUTSIDE, _OWN = torch.zeros(H), torch.rand(H, requires_grad=True)
_SPARSE = torch.eye(H).to_sparse()
HERE = r"\(test_guards.py, line \d+\)"


@pytest.mark.parametrize(
    "step, reason",
    [
        (
            lambda u, h, w: (h if h.sum() > 0 else u) * w["a"],
            rf"branches on the value of a tensor {HERE}; .*where",
        ),
        (lambda u, h, w: u * w["a"].sum().item(), rf"number of a tensor {HERE}"),
        (lambda u, h, w: u + torch.tensor(h.detach().numpy()), rf"number of a tensor {HERE}"),
        (lambda u, h, w: u - h[h > 0].mean(), "indexing gives as many .*torch.where"),
        (_cumulative, rf"^_cumulative .* cumsum is not compiled {HERE}"),
        (
            lambda u, h, w: h * w["a"] + u - h.mean(0, keepdim=True),
            r"mean reads all sequences .*dim=1",
        ),
        (lambda u, h, w: u / h.norm(), "norm reads all sequences of the batch at once"),
        (lambda u, h, w: h * w["a"] + u / h.shape[0], "number of sequences"),
        (lambda u, h, w: u + torch.ones(4, H), r"number of sequences, and with 13 seq.*RuntimeErr"),
        (lambda u, h, w: F.dropout(h, 0.1) + u, "dropout draws random numbers"),
        (lambda u, h, w: h * w["a"] + u * torch.dropout(h, 0.5, True), "draws random numbers"),
        (lambda u, h, w: h * w["a"] + u * torch.rand_like(h), "draws random numbers"),
        (lambda u, h, w: h * w["a"] + u * torch.rand(H), "draws random numbers"),
        (lambda u, h, w: h * w["a"] * random.random() + u * 0, "called again"),
        (lambda u, h, w: torch.fft.fft(h).real + u, "fft computes rows in torch.complex64.*imag"),
        (lambda u, h, w: torch.polar(h, u).real, "polar computes rows in torch.complex64.*imagin"),
        (lambda u, h, w: (torch.diag(w["a"]) @ h.T).T + u, r"write h @ W.T instead"),
        (lambda u, h, w: h * w["a"].repeat(len(h), 1), "repeat copies weights.*broadcast"),
        (lambda u, h, w: torch.stack([h[k] + u[k] for k in range(len(h))]), "one row"),
        (lambda u, h, w: (_SPARSE @ h.T).T + u, r"uses a sparse tensor; .*to_dense"),
        (lambda u, h, w: h * w["a"] + torch.round(u, decimals=1), "round is not compiled"),
        (lambda u, h, w: h * w["a"] * torch.log(-1 - u * u), "its results are NaN or infinite"),
        (_without_gradient, rf"turns gradients off.*{HERE}"),
        (lambda u, h, w: 0.5 * h + _Spike.apply(h * w["a"] + u), rf"or defines its own.*{HERE}"),
        (lambda u, h, w: h * w["a"] * _OWN + u, "give it as a weight"),
    ],
)
def test_a_step_that_is_not_compiled_runs_as_the_loop_and_says_why(same_as_loop, step, reason):
    with pytest.raises(ValueError, match=reason):
        recurrence(step, compiled=True)(*data())
    with pytest.warns(UserWarning, match=f"(?s){reason.lstrip('^')}") as said:
        assert not same_as_loop(recurrence(step))
    assert "runs as a loop" in str(said[0].message)


@pytest.mark.parametrize("step", [lambda u, h, w: h.add_(u), lambda u, h, w: u[:, :1].mul_(2) + h])
def test_a_step_that_changes_its_arguments_gets_no_warning_of_another_reason(step):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="leave its input and its old state"):
            recurrence(step)(*data())


def test_a_long_program_is_said_once_before_it_is_compiled(monkeypatch):
    def stop(*arguments):
        raise Unsupported("stop")

    monkeypatch.setattr(build, "_build", stop)
    with pytest.warns(UserWarning, match="200,000 characters") as said:
        for level in ("-O3", "-O1"):
            monkeypatch.setattr(build, "LEVEL", "-O3")
            with pytest.raises(Unsupported, match="stop"):
                build.load("x" * 200_000, "float", level)
    assert len(said) == 1


def test_a_compiled_step_runs_as_the_loop_for_a_batch_that_it_tells_apart(same_as_loop):
    step = recurrence(lambda u, h, w: h * w["a"] + u if h.shape[0] < 100 else h)
    assert same_as_loop(step)
    with pytest.warns(UserWarning, match="number of sequences"):
        assert not same_as_loop(step, *data(150))


@pytest.mark.filterwarnings("ignore:.*is not compiled")
@pytest.mark.parametrize("asks", [True, False])
def test_hooks_on_gradients(same_as_loop, asks):
    def step(u, h, w):
        new = torch.tanh(h * w["a"] + u)
        if not asks or new.requires_grad:
            new.register_hook(lambda gradient: gradient * Settings.factor)
        return new

    run = recurrence(step)
    for Settings.factor in (1.0, 0.1):
        same_as_loop(run)
    with pytest.raises(ValueError, match="hook"):
        recurrence(step, compiled=True)(*data())


@pytest.mark.filterwarnings("ignore:.*is not compiled")
def test_steps_that_differ_only_in_their_gradients(same_as_loop):
    def step(off):
        def step(u, h, w):
            with torch.set_grad_enabled(not off):
                gate = torch.sigmoid(h * w["a"])
            return gate * u + 0.5 * h * w["a"]

        return step

    for off in (False, True):
        same_as_loop(recurrence(step(off)))


@pytest.mark.parametrize("wrong", range(3), ids=["inputs", "state", "weights"])
def test_two_dtypes(same_as_loop, wrong):
    x, h, w = data()
    tensors = [x, h, w["a"].detach()]
    tensors[wrong] = tensors[wrong].double()
    run = recurrence(lambda u, h, w: (h * w["a"] + u).to(h.dtype))
    assert not same_as_loop(run, *tensors[:2], {"a": tensors[2]}) and "beside" in run.explain()


# ---- what changes between calls ----
@pytest.mark.parametrize(
    "read",
    [
        (0.5, 0.1, 0.5),
        (torch.full((H,), 0.5), torch.full((H,), 0.1)),
        (torch.tensor([0.5]), torch.linspace(0, 1, H)),
    ],
    ids=["numbers", "tensors", "shapes"],
)
def test_what_a_step_reads_outside_may_change(same_as_loop, read):
    run = recurrence(lambda u, h, w: torch.tanh(h * w["a"] * Settings.factor - u))
    for Settings.factor in read:
        assert same_as_loop(run)
    if isinstance(Settings.factor, torch.Tensor):
        Settings.factor.mul_(2)
        assert same_as_loop(run)
        output, _ = run(*data())
        Settings.factor.mul_(2)
        with pytest.raises(RuntimeError, match="inplace"):
            output.sum().backward()
        Settings.factor.data = torch.tensor([0.3])
        assert same_as_loop(run)


def test_many_numbers_of_which_each_is_used_twice(monkeypatch):
    monkeypatch.setattr(cache, "_MOST_NEW", 2)
    run = recurrence(lambda u, h, w: torch.tanh(h * w["a"] * Settings.factor + u))
    for Settings.factor in (0.1, 0.2, 0.3, 0.4):
        run(*data())
        run(*data())
        assert run._kernel is not None


def test_second_backward_after_another_forward():
    (x, h, w), run = data(), recurrence(_tanh)
    output = run(x, h, w)[0]
    first = torch.autograd.grad(output.sum(), w["a"], retain_graph=True)
    run(torch.randn_like(x), h, w)
    assert torch.equal(*first, *torch.autograd.grad(output.sum(), w["a"]))


# ---- forms and modes of a call ----
def test_forms_of_a_call():
    (x, h, w), run = data(), recurrence(_tanh)
    output, end = run(x, h, w)
    assert torch.equal(output[-1], end)
    assert torch.equal(run(x, h, w, output="last")[0], end)
    assert run(x, h, w, output="none")[0] is None
    turned = x.transpose(0, 1).contiguous().transpose(0, 1)  # batch first in memory
    first, carried = run(x[:2], h, w)
    others = [torch.cat([first, run(x[2:], carried, w)[0]]), run(turned, h, w)[0]]
    others += [run(x, h, {"a": w["a"].detach()})[0], pickle.loads(pickle.dumps(run))(x, h, w)[0]]
    with torch.no_grad():
        others.append(run(x, h, w)[0])
    assert all(torch.equal(other, output) for other in others)
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        run(x, h, w)[0].sum().backward()
    mapped = torch.func.vmap(lambda a: run(x, h, {"a": a})[0])(torch.stack([w["a"]] * 2))
    torch.testing.assert_close(mapped[1], output)


def test_the_order_of_keys_does_not_count():
    x, h, w = data()

    def step(u, s, w):
        return {"z": s["z"] + 1, "y": torch.tanh(s["y"] * w["a"] + u) - s["z"]}

    for compiled in (False, True):
        output, end = recurrence(step, compiled=compiled)(x, {"y": h, "z": h}, w)
        assert torch.equal(end["z"], torch.full_like(h, len(x)))
        assert torch.equal(output[-1], end["y"])


def test_autocast_is_off():
    step = recurrence(lambda u, h, w: torch.tanh(h @ torch.diag(w["a"]) + u))
    right = step(*data())[0]
    with torch.autocast("cpu"):
        for one in (step, recurrence(step.step, compiled=False)):
            torch.testing.assert_close(one(*data())[0], right)


def test_the_first_call_in_inference_mode_leaves_gradients(same_as_loop):
    run = recurrence(lambda u, h, w: torch.tanh(h * w["a"] - u), compiled=True)
    call = data()
    with torch.inference_mode():
        first = run(*call)[0]
    assert torch.equal(run(*call)[0], first)
    assert same_as_loop(run)


def test_the_first_call_within_a_checkpoint_compiles():
    (x, h, w), run = data(), recurrence(lambda u, h, w: torch.tanh(h * w["a"] - 3 * u))
    outputs = [checkpoint(run, x, h, w, use_reentrant=False)[0]]
    found = torch.autograd.grad(outputs[0].sum(), w["a"])
    assert run._kernel is not None
    torch.testing.assert_close(found, torch.autograd.grad(run(x, h, w)[0].sum(), w["a"]))


def test_threads_do_not_change_bits(values, same_bits_with_any_threads):
    call, run = data(batch=20, steps=100), recurrence(_tanh)
    same_bits_with_any_threads(lambda: values(run, *call))


def test_a_fading_state_ends_at_zero(same_bits_with_any_threads):
    x, h, w = torch.zeros(145, 64, 4), torch.zeros(64, 4), {"one": torch.ones(4)}
    x[0] = 1.0
    run = recurrence(lambda u, h, w: 0.5 * h + u * w["one"], compiled=True)
    same_bits_with_any_threads(lambda: run(x, h, w))
    output, _ = run(x, h, w)
    assert torch.equal(output[:127, 0, 0], 0.5 ** torch.arange(127.0))
    assert (output[127:] == 0).all()  # 2^-127 is below the smallest normal number
    assert torch.tensor(2.0**-126) * 0.5 > 0  # the caller's mode is as before


def test_a_long_sequence_saves_little_where_it_is_asked_to():
    run = recurrence(_tanh, compiled=True)
    run(*data())
    assert run._kernel.cut(10_000, 8, "stored", True).keep == ALL
    cut = run._kernel.cut(10_000, 8, "chunked", True)
    assert cut.keep == STARTS and cut.every < 10_000
    assert run._kernel.cut(10_000, 8, None, True).keep == NOTHING


def test_second_derivatives_are_refused_and_explain_tells_how_a_step_ran(capsys):
    x, h, w = data()
    run = recurrence(_tanh)
    explain(run)
    assert "not called" in capsys.readouterr().out
    output, _ = run(x, h, w)
    explain(run)
    assert "saved for every step: 1 tanh [8]" in capsys.readouterr().out
    with pytest.raises(RuntimeError, match=r"once.*use_backend\('reference'\)"):
        torch.autograd.grad(output.sum(), w["a"], create_graph=True)
    with use_backend("reference"):
        output, _ = run(x, h, w)
        (gradient,) = torch.autograd.grad(output.sum(), w["a"], create_graph=True)
    assert gradient.requires_grad and "'reference' is chosen" in run.explain()


# ---- numbers, and how results are compared ----
def test_numbers_are_told_apart_by_their_sign_and_nan_is_itself():
    values = Values()
    assert values.number(0.0, 3) is values.number(0.0, 3)
    assert values.number(-0.0, 3) is not values.number(0.0, 3)
    assert values.number(math.nan, 3) is values.number(math.nan, 3)


@pytest.mark.parametrize(
    "wrong", [(math.nan, math.nan), (math.inf, math.nan), (2, math.nan), (1, 1)]
)
def test_a_result_that_differs_does_not_agree(wrong):
    right, nothing = torch.tensor([1.0, 1.0, math.nan]), torch.full((2,), math.nan)
    assert cache._agree([right], [right], 1e-9)
    assert not cache._agree([nothing], [nothing], 1e-9)  # none is finite: they say nothing
    with pytest.raises(Unsupported, match="does not agree with the loop"):
        cache._agree([torch.tensor([1.0, *wrong])], [right], 1e-9)


# ---- the compiler and its folder ----
@pytest.fixture
def new_step(monkeypatch):
    """Runs a step that is new under other variables of the environment; also what it warned of."""

    def run(folder, **environment):
        for name, value in {build.FOLDER: folder, **environment}.items():
            monkeypatch.setenv(name, str(value))
        monkeypatch.setattr(cache, "_entries", type(cache._entries)())  # none is known yet
        step = recurrence(lambda u, h, w: torch.tanh(h * w + u))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            step(torch.ones(3, 2, 4), torch.zeros(2, 4), torch.ones(4))
        return step, [str(one.message) for one in seen]

    return run


ODD = """[ "$1" = --version ] && exit
echo "int x;" > "$TMPDIR/e.c"
while [ $# -gt 0 ]; do [ "$1" = -o ] && cc -shared -fPIC "$TMPDIR/e.c" -o "$2"; shift; done"""
CHANGES = """for word; do case "$word" in *step.c) sed -i '{}' "$word";; esac; done
exec cc "$@"
"""


@pytest.mark.parametrize(
    "script, words",
    [
        (None, ""),
        ("exit 1", ""),
        (ODD, "no step"),
        (CHANGES.format(r"s/= tanh_of(\(v[0-9]*\))/= \1/"), "does not agree"),
        (CHANGES.format("s/= (v6 \\* v6)/= (v6 * v6 * v6)/"), "does not agree"),
    ],
    ids=["none", "broken", "something else", "a wrong step", "a wrong gradient"],
)
def test_a_compiler_that_fails_or_makes_something_else(script, words, tmp_path, new_step):
    compiler = tmp_path / "cc"
    if script is not None:
        compiler.write_text(f"#!/bin/sh\n{script}\n")
        compiler.chmod(0o755)
    step, said = new_step(tmp_path / "new", CC=compiler)
    assert step._kernel is None and words in step._reason
    # That a step does not agree is said once in a process.
    assert words == "does not agree" or [text.count("runs as a loop") for text in said] == [1]


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, None])
def test_a_folder_that_others_can_write_to_or_none_can_make(mode, tmp_path, new_step):
    tmp_path.chmod(mode or 0o700)
    step, (said,) = new_step(tmp_path if mode else "/proc/none")
    assert step._kernel is None and (mode is None or "others can write" in said)


def test_a_folder_named_like_a_flag(tmp_path, monkeypatch, new_step):
    monkeypatch.chdir(tmp_path)
    assert new_step("-o")[0]._kernel is not None


PROGRAM = """
import torch
from anharmonic.ops.compiler import build
from anharmonic.ops.compiler.recurrence import recurrence
build.LEVEL = build.QUICK_LEVEL = "-O0"
step = recurrence(lambda u, h, w: torch.tanh(h * w + u))
step(torch.ones(3, 2, 4), torch.zeros(2, 4), torch.ones(4))
print(step._kernel is not None)
"""


@pytest.mark.fast("0.5")
@pytest.mark.parametrize("part", [0.0, 0.5, 0.9])
def test_a_damaged_library_is_built_again(part, tmp_path, new_step, run_python):
    # Cut at a page, it would end the process with SIGBUS when it is used.
    whole, folder = tmp_path / "whole", tmp_path / "damaged"
    new_step(whole)
    assert whole.stat().st_mode & 0o777 == 0o700
    folder.mkdir(mode=0o700)
    for library in whole.glob("*.so"):
        content = library.read_bytes()
        (folder / library.name).write_bytes(content[: int(part * len(content))])
    assert run_python(PROGRAM, **{build.FOLDER: str(folder)}).stdout == "True\n"
    assert sorted(p.suffix for p in folder.iterdir()) == [".so"] * 2


def test_headers_are_found_in_a_package_of_two_folders(tmp_path, monkeypatch):
    # An editable install: the sources, here without csrc, and what cmake installed.
    sources, installed = tmp_path / "sources/compiler", tmp_path / "site-packages/compiler"
    sources.mkdir(parents=True)
    shutil.copytree(build._headers(), installed / "include")
    monkeypatch.setattr(build, "__file__", str(sources / "build.py"))
    parts = MultiplexedPath(installed, sources)
    monkeypatch.setattr(build.importlib.resources, "files", lambda name: parts)
    assert build._headers() == installed / "include"
    (installed / "include" / "product.h").unlink()
    with pytest.raises(Unsupported, match="headers"):
        build._headers()


# ---- steps and arguments that are wrong ----
@pytest.mark.parametrize("compiled", ["auto", False, True])
def test_a_step_that_returns_another_state(compiled):
    for step, came in (
        (lambda u, h, w: None, "NoneType"),
        (lambda u, h, w: torch.cat([h, h], 1), "[B, 16]"),
        (lambda u, h, w: (h, h), "[B, 8], [B, 8]"),
        (lambda u, h, w: h.sum(1), "[B]"),
        (lambda u, h, w: {"h": h}, "dict"),
    ):
        with pytest.raises(ValueError, match="like the old one") as caught:
            recurrence(step, compiled=compiled)(*data())
        assert f"got {came};" in str(caught.value)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x, h: recurrence(lambda u, s, w: {"z": s["y"] + u})(x, {"y": h}), ValueError,
         "got a dictionary of 'z'"),
        *((lambda x, h, step=step: recurrence(step, compiled=False)(x, h), ValueError, "in place")
          for step in (lambda u, h, w: h.add_(u), lambda u, h, w: u.mul_(2) + h)),
        *((lambda x, h, step=step: recurrence(step, compiled=True)(*data()), ValueError, words)
          for step, words in (
              (lambda u, h, w: h @ torch.ones(3, 3), "with 4 sequences it raises RuntimeError"),
              (lambda u, h, w: h * w["a"] + _OUTSIDE.add_(1), "in place"),
              (lambda u, h, w: h * w["a"].data.mul_(0.5) + u, "in place"))),
        (lambda x, h: recurrence(_tanh)(x, torch.complex(h, h)), ValueError,
         r"state must be .* got .*torch.complex64; .* real and"),
        (lambda x, h: recurrence("step"), TypeError, "step must be a function"),
        (lambda x, h: recurrence(_tanh, compiled=1), ValueError, "compiled must be"),
        (lambda x, h: recurrence(_tanh, compiled=None), ValueError, "compiled must be"),
        (lambda x, h: explain(torch.nn.Linear), TypeError, "sequence layer"),
        (lambda x, h: explain(x), TypeError, "sequence layer"),
    ],
)  # fmt: skip
def test_wrong_calls(call, error, words):
    with pytest.raises(error, match=words):
        call(*data()[:2])
