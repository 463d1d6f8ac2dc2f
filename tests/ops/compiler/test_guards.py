"""Where a compiled step could give a wrong answer, the loop runs, and says so."""

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

H = 8


def data(batch=4, steps=6):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(steps, batch, H, generator=generator)
    return x, torch.zeros(batch, H), {"a": torch.rand(H, generator=generator).requires_grad_()}


def same_as_loop(step, batch=4):
    """Whether a step gives what its loop gives, and whether it is compiled."""
    x, h, w = data(batch)
    run = recurrence(step)
    torch.manual_seed(0)
    found = run(x, h, w)[0]
    torch.manual_seed(0)
    right = recurrence(step, compiled=False)(x, h, w)[0]
    return torch.allclose(found, right, atol=1e-6), run._kernel is not None


def _tanh(u, h, w):
    return torch.tanh(h * w["a"] + u)


# ---- the four that a prototype got wrong ----
def test_batch_size_as_a_number():
    def step(u, h, w):
        return h * w["a"] + u / h.shape[0]

    with pytest.warns(UserWarning, match="number of sequences"):
        assert same_as_loop(step) == (True, False)


def test_a_branch_on_the_batch_size():
    def step(u, h, w):
        return h * w["a"] + u if h.shape[0] < 100 else h

    assert same_as_loop(step) == (True, True)
    with pytest.warns(UserWarning, match="number of sequences"):
        assert same_as_loop(step, 150) == (True, False)


@pytest.mark.parametrize("draw", [lambda h: torch.rand(H), torch.rand_like, torch.dropout])
def test_random_numbers(draw):
    def step(u, h, w):
        noise = torch.dropout(h, 0.5, True) if draw is torch.dropout else draw(h)
        return h * w["a"] + u * noise

    with pytest.warns(UserWarning, match="loop"):
        assert same_as_loop(step) == (True, False)


def test_a_variance_compiles_without_a_warning():
    def step(u, h, w):
        return torch.tanh(h * w["a"] + u - u.var(-1, keepdim=True) + u.std(1)[:, None])

    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # else once in a process
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert same_as_loop(step) == (True, True)
    finally:
        torch.set_warn_always(always)


def test_an_attribute_that_changes():
    class Settings:
        factor = 0.5

    settings = Settings()

    def step(u, h, w):
        return torch.tanh(h * w["a"] * settings.factor + u)

    x, h, w = data()
    run, loop = recurrence(step), recurrence(step, compiled=False)
    for factor in (0.5, 0.1, 0.5):
        settings.factor = factor
        torch.testing.assert_close(run(x, h, w)[0], loop(x, h, w)[0])
        assert run._kernel is not None


def test_many_numbers_of_which_each_is_used_twice(monkeypatch):
    monkeypatch.setattr(cache, "_MOST_NEW", 2)

    class Settings:
        factor = 0.5

    def step(u, h, w):
        return torch.tanh(h * w["a"] * Settings.factor + u)

    x, h, w = data()
    run = recurrence(step)
    for Settings.factor in (0.1, 0.2, 0.3, 0.4):
        run(x, h, w)
        run(x, h, w)
        assert run._kernel is not None


@pytest.mark.filterwarnings("ignore:.*is not compiled")
@pytest.mark.parametrize("asks", [True, False])
def test_hooks_on_gradients(asks):
    class Settings:
        factor = 1.0

    def step(u, h, w):
        new = torch.tanh(h * w["a"] + u)
        if not asks or new.requires_grad:
            new.register_hook(lambda gradient: gradient * Settings.factor)
        return new

    x, h, w = data()
    for Settings.factor in (1.0, 0.1):
        found, right = (
            torch.autograd.grad(run(x, h, w)[0].sum(), w["a"])[0]
            for run in (recurrence(step), recurrence(step, compiled=False))
        )
        torch.testing.assert_close(found, right)
    with pytest.raises(ValueError, match="hook"):
        recurrence(step, compiled=True)(x, h, w)


def test_a_constant_that_changes_before_the_backward_pass():
    constant = torch.full((H,), 0.5)
    x, h, w = data()
    output, _ = recurrence(lambda u, h, w: torch.tanh(h * w["a"] * constant + u))(x, h, w)
    constant.mul_(2)
    with pytest.raises(RuntimeError, match="inplace"):
        output.sum().backward()


