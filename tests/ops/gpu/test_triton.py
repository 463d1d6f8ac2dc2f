"""The Triton backend beside the float64 reference: on a GPU, else through Triton's interpreter.

The interpreter is switched on for a whole process, so that without a GPU these tests run in one of
their own: ``test_triton_interpreter.py`` starts it. It knows float32 only, and a step costs it
milliseconds: what needs more is marked ``gpu``.
"""

import importlib
import warnings
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch.utils._pytree import tree_map_only

import anharmonic as ah
from anharmonic import ops
from anharmonic.ops import backend as backends
from anharmonic.ops import sequence
from anharmonic.ops.gpu import backend, first_use, walk

pytest.importorskip("triton", reason="triton is not installed")
HAS_GPU = torch.cuda.is_available()
if not (HAS_GPU or backend.interpreted()):
    pytest.skip("no GPU; test_triton_interpreter.py runs these tests", allow_module_level=True)
DEVICE = "cuda" if HAS_GPU else "cpu"
F32, F64 = torch.float32, torch.float64
BOUND = 2e-5  # of the largest entry, as of the C library
gpu = pytest.mark.gpu
needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
KERNELS = ("unicornn", "cornn", "lem")
VARIANTS = {
    "unicornn": ("unicornn", None),
    "cornn": ("cornn", None),
    "cornn implicit": ("cornn", {"scheme": "implicit", "trained": True}),
    "lem": ("lem", None),
    "lem unclipped": ("lem", {}),
    "lem single scale": ("lem", {"multiscale": False}),
}
variants = pytest.mark.parametrize("kernel, own", VARIANTS.values(), ids=VARIANTS)


@pytest.fixture(autouse=True)
def short_tiles(request, monkeypatch):
    """Tiles of five steps, so that short sequences have several."""
    if "long_tiles" not in request.keywords:
        monkeypatch.setattr(walk, "_SHORTEST_TILE", 5)
        monkeypatch.setattr(walk, "_LONGEST_TILE", 5)


@pytest.fixture
def pair(make_stack):
    """The same stack twice: float32 on the device, float64 on the CPU."""

    def make(kernel, own=None, **sizes):
        ours = make_stack(kernel, own, dtype=F32, device=DEVICE, **sizes)
        return ours, make_stack(kernel, own, **sizes)

    return make


def run(stack, backend="triton", **changes):
    """Outputs, final states and every gradient, float64 on the CPU."""
    found = stack.call(backend=backend, **changes)
    unused = stack.given["elapsed"] if changes.get("elapsed", "") is None else None
    leaves = [leaf for leaf in stack.leaves if leaf is not unused]
    gradients = torch.autograd.grad(stack.loss(found), leaves)
    return [t.detach().cpu().double() for t in (*found, *gradients) if t is not None]


def off(ours, truth, backend="triton", **changes):
    """How far one is from the other on the reference."""
    return ours.furthest(run(ours, backend, **changes), run(truth, "reference", **changes))


def same_bits(got, expected):
    return len(got) == len(expected) and all(map(torch.equal, got, expected))


PLAIN = {"elapsed": None, "lengths": None, "masks": None}
CALLS = {
    "smallest": ({"steps": 1, "batch": 1, "hidden": 1, "layers": 1}, {}),
    "small": ({"steps": 7, "batch": 3, "hidden": 3, "layers": 2}, {}),
    "one sequence": ({"steps": 33, "batch": 1, "hidden": 17, "layers": 1}, {}),
    "wide": ({"steps": 7, "batch": 3, "hidden": 33, "layers": 1}, {}),
    "both directions": (
        {"steps": 4, "batch": 3, "hidden": 3, "layers": 3, "bidirectional": True}, {},
    ),
    "plain, last": (
        {"steps": 6, "batch": 3, "hidden": 5, "layers": 1}, {**PLAIN, "output": "last"},
    ),
    "plain, none": (
        {"steps": 6, "batch": 3, "hidden": 5, "layers": 1}, {**PLAIN, "output": "none"},
    ),
}  # fmt: skip


