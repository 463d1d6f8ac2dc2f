"""The compiled backend beside the reference: values, states, gradients, bit for bit promises."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
import torch

import anharmonic as ah
from anharmonic import ops
from anharmonic.ops import library, native
from anharmonic.testing import OpCall, check_op

if library.library() is None:
    pytest.skip(f"no C library: {library.why_not()}", allow_module_level=True)

F32, F64 = torch.float32, torch.float64
VARIANTS = [
    ("cornn", {}),
    ("cornn", {"scheme": "implicit", "trained": True}),
    ("cornn", {"trained": True}),
    ("unicornn", {}),
    ("unicornn", {"skipped_layers": 2}),
    ("lem", {}),
    ("lem", {"gate_floor": 0.3}),
    ("lem", {"multiscale": False}),
]
CALLS = [
    {},
    {"elapsed": True},
    {"lengths": True, "elapsed": True},
    {"masks": True, "lengths": True},
    {"memory": "chunked", "output": "none"},
    {"memory": "chunked", "lengths": True, "elapsed": True, "masks": True, "output": "last"},
]
variants = pytest.mark.parametrize("kernel, own", VARIANTS, ids=str)


@pytest.mark.covering("kernel words", "own")
@variants
@pytest.mark.parametrize("words", CALLS, ids=str)
def test_contract(make_stack, kernel, own, words):
    how = {name: value for name, value in words.items() if name in ("memory", "output")}

    def make(sizes):
        if own.get("skipped_layers"):
            sizes = sizes._replace(layers=max(3, sizes.layers))
        stack = make_stack(kernel, own, **sizes._asdict(), given=words)
        leaves = {f"leaf {k}": leaf for k, leaf in enumerate(stack.leaves)}
        return OpCall(lambda backend: stack.call(backend=backend, **how), leaves)

    check_op(make, "native")


@pytest.mark.covering(2)
@variants
@pytest.mark.parametrize("hidden", [5, 16])
def test_an_infinite_input_stays_where_it_is(make_stack, kernel, own, hidden):
    stack = make_stack(kernel, own, steps=12, hidden=hidden, given=["elapsed"])
    with torch.no_grad():
        stack.x[3, 0, 0], stack.x[5, 1, 1] = math.inf, -math.inf
    native, reference = (stack.values(backend=backend) for backend in ("native", "reference"))
    for got, expected in zip(native, reference, strict=True):
        # A gate that is nearly shut, 1e-308, times infinity is not the NaN of one that is shut.
        assert torch.equal(got.isfinite(), expected.isfinite())
        finite = got.isfinite()
        torch.testing.assert_close(got[finite], expected[finite], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("skipped", [1, 2, 3])
def test_skips_that_begin_above_the_input_or_have_no_matrix(make_stack, skipped):
    five = make_stack("unicornn", {"skipped_layers": skipped}, steps=12, hidden=5, layers=5)
    bare = make_stack("unicornn", {}, steps=12, hidden=5)
    bare.own["skipped_layers"] = skipped
    assert five.off() < 1e-12 and bare.off() < 1e-12


@pytest.mark.parametrize("name", library.available())
def test_every_instruction_set(make_stack, name, select):
    select(name)
    for kernel, own in VARIANTS:
        for dtype, most, hidden in ((F64, 1e-12, 19), (F32, 2e-5, 33)):
            stack = make_stack(kernel, own, steps=70, batch=5, inputs=3, hidden=hidden, dtype=dtype)
            assert stack.off() < most, (kernel, own, dtype)


precisions = pytest.mark.parametrize("precision", ["float32", "bfloat16"])


@pytest.mark.covering(2)
@variants
@precisions
@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_chunked_is_stored_bit_for_bit(make_stack, kernel, own, dtype, precision):
    stack = make_stack(kernel, own, steps=700, batch=5, hidden=7, dtype=dtype)
    number = native.MODELS.index("cornn_explicit" if kernel == "cornn" else kernel)
    size = stack.x.element_size()
    plan = native.plan_call(number, 700, 5, 2, 3, 7, size, "chunked", True, 0, False)
    assert plan.checkpoint < 700
    with ah.use_precision(precision):
        pair = (stack.values(backend="native", memory=memory) for memory in ("stored", "chunked"))
        assert all(map(torch.equal, *pair))


@variants
@precisions
def test_threads_change_no_bit(make_stack, kernel, own, precision, same_bits_with_any_threads):
    stack = make_stack(kernel, own, steps=50, batch=37, hidden=20, dtype=F32)
    with ah.use_precision(precision):
        same_bits_with_any_threads(lambda: stack.values(backend="native"))


@pytest.mark.parametrize("name", ["CoRNN", "LEM", "UnICORNN"])
def test_gradients_hold_no_numbers_below_the_smallest_normal_one(name):
    torch.manual_seed(0)
    layer = getattr(ah, name)(3, 8)
    x = torch.randn(3000, 2, 3, requires_grad=True)
    layer(x)[0][-1].sum().backward()
    size = x.grad.abs()
    assert size[-1].max() > 0 and not ((size > 0) & (size < torch.finfo().tiny)).any()


class TestReversible:
    """UnICORNN on the fixed-point grid."""

    @pytest.mark.parametrize("dtype", [F32, F64], ids=str)
    @pytest.mark.parametrize(
        "dt, alpha, given",
        [(0.0343, 0.0, ["lengths", "masks", "elapsed"]), (0.45, 12.5, ["lengths"])],
        ids=["paper", "stiff"],
    )
    def test_gradients_are_those_of_stored_grid_states(self, make_stack, dtype, dt, alpha, given):
        sizes = {"steps": 2000, "batch": 5, "hidden": 11, "dtype": dtype, "given": given}
        stack, results = make_stack("unicornn", {"skipped_layers": 1}, **sizes), []
        words = {name: stack.given[name] for name in ("lengths", "masks", "elapsed")}
        for memory in ("reversible", "stored", "chunked"):
            found = native.run(
                ops.UnICORNNEquation((dt, dt, dt), alpha, 1), stack.x, stack.weights, stack.start,
                return_sequence=True, memory=memory, grid=True, **words,
            )  # fmt: skip
            results.append([*found, *torch.autograd.grad(stack.loss(found), stack.leaves)])
        for other in results[1:]:
            assert all(map(torch.equal, results[0], other))

    def test_is_near_floating_point_and_the_grid_of_the_reference(self, make_stack):
        stack = make_stack("unicornn", {}, steps=400, batch=4, hidden=11, layers=2)
        exact, grid = (stack.values(backend="native", memory=m) for m in ("auto", "reversible"))
        # 2^-41 per step and state, carried on by a recurrence that does not contract
        assert 0 < stack.furthest(grid, exact) < 1e-7
        stack = make_stack("unicornn", hidden=11)
        # Sums in another order may round to the neighbouring grid point, 2^-40, now and then.
        assert stack.off(memory="reversible") < 1e-10


def evaluate(name, x):
    """An elementary function of the active instruction set."""
    y = torch.empty_like(x)
    function = library.library().an_elementary
    assert function(name.encode(), x.element_size(), x.data_ptr(), y.data_ptr(), x.numel()) == 0
    return y


@pytest.mark.parametrize("name", library.available())
def test_elementary_functions_of_floats(name, select):
    """Every 4999th float32 number there is, infinities and NaN too."""
    select(name)
    every = torch.arange(0, 2**32, 4999, dtype=torch.int64).to(torch.int32).view(F32)
    # below, 1 / (1 + exp(87)) = 1.6e-38 stands for all
    for function, x, most in (("tanh", every, 6), ("sigmoid", every[~(every < -87)], 4)):
        got = evaluate(function, x)
        assert torch.equal(got.isnan(), x.isnan())
        got, exact = got[~x.isnan()], getattr(x[~x.isnan()].double(), function)()
        near = exact.float().abs()
        unit = torch.nextafter(near, torch.tensor(math.inf)).double() - near.double()
        assert ((got.double() - exact).abs() / unit).max() < most
        assert got.abs().max() == 1


@pytest.mark.parametrize("name, most", [("tanh", 6.7e-16), ("sigmoid", 6.7e-16), ("exp", 4.5e-16)])
def test_elementary_functions_of_doubles(name, most):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(100_000, generator=generator, dtype=torch.float64) * 80 - 40
    x = torch.cat([x, x / 40, x * 1e-12])
    exact = getattr(torch, name)(x)
    assert ((evaluate(name, x) - exact).abs() / exact.abs()).max() < most


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_limits_of_elementary_functions(dtype):
    x = torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0, 1e30, -1e30], dtype=dtype)
    tanh, sigmoid = evaluate("tanh", x), evaluate("sigmoid", x)
    torch.testing.assert_close(tanh, torch.tanh(x), rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(sigmoid, torch.sigmoid(x), rtol=0, atol=1e-37, equal_nan=True)
    assert tanh.signbit()[3:5].tolist() == [False, True]


class TestOperators:
    """What torch.compile, export and autograd ask of an operator."""

    @pytest.fixture
    def lem(self, make_stack):
        return make_stack("lem", {}, steps=6, inputs=3, layers=1, given=())

    @pytest.mark.fast("chunked")
    @pytest.mark.parametrize("memory", ["auto", "stored", "chunked"])
    def test_compiles_as_one_graph(self, lem, memory):
        def call(x):
            lem.x = x
            return lem.call(memory=memory, backend="native")

        x, found = lem.x, []
        for function in (call, torch.compile(call, backend="aot_eager", fullgraph=True)):
            results = function(x)
            found.append([*results, *torch.autograd.grad(results[0].sum(), x)])
        assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))

    def test_fake_results_have_the_shapes_and_strides_of_real_ones(self, make_stack):
        stack = make_stack("cornn", {}, steps=6, inputs=3, layers=2, given=())
        empty = torch.empty(0, dtype=F64)
        flat = [w.detach() for layer in stack.weights for w in (*layer, empty)]
        start, whole = [state.detach() for state in stack.start], stack.x.detach()
        model = native.MODELS.index("cornn_explicit")
        plan = native.plan_call(model, 6, 3, 3, 2, 4, 8, "stored", True, 0, False)
        given = (empty, None, None, [], list(plan), [0.1, 1.0, 1.0, 0.0])
        check = partial(torch.library.opcheck, test_utils=("test_schema", "test_faketensor"))
        for x in (
            whole,
            whole.transpose(0, 1).contiguous().transpose(0, 1),
            whole.permute(1, 2, 0).contiguous().permute(2, 0, 1),
        ):
            arguments = (x, flat, *start, *given)
            check(torch.ops.anharmonic.walk.default, arguments)
            backward = (*native.walk(*arguments), x, flat, start[0], *given, True)
            check(torch.ops.anharmonic.walk_backward.default, backward)

    @pytest.mark.parametrize("name", ["dt", "frequency"])
    def test_scalars_with_gradients_take_the_reference(self, make_stack, name):
        stack = make_stack("unicornn", {}, steps=4, layers=1)
        scalar = torch.tensor(0.5, dtype=F64, requires_grad=True)
        stack.own[name] = [scalar] if name == "dt" else scalar
        assert torch.autograd.grad(stack.call()[1].sum(), scalar)[0] != 0
        with pytest.raises(ValueError, match="a scalar that is a tensor"):
            stack.call(backend="native")

    @pytest.mark.parametrize(
        "status, error, words",
        [
            (1, MemoryError, "memory for its tiles"),
            (2, OverflowError, "within the grid"),
            (3, RuntimeError, "of one version"),
        ],
    )
    def test_what_the_library_returns_is_an_error(self, lem, status, error, words, monkeypatch):
        failing = SimpleNamespace(an_forward=lambda call: status)
        monkeypatch.setattr(native, "library", lambda: failing)
        with torch.no_grad(), pytest.raises(error, match=words):
            lem.call(backend="native")

    def test_what_is_kept_goes_back_when_the_graph_dies(self, monkeypatch):
        given, loaded = [], library.library()

        class Counting:
            an_workspace_take = loaded.an_workspace_take

            @staticmethod
            def an_workspace_give(address):
                given.append(address)
                loaded.an_workspace_give(address)

        monkeypatch.setattr(native, "library", Counting)
        kept = native.workspace(1000)
        assert kept.fill_(7).sum() == 7000 and not given
        view = kept[3:]
        del kept
        assert not given
        address = view.data_ptr() - 3
        del view
        assert given == [address]
        with pytest.raises(MemoryError, match="memory for its tiles"):
            native.workspace(2**62)

    @pytest.mark.parametrize(
        "field, value",
        [("steps", 0), ("batch", -1), ("inputs", 0), ("hidden", -1), ("layers", 0), ("block", -1),
         ("sum_rows", 0), ("tile", -1), ("grid", 1), ("model", 77), ("bfloat16", 1)],
    )  # fmt: skip
    def test_calls_that_make_no_sense_are_refused(self, field, value):
        """LEM has no grid, no model has the number 77, and float64 is not rounded to bfloat16."""
        x, y, ends = (
            torch.zeros(shape, dtype=F64) for shape in ((4, 2, 3), (1, 2, 5), (2, 1, 2, 5))
        )
        w = ops.LEMWeights(
            *(torch.zeros(shape, dtype=F64) for shape in ((20, 3), (15, 5), (5, 5))), None
        )
        call = native.prepared_call(ops.LEMEquation(), x, [w], y, "stored")
        call.y0 = call.z0 = y.data_ptr()
        call.y_n, call.z_n = ends[0].data_ptr(), ends[1].data_ptr()
        native.invoke("an_forward", call)
        setattr(call, field, value)
        with pytest.raises(RuntimeError, match="status 3"):
            native.invoke("an_forward", call)

    def test_second_derivatives_are_refused(self, lem):
        output, _, _ = lem.call(backend="native")
        for loss in (output.sum(), output.square().sum()):
            with pytest.raises(RuntimeError, match=r"differentiated once.*use_backend"):
                torch.autograd.grad(loss, lem.x, create_graph=True)
