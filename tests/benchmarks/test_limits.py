import json

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import anharmonic as ah
from harness import limits
from harness.cases import CASES, Case, make
from harness.speed import measurement

EVEN = dict.fromkeys(("product", "tanh", "memory", "fresh"), 1.0)


@pytest.mark.parametrize("model", ["UnICORNN", "CoRNN", "LEM"])
@pytest.mark.parametrize("layers", [1, 3])
def test_products_are_those_torch_counts_in_the_reference(model, layers):
    case = Case("one", model, layers, 2, 5, 4, 1, 1, inputs=3)
    layer = make("anharmonic", case)
    # With states that are given, the first step has the gradients of every other one.
    zeros = torch.zeros(layers, 2, 5, requires_grad=True)
    with ah.use_backend("reference"), FlopCounterMode(display=False) as counter:
        output, state = layer(torch.randn(4, 2, 3), (zeros, zeros))
        (output.sum() + state.y.sum() + state.z.sum()).backward()
    assert limits.needs(case).product == counter.get_total_flops()


def test_each_need_is_divided_by_its_limit():
    case = Case("one", "LEM", 1, 2, 3, 5, 1, 1)
    wanted = limits.needs(case)
    found = limits.at_least(case, {**EVEN, "tanh": 2.0})
    assert found["tanh"] == pytest.approx(wanted.tanh / 2e9)
    assert found["product"] == pytest.approx(wanted.product / 1e9)
    slow = limits.at_least(case, {**EVEN, "memory": 1e-6})
    assert slow["all"] == slow["memory"] > found["all"] == found["product"] + found["tanh"]


def test_quick_measurement_is_json_and_positive():
    threads = torch.get_num_threads()
    result = limits.measure([1], quick=True)
    assert json.loads(json.dumps(result)) == result
    assert all(value > 0 for value in result["limits"]["1"].values())
    assert torch.get_num_threads() == threads


def test_the_table_has_the_distance_of_measured_times():
    case = CASES[0]
    least = limits.at_least(case, EVEN)["all"]
    computer = {"processor": "A Processor", "cores": 2, "instruction_set": None}
    result = {"machine": computer, "versions": {}, "limits": {"1": {**EVEN, "small_product": 1.0}}}
    times = {"nn.LSTM": 1.0, "anharmonic": 3 * least}
    bench = {"measurements": [measurement(case, "training", 1, times, {})]}
    rows = limits.table(result, bench).splitlines()
    assert next(row for row in rows if case.title in row).endswith("| 3.0 |")
    assert sum(row.endswith("| – | – |") for row in rows) == 8
    bench = {"measurements": [measurement(case.quick(), "training", 1, times, {})]}
    assert "| 3.0 |" not in limits.table(result, bench)
