import pytest
import torch
from torch.overrides import TorchFunctionMode

import anharmonic as ah
from anharmonic.ops import backend, library, native
from anharmonic.ops.gpu import products


def test_holds_in_its_block():
    with ah.use_precision("tf32"):
        with ah.use_precision("bfloat16"):
            assert backend.current_precision() == "bfloat16"
        assert backend.current_precision() == "tf32"
    assert backend.current_precision() == "float32"
    with pytest.raises(ValueError, match=r"precision must be one of 'float32', 'tf32', 'bfloat16'"):
        ah.use_precision("float16").__enter__()


@pytest.mark.parametrize("switch", ["highest", "high"])
def test_pytorchs_own_switch_is_put_back(switch):
    cpu = torch.device("cpu")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(switch)
    try:
        resolved = torch.backends.cuda.matmul.fp32_precision
        for wanted, expected in (("float32", "ieee"), ("tf32", "tf32"), ("bfloat16", "ieee")):
            with products.library_products(wanted, cpu):
                assert torch.backends.cuda.matmul.fp32_precision == expected
            with pytest.raises(RuntimeError), products.library_products(wanted, cpu):
                raise RuntimeError
        assert torch.backends.cuda.matmul.fp32_precision == resolved
        assert torch.get_float32_matmul_precision() == switch
    finally:
        torch.set_float32_matmul_precision(before)


def test_products_sum_in_float32():
    a, b = torch.full((1, 1024), 1.0), torch.full((1024, 1), 1 + 2**-12)
    exact = (a.double() @ b.double()).float()
    rounded = [products.operand(value, "bfloat16") for value in (a, b)]
    assert products.product(a, b) == exact
    assert products.product(*rounded) == 1024  # 2^-12 is lost in an operand, not in the sum
    assert products.product(*rounded).dtype is torch.float32
    total = torch.ones(1, 1)
    products.add_product(total, *rounded)
    products.add_product(total, a, b)
    assert total == 1 + 1024 + exact
    a = torch.full((1, 1), 1 + 2**-12)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.mm(a, a).dtype is torch.bfloat16
        with products.library_products("float32", torch.device("cpu")):
            assert products.product(a, a) == a.square()


def _rounded(value):
    return value.to(torch.bfloat16).to(value.dtype)


def _rounded_product(a, b):
    """A B, and its gradients, with the operands of every product rounded to bfloat16."""
    a, b = (value + (_rounded(value) - value).detach() for value in (a, b))
    product = a @ b
    if product.requires_grad:
        product.register_hook(_rounded)
    return product


class _RoundingProducts(TorchFunctionMode):
    """Within it PyTorch's products, as the reference makes them, round their operands."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.nn.functional.linear:
            x, weight, *bias = args
            return sum(bias, _rounded_product(x, weight.t()))
        if func is torch.addmm:
            total, a, b = args
            return total + _rounded_product(a, b)
        return func(*args, **(kwargs or {}))


def _results(layer, x):
    """Output, final state and all gradients."""
    x = x.clone().requires_grad_()
    output, state = layer(x)
    # Of one sign: gradients that cancel would show the errors of rounding many times larger.
    loss = sum(value.sum() for value in (output, *state))
    return [output, *state, *torch.autograd.grad(loss, [x, *layer.parameters()])]


def _distance(results, exact):
    pairs = zip(results, exact, strict=True)
    return max(float(((a - b).norm() / b.norm()).detach()) for a, b in pairs)


has_bfloat16 = pytest.mark.skipif(
    not library.has_bfloat16(), reason="this processor has no products in bfloat16"
)
MODELS = [
    ("LEM", {}),
    ("LEM", {"multiscale": False, "dt": 0.3}),
    ("CoRNN", {}),
    ("CoRNN", {"scheme": "explicit"}),
    ("UnICORNN", {"num_layers": 3, "skipped_layers": 2}),
]


@pytest.fixture(params=[False, True] if library.has_amx() else [False], ids=str)
def amx(request):
    """Whether products use AMX; without it they use AVX512-BF16."""
    library.use_amx(request.param)
    yield
    library.use_amx(True)


@pytest.mark.skipif(not library.has_amx(), reason="no AMX")
def test_the_registers_of_amx_are_asked_for_at_the_first_product_in_bfloat16(run_python):
    code = """
import ctypes, torch, anharmonic as ah
def asked():
    kinds = ctypes.c_uint64()
    ctypes.CDLL(None).syscall(158, 0x1022, ctypes.byref(kinds))  # ARCH_GET_XCOMP_PERM
    return bool(kinds.value >> 18 & 1)
