"""The compiled backend beside the reference: values, states, gradients, bit for bit promises."""

import math

import pytest
import torch

from anharmonic import ops
from anharmonic.ops import library, native
from anharmonic.testing import OpCall, check_op

if library.library() is None:
    pytest.skip(f"no C library: {library.why_not()}", allow_module_level=True)

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


def weights_of(kernel, own, inputs, hidden, layers, dtype):
    """Random weights of a stack, scaled so that states stay of order one."""

    def draw(*shape):
        return torch.randn(*shape, dtype=dtype) / max(1, shape[-1]) ** 0.5

    stack = []
    for layer in range(layers):
        wide = hidden if layer else inputs
        if kernel == "cornn":
            square = (hidden, hidden)
            w = ops.CoRNNWeights(draw(hidden, wide), draw(*square), draw(*square), draw(hidden))
        elif kernel == "unicornn":
            skips = own.get("skipped_layers") or layers
            skip = None
            if layer >= skips:
                skip = draw(hidden, inputs if layer == skips else hidden)
            w = ops.UnICORNNWeights(
                draw(hidden, wide),
                torch.rand(hidden, dtype=dtype),
                draw(hidden),
                draw(hidden),
                skip,
            )
        else:
            rows = 4 if own.get("multiscale", True) else 2
            w = ops.LEMWeights(
                draw(rows * hidden, wide), draw((rows - 1) * hidden, hidden), draw(hidden, hidden),
                draw(rows * hidden),
            )  # fmt: skip
        stack.append(w)
    return stack


class Case:
    """One call with everything that can get a gradient."""

    def __init__(self, kernel, own, sizes, *, dtype=torch.float64, scale=1.0, **call):
        torch.manual_seed(1)
        steps, batch, inputs, hidden, layers = sizes
        self.kernel, self.own = kernel, {k: v for k, v in own.items() if k != "trained"}
        self.weights = weights_of(kernel, own, inputs, hidden, layers, dtype)
        self.x = scale * torch.randn(steps, batch, inputs, dtype=dtype)
        self.y0, self.z0 = 0.3 * torch.randn(2, layers, batch, hidden, dtype=dtype)
        self.elapsed = 1.5 * torch.rand(steps, batch, dtype=dtype) if "elapsed" in call else None
        self.lengths = torch.randint(1, steps + 1, (batch,)) if "lengths" in call else None
        self.masks = None
        if "masks" in call:
            kept = torch.full((batch, hidden), 0.7, dtype=dtype)
            self.masks = [torch.bernoulli(kept) / 0.7 for _ in range(layers - 1)]
        self.memory, self.output = call.get("memory", "stored"), call.get("output", "all")
        self.scalars = [0.3, 1.3, 0.7]
        if own.get("trained"):
            self.scalars = [torch.tensor(v, dtype=dtype) for v in self.scalars]
        self.seeds = [torch.randn_like(self.y0) for _ in range(2)]
        self.seed = torch.randn(steps, batch, hidden, dtype=dtype)
        self.leaves = [self.x, self.y0, self.z0, *(w for s in self.weights for w in s)]
        self.leaves += [self.elapsed, *self.scalars]
        self.leaves = [t for t in self.leaves if isinstance(t, torch.Tensor)]
        for leaf in self.leaves:
            leaf.requires_grad_(True)

    def call(self, backend, **changed):
        """Outputs and final states."""
        call = {"memory": self.memory, "output": self.output, **changed}
        dt, frequency, damping = self.scalars
        own = dict(self.own)
        if self.kernel == "cornn":
            own |= {"dt": dt, "frequency": frequency, "damping": damping}
        elif self.kernel == "unicornn":
            own |= {"dt": [0.3 + 0.1 * k for k in range(len(self.weights))], "frequency": 1.2}
        else:
            own |= {"dt": 0.8}
        return getattr(ops, self.kernel)(
            self.x, self.weights, self.y0, self.z0, **own, lengths=self.lengths, masks=self.masks,
            elapsed=self.elapsed, backend=backend, **call,
        )  # fmt: skip

    def run(self, backend, **changed):
        """Outputs, final states and the gradient of every leaf."""
        output, y, z = self.call(backend, **changed)
        loss = (y * self.seeds[0]).sum() + (z * self.seeds[1]).sum()
        if output is not None:
            loss = loss + (output * (self.seed if output.dim() == 3 else self.seed[0])).sum()
        gradients = torch.autograd.grad(loss, self.leaves)
        return [t.detach() for t in (output, y, z) if t is not None] + list(gradients)


