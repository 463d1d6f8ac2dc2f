import pytest
import torch

import anharmonic as ah
from anharmonic.ops import precision


def test_holds_in_its_block():
    with ah.use_precision("tf32"):
        with ah.use_precision("bfloat16"):
            assert precision.current_precision() == "bfloat16"
        assert precision.current_precision() == "tf32"
    assert precision.current_precision() == "float32"
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
            with precision.library_products(wanted, cpu):
                assert torch.backends.cuda.matmul.fp32_precision == expected
            with pytest.raises(RuntimeError), precision.library_products(wanted, cpu):
                raise RuntimeError
        assert torch.backends.cuda.matmul.fp32_precision == resolved
        assert torch.get_float32_matmul_precision() == switch
    finally:
        torch.set_float32_matmul_precision(before)


def test_products_sum_in_float32():
    a, b = torch.full((1, 1024), 1.0), torch.full((1024, 1), 1 + 2**-12)
    exact = (a.double() @ b.double()).float()
    rounded = [precision.operand(value, "bfloat16") for value in (a, b)]
    assert precision.product(a, b) == exact
    assert precision.product(*rounded) == 1024  # 2^-12 is lost in an operand, not in the sum
    total = torch.ones(1, 1)
    precision.add_product(total, *rounded)
    precision.add_product(total, a, b)
    assert total == 1 + 1024 + exact
    assert precision.product(*rounded).dtype is torch.float32


def test_autocast_does_not_reach_products():
    a = torch.full((1, 1), 1 + 2**-12)
    cpu = torch.device("cpu")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.mm(a, a).dtype is torch.bfloat16
        with precision.library_products("float32", cpu):
            assert precision.product(a, a) == a.square()