@pytest.mark.parametrize("wrong", ["inputs", "state", "weights"])
def test_two_dtypes(wrong):
    x, h, w = data()
    tensors = {"inputs": x, "state": h, "weights": {"a": w["a"].detach()}}
    tensors[wrong] = (
        {"a": w["a"].detach().double()} if wrong == "weights" else tensors[wrong].double()
    )
    run = recurrence(lambda u, h, w: (h * w["a"] + u).to(h.dtype))
    found, _ = run(**tensors)
    right, _ = recurrence(run.step, compiled=False)(**tensors)
    assert torch.equal(found, right) and "beside" in run.explain()


def test_autocast_is_off():
    def step(u, h, w):
        return torch.tanh(h @ torch.diag(w["a"]) + u)

    x, h, w = data()
    right = recurrence(step)(x, h, w)[0]
    with torch.autocast("cpu"):
        for compiled in (False, True):
            found = recurrence(step, compiled=compiled)(x, h, w)[0]
            torch.testing.assert_close(found, right)


def test_a_transform_of_functions_runs_the_loop():
    x, h, w = data()
    run = recurrence(_tanh)
    right = run(x, h, w)[0]
    found = torch.func.vmap(lambda a: run(x, h, {"a": a})[0])(torch.stack([w["a"]] * 2))
    torch.testing.assert_close(found[1], right)


def test_second_backward_after_another_forward():
    x, h, w = data()
    run = recurrence(_tanh)
    output = run(x, h, w)[0]
    (first,) = torch.autograd.grad(output.sum(), w["a"], retain_graph=True)
    run(torch.randn_like(x), h, w)
    (second,) = torch.autograd.grad(output.sum(), w["a"])
    assert torch.equal(first, second)


# ---- others ----
def _cumulative(u, h, w):
    return torch.cumsum(h * w["a"], 1) + u


def _rows_meet(u, h, w):
    return h * w["a"] + u - h.mean(0, keepdim=True)


def _branch_on_values(u, h, w):
    return (h if h.sum() > 0 else u) * w["a"]


_OUTSIDE, _GATES = torch.zeros(H), torch.linspace(-1, 1, 3 * H * H).view(3 * H, H)
_SPARSE = torch.eye(H).to_sparse()


def _counts_calls(u, h, w):
    _OUTSIDE[0] += 1
    return h * w["a"] + u


def _changes_a_weight(u, h, w):
    w["a"].data.mul_(0.5)
    return h * w["a"] + u


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


def _own_gradient(u, h, w):
    return 0.5 * h + _Spike.apply(h * w["a"] + u)


def _outer_parameter():
    own = torch.rand(H, requires_grad=True)
    return lambda u, h, w: h * w["a"] * own + u


@pytest.mark.parametrize(
    "step",
    [
        *(_cumulative, _rows_meet, _branch_on_values, _outer_parameter()),
        *(_without_gradient, _own_gradient),
    ],
)
def test_runs_as_the_loop(step):
    with pytest.warns(UserWarning, match="loop"):
        assert same_as_loop(step) == (True, False)


@pytest.mark.parametrize(
    "step, words",
    [
        (
            _branch_on_values,
            r"branches on the value of a tensor \(test_guards.py, line \d+\); .*where",
        ),
        (lambda u, h, w: u * w["a"].sum().item(), r"number of a tensor \(test_guards.py, line"),
        (
            lambda u, h, w: u + torch.tensor(h.detach().numpy()),
            r"number of a tensor \(test_guards.py",
        ),
        (lambda u, h, w: u - h[h > 0].mean(), "indexing gives as many .*torch.where"),
        (_cumulative, r"^_cumulative .* cumsum is not compiled \(test_guards.py, line"),
        (_rows_meet, r"mean reads all sequences .*dim=1"),
        (lambda u, h, w: u / h.norm(), "norm reads all sequences of the batch at once"),
        (lambda u, h, w: u + torch.ones(4, H), r"number of sequences, and with 13 seq.*RuntimeErr"),
        (lambda u, h, w: F.dropout(h, 0.1) + u, "dropout draws random numbers"),
        (lambda u, h, w: torch.fft.fft(h).real + u, "fft computes rows in torch.complex64.*imag"),
        (lambda u, h, w: torch.polar(h, u).real, "polar computes rows in torch.complex64.*imagin"),
        (lambda u, h, w: (torch.diag(w["a"]) @ h.T).T + u, r"write h @ W.T instead"),
        (lambda u, h, w: h * w["a"].repeat(len(h), 1), "repeat copies weights.*broadcast"),
        (lambda u, h, w: torch.stack([h[k] + u[k] for k in range(len(h))]), "one row"),
        (lambda u, h, w: h @ torch.ones(3, 3), "with 4 sequences it raises RuntimeError"),
        (lambda u, h, w: (_SPARSE @ h.T).T + u, r"uses a sparse tensor; .*to_dense"),
        (_without_gradient, r"turns gradients off.*line"),
        (_outer_parameter(), "give it as a weight"),
    ],
)
def test_the_reason_comes_first(step, words):
    with pytest.raises(ValueError, match=words):
        recurrence(step, compiled=True)(*data())


