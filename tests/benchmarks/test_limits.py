import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import anharmonic as ah
import limits
from cpu import CASES, Case, make

EVEN = dict.fromkeys(("product", "tanh", "memory", "fresh"), 1.0)


@pytest.mark.parametrize("model", ["UnICORNN", "CoRNN", "LEM"])
@pytest.mark.parametrize("layers", [1, 3])
def test_products_are_those_torch_counts_in_the_reference(model, layers):
    case = Case("one", model, layers, 2, 5, 4, inputs=3)
    layer = make("anharmonic", case)
    # With states that are given, the first step has the gradients of every other one.
    zeros = torch.zeros(layers, 2, 5, requires_grad=True)
    with ah.use_backend("reference"), FlopCounterMode(display=False) as counter:
        output, state = layer(torch.randn(4, 2, 3), (zeros, zeros))
        (output.sum() + state.y.sum() + state.z.sum()).backward()
    assert limits.needs(case)["product"] == counter.get_total_flops()


def test_each_need_is_divided_by_its_limit():
    case = Case("one", "LEM", 1, 2, 3, 5)
    wanted = limits.needs(case)
    found = limits.at_least(case, {**EVEN, "tanh": 2.0})
    assert found["tanh"] == pytest.approx(wanted["tanh"] / 2e9)
    assert found["product"] == pytest.approx(wanted["product"] / 1e9)
    slow = limits.at_least(case, {**EVEN, "memory": 1e-6})
    assert slow["all"] == slow["memory"] > found["all"] == found["product"] + found["tanh"]


def test_a_quick_measurement_is_positive(in_this_process, quick):
    measure = next(iter(limits.cases(quick).values()))
    assert all(value > 0 for value in measure().values())


def test_the_table_has_the_distance_of_measured_times(monkeypatch, environment):
    case = CASES["unicornn-b32"]
    least = limits.at_least(case, EVEN)["all"]
    stored = {"name": case.name, "mode": "training", "threads": 1}
    stored["seconds"] = {"nn.LSTM": 1.0, "anharmonic": 3 * least}
    monkeypatch.setattr(limits, "read", lambda question: [stored])
    result = {"case": "1 thread", **EVEN, "small_product": 1.0, **environment}
    rows = limits.tables([result])["limits"].splitlines()
    assert next(row for row in rows if case.title in row).endswith("| 3.0 |")
    assert sum(row.endswith("| – | – |") for row in rows) == 8
