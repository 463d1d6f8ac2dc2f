import math

import pytest
import torch

from anharmonic import _checks, _tensors


def test_messages_have_three_parts():
    with pytest.raises(ValueError) as caught:
        _checks.number("dt", -1.0, low=0.0, low_open=True)
    assert str(caught.value) == (
        "dt must be a finite number in (0, inf); got dt=-1.0; choose a value inside the interval."
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.1, 1.1, 10**400])
def test_number_refuses_values(value):
    with pytest.raises(ValueError, match=r"p must be a finite number in \[0, 1\]"):
        _checks.number("p", value, low=0.0, high=1.0)


@pytest.mark.parametrize("value", ["1", None, True, torch.tensor(1.0)])
def test_number_refuses_kinds(value):
    with pytest.raises(TypeError, match="pass a plain number"):
        _checks.number("p", value)


def test_interval_ends():
    assert _checks.number("p", 0, low=0.0) == 0.0
    assert isinstance(_checks.number("p", 1), float)
    assert _checks.natural("seed", 7) == 7 and isinstance(_checks.probability("p", 0), float)
    for words in ({"low": 1.0, "low_open": True}, {"high": 1.0, "high_open": True}):
        with pytest.raises(ValueError):
            _checks.number("p", 1.0, **words)


def test_choice_names_the_nearest():
    with pytest.raises(ValueError, match=r"must be one of 'red', 'blue'; got 'bleu'; did you mean"):
        _checks.choice("colour", "bleu", ["red", "blue"])
    with pytest.raises(ValueError, match="got 'RAD'; did you mean 'red'"):
        _checks.choice("colour", "RAD", ["red", "blue"])
    with pytest.raises(ValueError, match="got None; choose one of these names"):
        _checks.choice("colour", None, ["red", "blue"])


def test_positive_int():
    assert _checks.positive_int("n", 1) == 1
    for value in (True, 1.0, "1"):
        with pytest.raises(TypeError, match="n must be an int >= 1"):
            _checks.positive_int("n", value)
    with pytest.raises(ValueError, match="n=0; pass at least 1"):
        _checks.positive_int("n", 0)


def test_no_nan_counts():
    _tensors.no_nan("x", torch.tensor([1.0, math.inf]))
    with pytest.raises(ValueError, match="2 NaN of 3 entries"):
        _tensors.no_nan("x", torch.tensor([1.0, math.nan, math.nan]))


def test_boolean():
    assert _checks.boolean("b", False) is False
    with pytest.raises(TypeError, match=r"b must be True or False; got b=0 \(int\)"):
        _checks.boolean("b", 0)


def test_wrong_dtypes_get_fitting_advice():
    words = {"dtype": torch.float32, "device": torch.device("cpu")}
    with pytest.raises(TypeError, match=r"call x.to\(torch.float32\) or layer.to\(torch.float64\)"):
        _tensors.tensor_like("x", torch.zeros(1, dtype=torch.float64), **words)
    with pytest.raises(TypeError, match=r"call x.to\(torch.float32\)\.$"):
        _tensors.tensor_like("x", torch.zeros(1, dtype=torch.int64), **words)


@pytest.mark.parametrize("value", [-1, 2**32])
def test_natural_refuses_values(value):
    with pytest.raises(
        ValueError, match=rf"seed must be an int in \[0, 2\*\*32\); got seed={value}"
    ):
        _checks.natural("seed", value)


@pytest.mark.parametrize("value", [1.0, True, "1"])
def test_natural_refuses_kinds(value):
    with pytest.raises(TypeError, match=rf"got seed={value!r} .*; pass a whole number"):
        _checks.natural("seed", value)


def test_missing_extra_names_the_extra():
    text = 'training needs the package pyarrow; got .*; run: pip install "anharmonic.train."'
    with pytest.raises(ImportError, match=text):
        raise _checks.missing_extra("pyarrow", "train", "training")


def test_text_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "run.json").write_text('{"a": 1}', encoding="utf-8-sig")
    assert _checks.json_of(_checks.text_of(tmp_path / "run.json")) == {"a": 1}