def test_complex_states_are_two_tensors():
    x, h, w = data()
    with pytest.raises(ValueError, match=r"state must be .* got .*torch.complex64; .* real and"):
        recurrence(_tanh)(x, torch.complex(h, h), w)


def test_a_reshape_that_asks_for_a_row():
    assert same_as_loop(lambda u, h, w: (h * w["a"] + u).view(len(h), -1)) == (True, True)


@pytest.mark.parametrize("step", [_counts_calls, _changes_a_weight])
def test_side_effects(step):
    with pytest.raises(ValueError, match="in place"):
        recurrence(step, compiled=True)(*data())


def _in_place(u, h, w):
    h = h.clone()
    h[:, 0] = 0.5
    h[:, 2:4] *= w["a"][2:4]
    h += torch.tanh(u)
    return h.mul_(w["a"])


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
        lambda u, h, w: u,
    ],
)
def test_runs_compiled(step):
    assert same_as_loop(step) == (True, True)


def test_rounding_to_decimals_is_refused_by_name():
    step = recurrence(lambda u, h, w: h * w["a"] + torch.round(u, decimals=1), compiled=True)
    with pytest.raises(ValueError, match="round is not compiled"):
        step(*data())


def test_numbers_that_differ_at_every_call():
    run = recurrence(lambda u, h, w: h * w["a"] * random.random() + u * 0)
    with pytest.warns(UserWarning, match="called again"):
        run(*data())
    assert run._kernel is None


def test_what_is_nan_everywhere_cannot_be_compared():
    x, h, w = data()
    with pytest.raises(ValueError, match="its results are NaN or infinite"):
        recurrence(lambda u, h, w: h * w["a"] * torch.log(-1 - u * u), compiled=True)(x, h, w)


def test_a_long_sequence_saves_little_where_it_is_asked_to():
    run = recurrence(_tanh, compiled=True)
    run(*data())
    assert run._kernel.cut(10_000, 8, "stored", True).keep == ALL
    cut = run._kernel.cut(10_000, 8, "chunked", True)
    assert cut.keep == STARTS and cut.every < 10_000
    assert run._kernel.cut(10_000, 8, None, True).keep == NOTHING


def test_compiled_or_error():
    with pytest.raises(ValueError, match="cumsum"):
        recurrence(_cumulative, compiled=True)(*data())


def test_another_tensor_from_outside():
    outside = {"c": torch.full((H,), 0.5)}

    def step(u, h, w):
        return h * w["a"] * outside["c"] + u

    x, h, w = data()
    run, loop = recurrence(step), recurrence(step, compiled=False)
    torch.testing.assert_close(run(x, h, w)[0], loop(x, h, w)[0])
    outside["c"] = torch.full((H,), 0.1)
    torch.testing.assert_close(run(x, h, w)[0], loop(x, h, w)[0])
    outside["c"].mul_(2)
    torch.testing.assert_close(run(x, h, w)[0], loop(x, h, w)[0])
    assert run._kernel is not None


def test_an_outside_tensor_of_another_shape():
    outside = torch.tensor([0.5])

    def step(u, h, w):
        return torch.tanh(h * w["a"] * outside - u)

    x, h, w = data()
    run, loop = recurrence(step), recurrence(step, compiled=False)
    torch.testing.assert_close(run(x, h, w)[0], loop(x, h, w)[0])
    outside.data = torch.linspace(0, 1, H)
    torch.testing.assert_close(run(x, h, w)[0], loop(x, h, w)[0])
    assert run._kernel is not None