@pytest.mark.fast(
    *(f"small-{name}" for name in VARIANTS), "smallest-unicornn", "one sequence-cornn", "wide-lem",
    "both directions-cornn", "plain, last-unicornn", "plain, last-cornn", "plain, none-lem",
)  # fmt: skip
@variants
@pytest.mark.parametrize("name", CALLS)
def test_agrees_with_the_reference(pair, kernel, own, name):
    sizes, words = CALLS[name]
    assert off(*pair(kernel, own, **sizes), **words) < BOUND


class TestWithoutKernel:
    """What does not fit on chip, or has no kernel, runs as a loop in PyTorch."""

    @pytest.mark.parametrize("name", list(VARIANTS)[1:])
    def test_matrices_beyond_the_chip_run_as_the_loop(self, pair, name):
        kernel, own = VARIANTS[name]
        assert chosen(kernel, GPU_TENSOR, hidden=64) == "triton"
        assert chosen(kernel, GPU_TENSOR, hidden=65) == "reference"
        with ah.use_precision("bfloat16"):
            assert chosen(kernel, GPU_TENSOR, hidden=128) == "triton"
            assert chosen(kernel, GPU_TENSOR, hidden=129) == "reference"
        ours, truth = pair(kernel, own, steps=2, batch=1, hidden=66, layers=1)
        with pytest.raises(ValueError, match=r"'triton' .* got 66 neurons, .* \(float32: up to 64"):
            run(ours)
        with ah.use_backend("auto" if HAS_GPU else "reference"):
            assert off(ours, truth, "auto") < BOUND

    def test_reversible_runs_as_the_loop(self, pair):
        assert chosen("unicornn", GPU_TENSOR, hidden=1000) == "triton"  # neurons always fit
        assert chosen("unicornn", GPU_TENSOR, memory="reversible") == "reference"
        ours, truth = pair("unicornn", steps=2, batch=3, hidden=3, layers=3)
        with pytest.raises(ValueError, match=r"'triton' .* got memory='reversible', which has no"):
            run(ours, memory="reversible")
        assert off(ours, truth, "auto", memory="reversible") < BOUND

    @pytest.mark.parametrize("kernel", KERNELS)
    def test_its_states_are_float32_in_half_precision(self, make_stack, kernel):
        equation = EQUATIONS[kernel](dt=[1e-3] if kernel == "unicornn" else 1e-3)
        words = {"lengths": None, "masks": None, "return_sequence": True, "memory": "stored"}
        results = []
        for dtype in (torch.bfloat16, F64):
            stack = make_stack(kernel, dtype=torch.bfloat16, device=DEVICE, steps=99, layers=1)
            (w,) = stack.weights
            weights = [type(w)(*(t if t is None else t.to(dtype) for t in w))]
            start = [state.detach().fill_(4.0).to(dtype) for state in stack.start]
            tensors = stack.x.to(dtype), weights, start
            gaps = stack.given["elapsed"].to(dtype)
            results.append(sequence._run_in_float32(equation, *tensors, elapsed=gaps, **words))
        assert all(result.dtype is torch.bfloat16 for result in results[0])
        # The states move by less than bfloat16 resolves in a step, but not in all of them.
        assert (results[1][1] - 4).abs().max() > 0.01
        assert stack.furthest([result.double() for result in results[0]], results[1]) < 2**-8


