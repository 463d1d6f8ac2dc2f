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


UNIT = {"low": 0.0, "high": 1.0}
REFUSED = [
    *((_checks.number, value, UNIT, ValueError, r"p must be a finite number in \[0, 1\]; got p=")
      for value in (math.nan, math.inf, -math.inf, -0.1, 1.1, 10**400)),
    *((_checks.number, value, {}, TypeError, "pass a plain number")
      for value in ("1", None, True, torch.tensor(1.0))),
    (_checks.number, 1.0, {"low": 1.0, "low_open": True}, ValueError, "choose a value inside"),
    (_checks.number, 1.0, {"high": 1.0, "high_open": True}, ValueError, "choose a value inside"),
    *((_checks.positive_int, value, {}, TypeError, "p must be an int >= 1")
      for value in (True, 1.0, "1")),
    (_checks.positive_int, 0, {}, ValueError, "p=0; pass at least 1"),
    *((_checks.natural, value, {}, ValueError, r"p must be an int in \[0, 2\*\*32\); got p=")
      for value in (-1, 2**32)),
    *((_checks.natural, value, {}, TypeError, "pass a whole number") for value in (1.0, True, "1")),
    (_checks.boolean, 0, {}, TypeError, r"p must be True or False; got p=0 \(int\)"),
]  # fmt: skip


@pytest.mark.parametrize("check, value, options, error, words", REFUSED)
def test_what_does_not_fit_is_refused(check, value, options, error, words):
    with pytest.raises(error, match=words):
        check("p", value, **options)


def test_what_fits_is_returned():
    assert _checks.number("p", 0, low=0.0) == 0.0 and isinstance(_checks.number("p", 1), float)
    assert _checks.natural("p", 7) == 7 and isinstance(_checks.probability("p", 0), float)
    assert _checks.positive_int("p", 1) == 1 and _checks.boolean("p", False) is False


def test_choice_names_the_nearest():
    with pytest.raises(ValueError, match=r"must be one of 'red', 'blue'; got 'bleu'; did you mean"):
        _checks.choice("colour", "bleu", ["red", "blue"])
    with pytest.raises(ValueError, match="got 'RAD'; did you mean 'red'"):
        _checks.choice("colour", "RAD", ["red", "blue"])
    with pytest.raises(ValueError, match="got None; choose one of these names"):
        _checks.choice("colour", None, ["red", "blue"])


def test_no_nan_counts():
    _tensors.no_nan("x", torch.tensor([1.0, math.inf]))
    with pytest.raises(ValueError, match="2 NaN of 3 entries"):
        _tensors.no_nan("x", torch.tensor([1.0, math.nan, math.nan]))


def test_wrong_dtypes_get_fitting_advice():
    words = {"dtype": torch.float32, "device": torch.device("cpu")}
    with pytest.raises(TypeError, match=r"call x.to\(torch.float32\) or layer.to\(torch.float64\)"):
        _tensors.tensor_like("x", torch.zeros(1, dtype=torch.float64), **words)
    with pytest.raises(TypeError, match=r"call x.to\(torch.float32\)\.$"):
        _tensors.tensor_like("x", torch.zeros(1, dtype=torch.int64), **words)


def test_missing_extra_names_the_extra():
    text = 'training needs the package pyarrow; got .*; run: pip install "anharmonic.train."'
    with pytest.raises(ImportError, match=text):
        raise _checks.missing_extra("pyarrow", "train", "training")


def test_text_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "run.json").write_text('{"a": 1}', encoding="utf-8-sig")
    assert _checks.json_of(_checks.text_of(tmp_path / "run.json")) == {"a": 1}