@pytest.mark.filterwarnings("ignore:.*is not compiled")
def test_steps_that_differ_only_in_their_gradients():
    def gradient(off, compiled):
        def step(u, h, w):
            with torch.set_grad_enabled(not off):
                gate = torch.sigmoid(h * w["a"])
            return gate * u + 0.5 * h * w["a"]

        x, h, w = data()
        output = recurrence(step, compiled=compiled)(x, h, w)[0]
        return torch.autograd.grad(output.sum(), w["a"])[0]

    for off in (False, True):
        torch.testing.assert_close(gradient(off, "auto"), gradient(off, False))


def test_one_tensor_as_two_weights():
    x, h, w = data()
    run = recurrence(lambda u, h, w: torch.tanh(h * w["a"] + u * w["b"]), compiled=True)
    output, _ = run(x, h, {"a": w["a"], "b": w["a"]})
    loop = recurrence(run.step, compiled=False)(x, h, {"a": w["a"], "b": w["a"]})[0]
    grads = [torch.autograd.grad(value.sum(), w["a"])[0] for value in (output, loop)]
    torch.testing.assert_close(*grads)


def test_forms_of_a_call():
    x, h, w = data()
    run = recurrence(_tanh)
    output, end = run(x, h, w)
    assert torch.equal(output[-1], end)
    assert torch.equal(run(x, h, w, output="last")[0], end)
    assert run(x, h, w, output="none")[0] is None
    turned = x.transpose(0, 1).contiguous().transpose(0, 1)  # batch first in memory
    assert torch.equal(run(turned, h, w)[0], output)
    first, carried = run(x[:2], h, w)
    second, _ = run(x[2:], carried, w)
    assert torch.equal(torch.cat([first, second]), output)
    frozen = {"a": w["a"].detach()}
    assert torch.equal(run(x, h, frozen)[0], output)
    again = pickle.loads(pickle.dumps(run))
    assert torch.equal(again(x, h, w)[0], output)
    with torch.no_grad():
        assert torch.equal(run(x, h, w)[0], output)


def test_threads_do_not_change_bits(same_bits_with_any_threads):
    x, h, w = data(batch=20, steps=100)
    run = recurrence(_tanh)

    def results():
        output, _ = run(x, h, w)
        return output, *torch.autograd.grad(output.square().sum(), w["a"])

    same_bits_with_any_threads(results)


@pytest.mark.parametrize("part", [slice(1, None), slice(0, 1)])
def test_a_gradient_that_forward_can_save(part):
    """The gradient of an unused column is 0 times what forward computed, which is saved."""
    x, h, w = data()
    x, h, a = x.double(), h.double() + 0.5, w["a"].detach().double()
    W = torch.randn(H, H, dtype=x.dtype, generator=torch.Generator().manual_seed(0))

    def step(u, h, w):
        return torch.tanh((u * (h @ w["W"]))[:, part].sum(1, keepdim=True) + 0.5 * h) + a

    found = []
    for compiled in (True, False):
        leaves = [t.detach().clone().requires_grad_() for t in (x, h, W)]
        output, end = recurrence(step, compiled=compiled)(*leaves[:2], {"W": leaves[2]})
        found.append(torch.autograd.grad(output.sum() + end.square().sum(), leaves))
    torch.testing.assert_close(*found, rtol=1e-11, atol=1e-12)


def test_a_weight_beside_a_smaller_sign():
    """Python asks a Parameter first: of x < w it makes w > x, and of a tensor it does not."""
    x, h, _ = data()
    bound = torch.nn.Parameter(torch.rand(H, dtype=x.dtype))

    def step(u, h, w):
        return torch.where(h + u.sum(1, keepdim=True) < w["bound"], 0.5 * h + 1, h - 1)

    run = recurrence(step, compiled=True)
    output, _ = run(x, h, {"bound": bound})
    torch.testing.assert_close(output, recurrence(step, compiled=False)(x, h, {"bound": bound})[0])