def furthest(got, expected):
    """The largest difference, relative to the largest entry of each tensor where that exceeds 1."""
    pairs = zip(got, expected, strict=True)
    return max(((a - b).abs().max() / b.abs().max().clamp(min=1)).item() for a, b in pairs)


@pytest.mark.covering("kernel words", "own")
@variants
@pytest.mark.parametrize("words", CALLS, ids=str)
def test_contract(kernel, own, words):
    def make(sizes):
        if own.get("skipped_layers"):
            sizes = sizes._replace(layers=max(3, sizes.layers))
        case = Case(kernel, own, sizes, **words)
        return OpCall(case.call, {f"leaf {k}": leaf for k, leaf in enumerate(case.leaves)})

    check_op(make, "native")


@variants
def test_float32_agrees_with_the_reference(kernel, own):
    sizes = (60, 5, 2, 33, 3)
    case = Case(kernel, own, sizes, dtype=torch.float32, elapsed=True, lengths=True)
    assert furthest(case.run("native"), case.run("reference")) < 2e-5


@pytest.mark.covering(2)
@variants
@pytest.mark.parametrize("hidden", [5, 16])
def test_an_infinite_input_stays_where_it_is(kernel, own, hidden):
    case = Case(kernel, own, (12, 3, 2, hidden, 3), elapsed=True)
    with torch.no_grad():
        case.x[3, 0, 0], case.x[5, 1, 1] = math.inf, -math.inf
    for got, expected in zip(case.run("native"), case.run("reference"), strict=True):
        # A gate that is nearly shut, 1e-308, times infinity is not the NaN of one that is shut.
        assert torch.equal(got.isfinite(), expected.isfinite())
        finite = got.isfinite()
        torch.testing.assert_close(got[finite], expected[finite], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("skipped", [1, 2, 3])
def test_skips_that_begin_above_the_input(skipped):
    case = Case("unicornn", {"skipped_layers": skipped}, (12, 3, 2, 5, 5), lengths=True)
    assert furthest(case.run("native"), case.run("reference")) < 1e-12


def test_missing_parts():
    case = Case("unicornn", {}, (12, 3, 2, 5, 3))
    case.own["skipped_layers"] = 1  # though no layer has a matrix for it
    assert furthest(case.run("native"), case.run("reference")) < 1e-12


@pytest.mark.parametrize("name", library.available())
def test_every_instruction_set(name, select):
    select(name)
    for kernel, own in VARIANTS:
        case = Case(kernel, own, (21, 5, 3, 19, 3), lengths=True, elapsed=True)
        assert furthest(case.run("native"), case.run("reference")) < 1e-12, kernel


@pytest.mark.covering(2)
@variants
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_chunked_is_stored_bit_for_bit(kernel, own, dtype):
    case = Case(kernel, own, (700, 5, 2, 7, 3), dtype=dtype, masks=True, lengths=True, elapsed=True)
    number = native.MODELS.index("cornn_explicit" if kernel == "cornn" else kernel)
    size = case.x.element_size()
    assert (
        native.plan_call(number, 700, 5, 2, 3, 7, size, "chunked", True, 0, False).checkpoint < 700
    )
    for a, b in zip(case.run("native"), case.run("native", memory="chunked"), strict=True):
        assert torch.equal(a, b)


@variants
def test_threads_change_no_bit(kernel, own, same_bits_with_any_threads):
    case = Case(kernel, own, (50, 37, 2, 20, 3), dtype=torch.float32)
    same_bits_with_any_threads(lambda: case.run("native"))


@variants
def test_rows_do_not_see_each_other(kernel, own):
    case = Case(kernel, own, (20, 9, 2, 6, 3))
    whole = case.run("native")[0]
    alone = Case(kernel, own, (20, 9, 2, 6, 3))
    alone.x = case.x[:, 4:5]
    alone.y0, alone.z0 = case.y0[:, 4:5], case.z0[:, 4:5]
    alone.seed, alone.seeds = alone.seed[:, 4:5], [s[:, 4:5] for s in alone.seeds]
    alone.leaves = [t for s in alone.weights for t in s if t is not None]
    assert torch.equal(alone.run("native")[0], whole[:, 4:5])


class TestReversible:
    """UnICORNN on the fixed-point grid."""

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
    @pytest.mark.parametrize("dt, alpha", [(0.0343, 0.0), (0.45, 12.5)], ids=["paper", "stiff"])
    def test_gradients_are_those_of_stored_grid_states(self, dtype, dt, alpha):
        torch.manual_seed(0)
        steps, batch, hidden, layers = 3000, 3, 9, 2
        x = torch.randn(steps, batch, 1, dtype=dtype, requires_grad=True)
        leaves, weights = [x], []
        for layer in range(layers):
            V = torch.randn(hidden, hidden if layer else 1, dtype=dtype)
            w = torch.rand(hidden, dtype=dtype)
            c = torch.randn(hidden, dtype=dtype)
            for t in (V, w, c):
                leaves.append(t.requires_grad_(True))
            weights.append(ops.UnICORNNWeights(V, w, None, c))
        zero = torch.zeros(layers, batch, hidden, dtype=dtype)
        results = []
        for memory in ("reversible", "stored", "chunked"):
            output, y, z = native.run(
                ops.UnICORNNEquation((dt, dt), alpha), x, weights, (zero, zero), lengths=None,
                masks=None, elapsed=None, return_sequence=True, memory=memory, grid=True,
            )  # fmt: skip
            gradients = torch.autograd.grad((y * z).sum() + output.square().mean(), leaves)
            results.append([output, y, z, *gradients])
        for other in results[1:]:
            assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))

    def test_irregular_ragged_and_skipping_is_stored_bit_for_bit(self):
        case = Case(
            "unicornn", {"skipped_layers": 1}, (400, 5, 2, 11, 3), dtype=torch.float32,
            lengths=True, elapsed=True, masks=True,
        )  # fmt: skip
        equation = ops.UnICORNNEquation((0.3, 0.4, 0.5), 1.2, 1)
        results = []
        for memory in ("reversible", "stored"):
            output, y, z = native.run(
                equation, case.x, case.weights, (case.y0, case.z0), lengths=case.lengths,
                masks=case.masks, elapsed=case.elapsed, return_sequence=True,
                memory=memory, grid=True,
            )  # fmt: skip
            leaves = [t for t in case.leaves if t is not None and t.dim() > 0]
            gradients = torch.autograd.grad((y * z).sum() + output.square().sum(), leaves)
            results.append([output, y, z, *gradients])
        assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))

    def test_is_near_floating_point(self):
        case = Case("unicornn", {}, (400, 4, 2, 11, 2), lengths=True, elapsed=True, masks=True)
        exact, grid = case.run("native"), case.run("native", memory="reversible")
        # 2^-41 per step and state, carried on by a recurrence that does not contract
        assert 0 < furthest(grid, exact) < 1e-7

    def test_is_the_grid_of_the_reference(self):
        case = Case("unicornn", {}, (40, 3, 2, 11, 2), memory="reversible")
        # Sums in another order may round to the neighbouring grid point, 2^-40, now and then.
        assert furthest(case.run("native"), case.run("reference")) < 1e-10

    def test_overflow_is_reported(self):
        case = Case("unicornn", {}, (5, 1, 1, 2, 1), memory="reversible")
        case.y0 = case.y0.detach() + 5000
        with pytest.raises(OverflowError, match="1024"):
            ops.unicornn(
                case.x, case.weights, case.y0, case.z0, dt=[0.1], frequency=1.0,
                memory="reversible", backend="native",
            )  # fmt: skip