@pytest.mark.fast("lem-7-2-1")
@pytest.mark.parametrize(("steps", "batch", "layers"), [(7, 2, 1), (12, 3, 2)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_same_bits_however_it_is_called(pair, kernel, steps, batch, layers):
    ours, _ = pair(kernel, steps=steps, batch=batch, hidden=3, layers=layers)
    expected = run(ours, memory="stored")
    assert same_bits(run(ours, memory="chunked"), expected)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        assert same_bits(run(ours), expected)
    with torch.no_grad():
        found = ours.call(backend="triton")
    assert found[0].grad_fn is None
    assert same_bits([value.cpu().double() for value in found], expected[:3])
    for order in ((1, 0, 2), (2, 1, 0)):
        x = ours.x.detach().permute(order).contiguous().permute(order).requires_grad_()
        assert not x.is_contiguous()
        ours.leaves[0] = ours.x = x
        assert same_bits(run(ours), expected)


@pytest.mark.fast("cornn")
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_state_carried_over_is_the_whole(pair, kernel):
    ours, _ = pair(kernel, steps=10, batch=2, hidden=3, layers=1)
    plain, parts = {**PLAIN, "backend": "triton"}, []
    whole = ours.call(**plain)
    for x in ours.x.split(5):
        ours.x = x
        output, *ours.start = ours.call(**plain)
        parts.append(output)
    assert same_bits([torch.cat(parts), *ours.start], whole)


def test_trained_scalars_of_unicornn(pair):
    stacks = pair("unicornn", steps=6, batch=2, hidden=3, layers=2)
    for stack in stacks:
        numbers = [torch.tensor(value).to(stack.x).requires_grad_() for value in (0.8, 0.3, 0.2)]
        stack.own |= {"frequency": numbers[0], "dt": numbers[1:]}
        stack.leaves += numbers
    assert off(*stacks) < BOUND


EQUATIONS = {"lem": ops.LEMEquation, "cornn": ops.CoRNNEquation, "unicornn": ops.UnICORNNEquation}


GPU_TENSOR = SimpleNamespace(
    is_cuda=True, is_cpu=False, dtype=F32, device=torch.device(DEVICE), dim=lambda: 1
)


def chosen(kernel, tensor, hidden=3, memory="auto"):
    """The backend that "auto" takes for a tensor on a GPU."""
    unfit = partial(sequence._why_not_triton, EQUATIONS[kernel](), hidden, memory)
    return backends.choose(kernel, "auto", [tensor], unfit_for_triton=unfit)


class TestFirstUse:
    """A kernel that is wrong on a device is found out before anyone computes with it."""

    @pytest.fixture(autouse=True)
    def nothing_tried(self, monkeypatch):
        monkeypatch.setattr(first_use, "_REASONS", {})

    @pytest.mark.parametrize("kernel", KERNELS)
    def test_kernels_agree_with_the_reference(self, kernel):
        state = torch.get_rng_state()
        assert chosen(kernel, GPU_TENSOR) == "triton"
        assert list(first_use._REASONS.values()) == [None]
        assert torch.equal(torch.get_rng_state(), state)

    @pytest.mark.covering
    @pytest.mark.parametrize("kernel", KERNELS)
    @pytest.mark.parametrize("fault", ["wrong", "NaN", "failing"])
    def test_a_faulty_kernel_gives_way_to_the_reference_and_says_so_once(
        self, kernel, fault, monkeypatch
    ):
        right = backend.run

        def faulty(*tensors, **settings):
            if fault == "failing":
                raise RuntimeError("no such instruction\nlong story")
            factor = 1.01 if fault == "wrong" else float("nan")
            found = right(*tensors, **settings)
            if isinstance(found, torch.Tensor):
                return found * factor
            return found[0] * factor, *found[1:]

        monkeypatch.setattr(backend, "run", faulty)
        told = {
            "wrong": r"a difference of 0\.0\d+ of the largest entry",
            "NaN": "a difference of nan of the largest entry",
            "failing": "RuntimeError: no such instruction;",
        }[fault]
        with pytest.warns(UserWarning, match=f"GPU kernel of {kernel} must agree.*{told}.*report"):
            assert chosen(kernel, GPU_TENSOR) == "reference"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert chosen(kernel, GPU_TENSOR) == "reference"

    def test_a_compiler_sees_nothing_of_it(self, monkeypatch):
        monkeypatch.setattr(first_use, "watched", lambda: True)
        assert first_use.why_wrong("lem", None, torch.device(DEVICE)) is None
        assert not first_use._REASONS


@pytest.mark.skipif(HAS_GPU, reason="only the interpreter has no bfloat16")
@pytest.mark.parametrize("kernel", ["cornn", "lem"])
def test_the_interpreter_refuses_bfloat16(pair, kernel):
    ours, _ = pair(kernel, steps=2, batch=1, hidden=3, layers=1)
    words = r"precision .*interpreter.*got 'bfloat16'; run it on a GPU"
    with ah.use_precision("bfloat16"), pytest.raises(ValueError, match=words):
        run(ours)


class TestPrecision:
    @pytest.mark.parametrize(
        "kernel, hidden, precision",
        [
            ("unicornn", 5, "bfloat16"),
            pytest.param("cornn", 100, "bfloat16", marks=[gpu, needs_gpu]),
            pytest.param("lem", 128, "bfloat16", marks=[gpu, needs_gpu]),
            pytest.param("cornn", 64, "tf32", marks=[gpu, needs_gpu]),
            pytest.param("lem", 64, "tf32", marks=[gpu, needs_gpu]),
            pytest.param("unicornn", 64, "tf32", marks=[gpu, needs_gpu]),
        ],
    )
    def test_operands_are_rounded_where_that_is_asked_for(self, pair, kernel, hidden, precision):
        ours, truth = pair(kernel, steps=2, batch=1, hidden=hidden, layers=1)
        with ah.use_precision(precision):
            rounded = run(ours)
        # 2^-8 for every operand, in sums of many that partly cancel
        assert BOUND < ours.furthest(rounded, run(truth, "reference")) < 3e-2
        assert off(ours, truth, "auto") < BOUND

    def test_half_inputs_keep_float32_states(self, pair):
        ours, truth = pair("unicornn", steps=6, batch=2, hidden=3, layers=1)
        for dtype in (torch.bfloat16, torch.float16):
            with torch.no_grad():
                ours.x.copy_(ours.x.to(dtype))
                truth.x.copy_(ours.x)
            x = ours.x
            ours.leaves[0] = ours.x = x.detach().to(dtype).requires_grad_()
            got, expected = run(ours), run(truth, "reference")
            ours.leaves[0] = ours.x = x
            assert ours.furthest(got[:3], expected[:3]) < BOUND
            assert ours.furthest(got, expected) < 1e-2  # the gradient of x comes in its dtype

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
    def test_layers_in_half(self, dtype):
        torch.manual_seed(0)
        layer = ah.UnICORNN(2, 3, num_layers=2).to(DEVICE, dtype)
        x = torch.randn(6, 2, 2, device=DEVICE, dtype=dtype)
        with ah.use_backend("triton"):
            output, state = layer(x)
            output.float().sum().backward()
        assert output.dtype is state.y.dtype is layer.weight_ih_l0.grad.dtype is dtype
        exact, _ = ah.UnICORNN.forward(layer.to("cpu", F64), x.cpu().double())
        assert (output.cpu().double() - exact).abs().max() < 4 * torch.finfo(dtype).eps


@pytest.mark.fast("lem-2-1")
@pytest.mark.parametrize(("batch", "layers"), [(2, 1), (3, 2)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_nothing_uninitialised_is_returned(pair, kernel, monkeypatch, batch, layers):
    ours, _ = pair(kernel, steps=6, batch=batch, hidden=3, layers=layers)
    calls = [{"memory": m} for m in ("stored", "chunked")] + [{"output": "last"}]
    clean = [run(ours, **words) for words in calls]

    def poisoned(make):
        def made(*words, **named):
            value = make(*words, **named)
            return value.fill_(float("nan") if value.is_floating_point() else 1 << 30)

        return made

    for owner, name in ((torch, "empty"), (torch, "empty_like"), (torch.Tensor, "new_empty")):
        monkeypatch.setattr(owner, name, poisoned(getattr(owner, name)))
    for words, expected in zip(calls, clean, strict=True):
        assert same_bits(run(ours, **words), expected), words


class TestOperator:
    @pytest.mark.slow
    @pytest.mark.parametrize("memory", ["stored", "chunked"])
    def test_compiles_as_one_graph(self, pair, memory):
        ours, _ = pair("lem", steps=6, batch=2, hidden=3, layers=1)

        def call(x):
            ours.x = x
            return ours.call(**PLAIN, memory=memory, backend="triton")

        x, results = ours.x, []
        for function in (call, torch.compile(call, backend="aot_eager", fullgraph=True)):
            found = function(x)
            results.append([*found, *torch.autograd.grad(ours.loss(found), x)])
        assert same_bits(*results)

    def test_fake_results_have_the_shapes_of_real_ones(self, pair):
        ours, _ = pair("cornn", steps=2, batch=1, hidden=3, layers=1)
        (V, W, W_z, b), empty = ours.weights[0], torch.empty(0, device=DEVICE)
        values = torch.tensor([0.1, 1.0, 1.0, 0.0], device=DEVICE)
        for policy in ("nothing", "stored", "chunked"):
            arguments = [
                ours.x, [V, b, empty, W, W_z], *ours.start, values, ours.given["elapsed"], None, [],
                "cornn_explicit", 0, True, policy, "float32",
            ]  # fmt: skip
            arguments = tree_map_only(torch.Tensor, torch.Tensor.detach, arguments)
            tests = ("test_schema", "test_faketensor")
            torch.library.opcheck(backend._scan, arguments, test_utils=tests)
            if policy != "nothing":
                output, y, z, *saved = backend._scan(*arguments)
                x, weights, y0, _, *rest = arguments
                settings = ("cornn_explicit", 0, policy, "float32")
                for needs in ((True, True), (False, False)):
                    again = (output, y, z, *saved, x, weights, y0, *rest[:4], *settings, *needs)
                    torch.library.opcheck(backend._scan_backward, again, test_utils=tests)

    def test_second_derivatives_are_refused(self, pair):
        ours, _ = pair("lem", steps=2, batch=1, hidden=2, layers=1)
        output, _, _ = ours.call(backend="triton")
        with pytest.raises(RuntimeError, match=r"differentiated once.*use_backend"):
            torch.autograd.grad(output.sum(), ours.x, create_graph=True)

    def test_masks_and_frozen_weights_need_no_gradient(self, pair):
        ours, truth = pair("unicornn", steps=6, batch=2, hidden=3, layers=2)
        for stack in (ours, truth):
            stack.x.requires_grad_(False)
            stack.given["elapsed"].requires_grad_(False)
            stack.leaves = [stack.weights[0].weight_ih]
        assert off(ours, truth) < BOUND


class TestDispatch:
    def test_needs_tensors_of_one_kind(self, pair):
        ours, _ = pair("lem", steps=2, batch=1, hidden=2, layers=1)
        elapsed = ours.given["elapsed"]
        for changes, words in (
            ({"elapsed": elapsed.double()}, "torch.float64"),
            ({"elapsed": elapsed.half()}, r"torch.float32 beside torch.float16"),
            ({"elapsed": elapsed.to("meta")}, r"a tensor on meta beside one on (cpu|cuda:0)"),
            ({"dt": torch.tensor(0.5, device=DEVICE)}, "a scalar that is a tensor"),
        ):
            with pytest.raises(ValueError, match=rf"backend 'triton' .*; got {words}"):
                ours.call(backend="triton", **changes)

    def test_without_the_interpreter_it_needs_a_gpu(self, make_stack, monkeypatch):
        monkeypatch.setattr(backend, "interpreted", lambda: False)
        stack = make_stack("cornn", dtype=F32, steps=2)
        with pytest.raises(ValueError, match=r"got a tensor on cpu, not on a CUDA device; use"):
            stack.call(backend="triton")

    def test_auto_takes_it_on_gpus_only(self, make_stack, monkeypatch):
        calls = []
        on_gpu = backend.run
        monkeypatch.setattr(backend, "run", lambda *a, **w: calls.append(1) or on_gpu(*a, **w))
        make_stack("cornn", dtype=F32, steps=2).call()
        assert not calls
        if HAS_GPU:
            make_stack("cornn", dtype=F32, steps=2, device="cuda").call()
            assert calls

    def test_says_why_it_is_missing(self, monkeypatch):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        assert "no package triton" in backends._missing()["triton"]


LARGE = [  # T, B, H, L
    (1000, 128, 256, 3),
    (300, 4096, 32, 1),
    (5000, 1, 200, 1),
    (100, 33, 64, 2),
]


@gpu
@needs_gpu
@pytest.mark.long_tiles
@variants
@pytest.mark.parametrize("sizes", LARGE, ids=str)
def test_large_sizes(pair, make_stack, kernel, own, sizes):
    shape = dict(zip(("steps", "batch", "hidden", "layers"), sizes, strict=True))
    if kernel != "unicornn":
        shape["steps"] = min(shape["steps"], 200)
    ours, truth = pair(kernel, own, **shape)
    on_cpu = make_stack(kernel, own, dtype=F32, **shape)
    for stack in (ours, truth, on_cpu):
        with torch.no_grad():
            for weight in stack.weights:
                if kernel == "unicornn":  # larger weights make long sequences chaotic
                    weight.weight_hh.clamp_(-0.2, 0.2)
    expected = run(truth, "auto")
    # Rounding to float32 grows over thousands of steps, on the CPU just as here.
    rounding = stack.furthest(run(on_cpu, "auto"), expected)
    assert stack.furthest(run(ours, "auto"), expected) < max(1e-4, 4 * rounding)


@gpu
@needs_gpu
@pytest.mark.long_tiles
def test_a_million_steps():
    torch.manual_seed(0)
    layer = ah.UnICORNN(1, 32, memory="chunked", dt=0.01).cuda()
    x = torch.randn(1_000_000, 1, 1, device="cuda")
    _, state = layer(x, output="none")
    state.y.sum().backward()
    assert layer.weight_ih_l0.grad.isfinite().all()


@gpu
@needs_gpu
@pytest.mark.long_tiles
@pytest.mark.parametrize("name", ["UnICORNN", "CoRNN", "LEM"])
@pytest.mark.parametrize("hidden", [64, 130])
class TestCuda:
    def make(self, name, hidden):
        torch.manual_seed(0)
        return getattr(ah, name)(3, hidden).cuda(), torch.randn(40, 5, 3, device="cuda")

    def test_is_captured_in_a_graph(self, name, hidden):
        layer, x = self.make(name, hidden)

        def step():
            for p in layer.parameters():
                p.grad = None
            output, _ = layer(x)
            output.square().mean().backward()
            return output

        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = step()
        x.copy_(torch.randn_like(x))
        graph.replay()
        got = [output.clone(), *(p.grad.clone() for p in layer.parameters())]
        expected = [step().detach(), *(p.grad for p in layer.parameters())]
        assert same_bits(got, expected)

    def test_no_operation_waits_for_the_device(self, name, hidden):
        layer, x = self.make(name, hidden)
        layer(x)[0].sum().backward()
        torch.cuda.set_sync_debug_mode("error")
        try:
            layer(x)[0].sum().backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")

    @pytest.mark.skipif(HAS_GPU and torch.cuda.device_count() < 2, reason="needs two GPUs")
    def test_runs_where_its_tensors_are(self, name, hidden):
        layer, x = self.make(name, hidden)
        expected, _ = layer(x)
        output, _ = layer.to("cuda:1")(x.to("cuda:1"))
        assert torch.equal(output.cpu(), expected.cpu())