layer = ah.LEM(1, 2)
layer(torch.ones(3, 1, 1))
before = asked()
with ah.use_precision("bfloat16"):
    layer(torch.ones(3, 1, 1))
print(before, asked())
"""
    assert run_python(code).stdout == "False True\n"


@has_bfloat16
@pytest.mark.usefixtures("amx")
class TestBfloat16OnACPU:
    @pytest.mark.covering(2)
    @pytest.mark.parametrize(("name", "options"), MODELS)
    @pytest.mark.parametrize(
        ("batch", "hidden", "inputs"), [(1, 5, 1), (3, 37, 3), (17, 70, 21), (33, 9, 530)]
    )
    def test_only_operands_of_products_are_rounded(self, name, options, batch, hidden, inputs):
        torch.manual_seed(0)
        layer = getattr(ah, name)(inputs, hidden, **{"num_layers": 2} | options)
        x = torch.randn(40, batch, inputs)
        with ah.use_backend("reference"):
            exact = _results(layer, x)
            with _RoundingProducts():
                rounded = _results(layer, x)
        with ah.use_precision("bfloat16"):
            results = _results(layer, x)
        # A state that differs in its last bit is sometimes rounded to another neighbour.
        assert _distance(results, rounded) < 1e-3 < _distance(results, exact) < 2e-2

    def test_the_backward_pass_takes_the_precision_of_the_forward_pass(self):
        torch.manual_seed(0)
        layer, x, grads = ah.LEM(3, 9), torch.randn(20, 2, 3), []
        half, single = "bfloat16", "float32"
        for forward, backward in ((half, half), (half, single), (single, single)):
            layer.zero_grad()
            with ah.use_precision(forward):
                output, _ = layer(x)
            with ah.use_precision(backward):
                output.sum().backward()
            grads.append(layer.weight_hh_l0.grad)
        assert torch.equal(*grads[:2]) and not torch.equal(*grads[1:])

    @pytest.mark.parametrize("name", ["LEM", "CoRNN", "UnICORNN"])
    def test_streamed_steps_are_those_of_the_layer(self, name):
        torch.manual_seed(0)
        layer, x = getattr(ah, name)(3, 33), torch.randn(6, 2, 3)
        with torch.no_grad():
            streamed, state = [], None
            for precision_of_step, x_t in zip(["bfloat16"] * 4 + ["float32"] * 2, x, strict=True):
                with ah.use_precision(precision_of_step):
                    y, state = layer.step(x_t, state)
                streamed.append(y)
            with ah.use_precision("bfloat16"):
                begin, middle = layer(x[:4])
            end, _ = layer(x[4:], middle)
        assert torch.equal(torch.stack(streamed), torch.cat([begin, end]))

    def test_infinity_and_nan_stay_in_their_sequence(self):
        torch.manual_seed(0)
        layer, x = ah.CoRNN(3, 5), torch.randn(3, 3, 3)
        x[1, 0, 2], x[1, 1, 2] = torch.inf, torch.nan
        with torch.no_grad():
            with ah.use_precision("bfloat16"):
                output, _ = layer(x)
            torch.testing.assert_close(output, layer(x)[0], rtol=0.02, atol=1e-4, equal_nan=True)
        assert output[1:, 1].isnan().all() and output[:, [0, 2]].isfinite().all()

    def test_float64_is_not_rounded(self):
        layer, x = ah.LEM(2, 3).double(), torch.randn(4, 1, 2).double()
        with ah.use_precision("bfloat16"):
            output, _ = layer(x)
        assert torch.equal(output, layer(x)[0])

    def test_only_avx512_has_it(self, select):
        for name in library.available():
            select(name)
            assert library.has_bfloat16() == (name == "avx512")


@pytest.mark.skipif(library.library() is None, reason="needs the C library")
def test_elsewhere_products_stay_in_float32_and_a_warning_says_so_once(monkeypatch):
    monkeypatch.setattr(native, "has_bfloat16", lambda: False)
    native._warn_of_float32.cache_clear()
    layer, x = ah.LEM(2, 3), torch.randn(4, 1, 2)
    with pytest.warns(UserWarning, match="AVX512-BF16") as said:
        for _ in range(2):
            with ah.use_precision("bfloat16"):
                output, _ = layer(x)
    assert len(said) == 1
    assert torch.equal(output, layer(x)[0])