class TestElementary:
    """The functions of the active instruction set beside float64 mathematics."""

    def evaluate(self, name, x):
        y = torch.empty_like(x)
        status = library.library().an_elementary(
            name.encode(), x.element_size(), x.data_ptr(), y.data_ptr(), x.numel()
        )
        assert status == 0
        return y

    def every_float(self, step):
        """Every `step`-th float32 number there is, infinities and NaN too."""
        bits = torch.arange(0, 2**32, step, dtype=torch.int64)
        return bits.to(torch.int32).view(torch.float32)

    def ulps(self, got, exact):
        finite = exact.isfinite()
        near = exact[finite].float()
        unit = torch.nextafter(near.abs(), torch.tensor(math.inf)).double() - near.abs().double()
        return ((got[finite].double() - exact[finite]).abs() / unit).max().item()

    @pytest.mark.parametrize("name", library.available())
    def test_tanh_of_floats(self, name, select):
        select(name)
        x = self.every_float(4999)
        got = self.evaluate("tanh", x)
        assert torch.equal(got.isnan(), x.isnan())
        assert self.ulps(got[~x.isnan()], x[~x.isnan()].double().tanh()) < 6
        assert got[~x.isnan()].abs().max() == 1

    def test_sigmoid_of_floats(self):
        x = self.every_float(4999)
        x = x[~(x < -87)]  # below, 1 / (1 + exp(87)) = 1.6e-38 stands for all
        got = self.evaluate("sigmoid", x)
        assert torch.equal(got.isnan(), x.isnan())
        assert self.ulps(got[~x.isnan()], x[~x.isnan()].double().sigmoid()) < 4

    @pytest.mark.parametrize(
        "name, most", [("tanh", 6.7e-16), ("sigmoid", 6.7e-16), ("exp", 4.5e-16)]
    )
    def test_doubles(self, name, most):
        generator = torch.Generator().manual_seed(0)
        x = torch.rand(100_000, generator=generator, dtype=torch.float64) * 80 - 40
        x = torch.cat([x, x / 40, x * 1e-12])
        exact = getattr(torch, name)(x)
        assert ((self.evaluate(name, x) - exact).abs() / exact.abs()).max() < most

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
    def test_limits(self, dtype):
        x = torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0, 1e30, -1e30], dtype=dtype)
        tanh = self.evaluate("tanh", x)
        assert tanh[:2].tolist() == [1, -1] and tanh[2].isnan()
        assert tanh[5:].tolist() == [1, -1]
        assert tanh[3:5].signbit().tolist() == [False, True]
        sigmoid = self.evaluate("sigmoid", x)
        assert sigmoid[0] == 1 and sigmoid[1] < 1e-37 and sigmoid[2].isnan()
        assert sigmoid[3] == 0.5


