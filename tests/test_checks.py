import math

import pytest
import torch

from anharmonic import _checks, _tensors

UNIT, COLOURS = {"low": 0.0, "high": 1.0}, {"allowed": ["red", "blue"]}


@pytest.mark.parametrize(
    "check, value, options, words",
    [
        *((_checks.number, value, UNIT, r"p must be a finite number in \[0, 1\]; got p=")
          for value in (-math.inf, -0.1, 1.1)),
        (_checks.number, 1.0, {"low": 1.0, "low_open": True}, "choose a value inside"),
        (_checks.number, 1.0, {"high": 1.0, "high_open": True}, "choose a value inside"),
        *((_checks.natural, value, {}, r"p must be an int in \[0, 2\*\*32\); got p=")
          for value in (-1, 2**32)),
        (_checks.choice, "bleu", COLOURS, r"one of 'red', 'blue'; got 'bleu'; did you mean 'blue'"),
        (_checks.choice, "RAD", COLOURS, "got 'RAD'; did you mean 'red'"),
        (_checks.choice, None, COLOURS, "got None; choose one of these names"),
        (_tensors.no_nan, torch.tensor([1.0, math.nan, math.nan]), {}, "2 NaN of 3 entries"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(check, value, options, words):
    with pytest.raises(ValueError, match=words):
        check("p", value, **options)


def test_what_fits_is_returned():
    assert _checks.number("p", 0, low=0.0) == 0.0 and isinstance(_checks.number("p", 1), float)
    assert _checks.natural("p", 7) == 7 and isinstance(_checks.probability("p", 0), float)
    assert _checks.positive_int("p", 1) == 1 and _checks.boolean("p", False) is False
    _tensors.no_nan("x", torch.tensor([1.0, math.inf]))


def test_wrong_dtypes_get_fitting_advice():
    words = {"dtype": torch.float32, "device": torch.device("cpu")}
    with pytest.raises(TypeError, match=r"call x.to\(torch.float32\) or layer.to\(torch.float64\)"):
        _tensors.tensor_like("x", torch.zeros(1, dtype=torch.float64), **words)
    with pytest.raises(TypeError, match=r"call x.to\(torch.float32\)\.$"):
        _tensors.tensor_like("x", torch.zeros(1, dtype=torch.int64), **words)


def test_text_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "run.json").write_text('{"a": 1}', encoding="utf-8-sig")
    assert _checks.json_of(_checks.text_of(tmp_path / "run.json")) == {"a": 1}