def test_the_first_call_within_a_checkpoint_compiles():
    x, h, w = data()
    run = recurrence(lambda u, h, w: torch.tanh(h * w["a"] - 3 * u))
    output, _ = checkpoint(run, x, h, w, use_reentrant=False)
    (found,) = torch.autograd.grad(output.sum(), w["a"])
    assert run._kernel is not None
    torch.testing.assert_close(found, torch.autograd.grad(run(x, h, w)[0].sum(), w["a"])[0])


def test_second_derivatives_are_refused():
    x, h, w = data()
    output, _ = recurrence(_tanh)(x, h, w)
    with pytest.raises(RuntimeError, match=r"once.*use_backend\('reference'\)"):
        torch.autograd.grad(output.sum(), w["a"], create_graph=True)
    run = recurrence(_tanh)
    with use_backend("reference"):
        output, _ = run(x, h, w)
        (gradient,) = torch.autograd.grad(output.sum(), w["a"], create_graph=True)
    assert gradient.requires_grad and "'reference' is chosen" in run.explain()


def test_explain(capsys):
    run = recurrence(_tanh)
    explain(run)
    assert "not called" in capsys.readouterr().out
    run(*data())
    explain(run)
    assert "saved for every step: 1 tanh [8]" in capsys.readouterr().out


# ---- the compiler and its folder ----
@pytest.fixture
def new_step(monkeypatch):
    """Runs a step that is new under other variables of the environment; also what it warned of."""

    def run(**environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, str(value))
        monkeypatch.setattr(cache, "_entries", type(cache._entries)())  # none is known yet
        step = recurrence(lambda u, h, w: torch.tanh(h * w + u))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            step(torch.ones(3, 2, 4), torch.zeros(2, 4), torch.ones(4))
        return step, [str(one.message) for one in seen]

    return run


@pytest.fixture
def compiler(tmp_path):
    """Writes a compiler as a shell script."""

    def write(script):
        path = tmp_path / "cc"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return write


@pytest.mark.parametrize("name", ["no-such-compiler", "broken"])
def test_trouble_with_the_compiler_means_the_loop(name, tmp_path, new_step, compiler):
    command = compiler("exit 1") if name == "broken" else name
    step, said = new_step(CC=command, **{build.FOLDER: tmp_path / "new"})
    assert step._kernel is None and [text.count("runs as a loop") for text in said] == [1]


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707])
def test_a_folder_that_others_can_write_to(mode, tmp_path, new_step):
    tmp_path.chmod(mode)
    step, said = new_step(**{build.FOLDER: tmp_path})
    assert step._kernel is None and len(said) == 1 and "others can write" in said[0]


def test_a_folder_that_cannot_be_made(new_step):
    step, said = new_step(**{build.FOLDER: "/proc/none"})
    assert step._kernel is None and len(said) == 1


def test_a_folder_named_like_a_flag(tmp_path, monkeypatch, new_step):
    monkeypatch.chdir(tmp_path)
    assert new_step(**{build.FOLDER: "-o"})[0]._kernel is not None


def test_a_compiler_that_writes_something_else(tmp_path, new_step, compiler):
    odd = compiler(
        '[ "$1" = --version ] && exit\necho "int x;" > "$TMPDIR/e.c"\n'
        'while [ $# -gt 0 ]; do [ "$1" = -o ] && cc -shared -fPIC "$TMPDIR/e.c" -o "$2"; shift; '
        "done"
    )
    step, said = new_step(CC=odd, **{build.FOLDER: tmp_path / "new"})
    assert step._kernel is None and "no step" in said[0]


@pytest.mark.parametrize(
    "edit",
    [r"s/= tanh_of(\(v[0-9]*\))/= \1/", r"s/= (v6 \* v6)/= (v6 * v6 * v6)/"],
    ids=["forward", "backward"],
)
def test_a_compiler_that_makes_something_else_of_a_step(edit, tmp_path, new_step, compiler):
    wrong = compiler(
        'for word; do case "$word" in *step.c) '
        f"sed -i '{edit}' \"$word\";; esac; done\n"
        'exec cc "$@"'
    )
    step, _ = new_step(CC=wrong, **{build.FOLDER: tmp_path / "new"})
    assert step._kernel is None and "does not agree" in step._reason


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
    new_step(**{build.FOLDER: whole})
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