class TestOperators:
    """What torch.compile, export and autograd ask of an operator."""

    def layer_call(self, x, w, zero, memory="auto"):
        return ops.lem(x, [w], zero, zero, dt=0.5, memory=memory, backend="native")

    @pytest.mark.parametrize("kernel", ["cornn", "unicornn", "lem"])
    def test_auto_is_one_call_of_a_whole_stack(self, kernel, monkeypatch):
        case, layers = Case(kernel, {}, (6, 2, 3, 4, 3)), []
        right = native.invoke

        def invoke(function, made):
            if function == "an_forward":
                layers.append(made.layers)
            right(function, made)

        monkeypatch.setattr(native, "invoke", invoke)
        case.run("auto")
        assert layers == [3]

    @pytest.mark.fast("chunked")
    @pytest.mark.parametrize("memory", ["auto", "stored", "chunked"])
    def test_compiles_as_one_graph(self, memory):
        case = Case("lem", {}, (6, 2, 3, 4, 1))
        zero = torch.zeros(1, 2, 4, dtype=torch.float64)
        compiled = torch.compile(self.layer_call, backend="aot_eager", fullgraph=True)
        eager = self.layer_call(case.x, case.weights[0], zero, memory)
        traced = compiled(case.x, case.weights[0], zero, memory)
        assert all(torch.equal(a, b) for a, b in zip(eager, traced, strict=True))
        for results in (eager, traced):
            results[0].sum().backward()
        gradient = case.x.grad / 2
        case.x.grad = None
        self.layer_call(case.x, case.weights[0], zero)[0].sum().backward()
        assert torch.allclose(case.x.grad, gradient, rtol=1e-14)

    def test_fake_results_have_the_shapes_and_strides_of_real_ones(self):
        case = Case("cornn", {}, (6, 2, 3, 4, 2))
        flat = [w for layer in case.weights for w in (*layer, torch.empty(0, dtype=torch.float64))]
        empty = torch.empty(0, dtype=torch.float64)
        cornn = native.MODELS.index("cornn_explicit")
        settings = (
            list(native.plan_call(cornn, 6, 2, 3, 2, 4, 8, "stored", True, 0, False)),
            [0.1, 1.0, 1.0, 0.0],
        )
        for x in (
            case.x,
            case.x.transpose(0, 1).contiguous().transpose(0, 1),
            case.x.permute(1, 2, 0).contiguous().permute(2, 0, 1),
        ):
            arguments = (
                x.detach(), [w.detach() for w in flat], case.y0.detach(), case.z0.detach(),
                empty, None, None, [], *settings,
            )  # fmt: skip
            torch.library.opcheck(
                torch.ops.anharmonic.walk.default, arguments,
                test_utils=("test_schema", "test_faketensor"),
            )  # fmt: skip
            output, y, z, saved = native.walk(*arguments)
            backward = (
                output, y, z, saved, x.detach(), arguments[1], arguments[2], empty, None, None, [],
                *settings, True,
            )  # fmt: skip
            torch.library.opcheck(
                torch.ops.anharmonic.walk_backward.default, backward,
                test_utils=("test_schema", "test_faketensor"),
            )  # fmt: skip

    @pytest.mark.parametrize("scalar", [0.5, [0.5]], ids=str)
    def test_scalars_with_gradients_take_the_reference(self, scalar):
        case = Case("unicornn", {}, (4, 2, 1, 3, 1))
        dt = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
        call = {"dt": [dt], "frequency": 1.0} if isinstance(scalar, list) else None
        call = call or {"dt": [0.5], "frequency": dt}
        _, y, _ = ops.unicornn(case.x, case.weights, case.y0, case.z0, **call)
        assert torch.autograd.grad(y.sum(), dt)[0] != 0
        with pytest.raises(ValueError, match="a scalar that is a tensor"):
            ops.unicornn(
                case.x, case.weights, case.y0, case.z0, **call, backend="native"
            )  # fmt: skip

    @pytest.mark.parametrize(
        "status, error, words",
        [
            (1, MemoryError, "memory for its tiles"),
            (2, OverflowError, "within the grid"),
            (3, RuntimeError, "of one version"),
        ],
    )
    def test_what_the_library_returns_is_an_error(self, status, error, words, monkeypatch):
        class Failing:
            def an_forward(self, _):
                return status

        monkeypatch.setattr(native, "library", Failing)
        case = Case("lem", {}, (4, 2, 1, 3, 1))
        with torch.no_grad(), pytest.raises(error, match=words):
            self.layer_call(case.x, case.weights[0], case.y0)

    def test_what_is_kept_goes_back_when_the_graph_dies(self):
        given = []
        take, give = library.library().an_workspace_take, library.library().an_workspace_give

        class Counting:
            an_workspace_take = staticmethod(take)

            @staticmethod
            def an_workspace_give(address):
                given.append(address)
                give(address)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native, "library", Counting)
            kept = native.workspace(1000)
        assert kept.fill_(7).sum() == 7000 and not given
        view = kept[3:]
        del kept
        assert not given
        address = view.data_ptr() - 3
        del view
        assert given == [address]

    def test_no_memory_to_keep_is_an_error(self):
        with pytest.raises(MemoryError, match="memory for its tiles"):
            native.workspace(2**62)

    @pytest.mark.parametrize(
        "field, value",
        [("steps", 0), ("batch", -1), ("inputs", 0), ("hidden", -1), ("layers", 0), ("block", -1),
         ("sum_rows", 0), ("tile", -1), ("grid", 1), ("model", 77)],
    )  # fmt: skip
    def test_calls_that_make_no_sense_are_refused(self, field, value):
        """LEM has no grid, and no model has the number 77."""
        x, y = torch.zeros(4, 2, 3), torch.zeros(1, 2, 5)
        w = ops.LEMWeights(torch.zeros(20, 3), torch.zeros(15, 5), torch.zeros(5, 5), None)
        call = native.prepared_call(ops.LEMEquation(), x, [w], y, "stored")
        ends = torch.zeros(2, 1, 2, 5)
        call.y0 = call.z0 = y.data_ptr()
        call.y_n, call.z_n = ends[0].data_ptr(), ends[1].data_ptr()
        native.invoke("an_forward", call)
        setattr(call, field, value)
        with pytest.raises(RuntimeError, match="status 3"):
            native.invoke("an_forward", call)

    def test_second_derivatives_are_refused(self):
        case = Case("lem", {}, (4, 2, 1, 3, 1))
        output, _, _ = self.layer_call(case.x, case.weights[0], case.y0)
        for loss in (output.sum(), output.square().sum()):
            with pytest.raises(RuntimeError, match=r"differentiated once.*use_backend"):
                torch.autograd.grad(loss, case.x, create_graph=True)

    def test_transposed_input_gives_transposed_output(self):
        case = Case("lem", {}, (6, 3, 2, 4, 1))
        x = case.x.detach().transpose(0, 1).contiguous().transpose(0, 1)
        output, _, _ = self.layer_call(x, case.weights[0], case.y0)
        assert output.transpose(0, 1).is_contiguous()
        assert torch.equal(output, self.layer_call(case.x, case.weights[0], case.y0)[0])

    def test_needs_plain_cpu_tensors_of_one_kind(self):
        case = Case("lem", {}, (4, 2, 1, 3, 1), dtype=torch.float32)
        with pytest.raises(ValueError, match=r"float32 beside torch.float64"):
            self.layer_call(case.x, case.weights[0], case.y0.double())