# ---- steps that are wrong, and calls in odd modes ----
@pytest.mark.covering
@pytest.mark.parametrize(
    "step, came",
    [
        (lambda u, h, w: None, "NoneType"),
        (lambda u, h, w: 1.0, "float"),
        (lambda u, h, w: torch.cat([h, h], 1), "[B, 16]"),
        (lambda u, h, w: (h, h), "[B, 8], [B, 8]"),
        (lambda u, h, w: h.sum(1), "[B]"),
        (lambda u, h, w: h[:, :1], "[B, 1]"),
        (lambda u, h, w: {"h": h}, "dict"),
    ],
)
@pytest.mark.parametrize("compiled", ["auto", False, True])
def test_a_step_that_returns_another_state(step, came, compiled):
    with pytest.raises(ValueError, match="like the old one") as caught:
        recurrence(step, compiled=compiled)(*data())
    assert f"got {came};" in str(caught.value)


def test_a_step_that_returns_other_keys():
    x, h, w = data()
    with pytest.raises(ValueError, match="got a dictionary of 'z'"):
        recurrence(lambda u, s, w: {"z": s["y"] + u})(x, {"y": h}, w)


@pytest.mark.parametrize("step", [lambda u, h, w: h.add_(u), lambda u, h, w: u.mul_(2) + h])
def test_a_step_that_changes_its_arguments(step):
    x, h, _ = data()
    with pytest.raises(ValueError, match="in place"):
        recurrence(step, compiled=False)(x, h, {})


def test_the_order_of_keys_does_not_count():
    x, h, w = data()

    def step(u, s, w):
        return {"z": s["z"] + 1, "y": torch.tanh(s["y"] * w["a"] + u) - s["z"]}

    for compiled in (False, True):
        output, end = recurrence(step, compiled=compiled)(x, {"y": h, "z": h}, w)
        assert torch.equal(end["z"], torch.full_like(h, len(x)))
        assert torch.equal(output[-1], end["y"])


@pytest.mark.fast("<lambda>0", "<lambda>2", "<lambda>3")
@pytest.mark.parametrize(
    "step",
    [
        lambda u, h, w: u,
        lambda u, h, w: torch.ones_like(h),
        lambda u, h, w: w["a"].expand(h.shape),
        lambda u, h, w: torch.tanh(h * w["a"] + u).detach(),
        lambda u, h, w: torch.tanh(h.detach() * w["a"] + u),
    ],
)
@pytest.mark.filterwarnings("ignore:.*is not compiled")
def test_steps_without_gradients(step):
    x, h, w = data()
    found, right = recurrence(step)(x, h, w)[0], recurrence(step, compiled=False)(x, h, w)[0]
    torch.testing.assert_close(found, right)
    if right.requires_grad:
        grads = [torch.autograd.grad(value.square().sum(), w["a"])[0] for value in (found, right)]
        torch.testing.assert_close(*grads)


def test_the_first_call_in_inference_mode_leaves_gradients():
    x, h, w = data()

    def step(u, h, w):
        return torch.tanh(h * w["a"] - u)

    run = recurrence(step, compiled=True)
    with torch.inference_mode():
        first = run(x, h, w)[0]
    found = run(x, h, w)[0]
    assert torch.equal(first, found)
    right = recurrence(step, compiled=False)(x, h, w)[0]
    grads = [torch.autograd.grad(value.sum(), w["a"])[0] for value in (found, right)]
    torch.testing.assert_close(*grads)


def test_detection_of_anomalies():
    x, h, w = data()
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        run = recurrence(lambda u, h, w: torch.tanh(h * w["a"] + 3 * u), compiled=True)
        run(x, h, w)[0].sum().backward()


def test_a_frozen_module_from_outside():
    frozen = torch.nn.Linear(H, H).requires_grad_(False)
    assert same_as_loop(lambda u, h, w: torch.tanh(frozen(h) + u * w["a"])) == (True, True)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: recurrence(3), TypeError, "step must be a function"),
        (lambda: recurrence("step"), TypeError, "step must be a function"),
        (lambda: recurrence(_tanh, compiled=1), ValueError, "compiled must be"),
        (lambda: recurrence(_tanh, compiled=None), ValueError, "compiled must be"),
        (lambda: explain(torch.nn.Linear), TypeError, "sequence layer"),
        (lambda: explain(torch.ones(1)), TypeError, "sequence layer"),
    ],
)
def test_arguments_that_are_none(call, error, words):
    with pytest.raises(error, match=words):
        call()
