"""Speed and memory: who takes turns, what is timed and checked, what is computed from it."""

import gc
import importlib.util
import os
from dataclasses import replace

import pytest
import torch

import bench
import compiled
import cpu
import gpu
import memory
import scaling
from anharmonic.nn import model_class
from anharmonic.ops import library
from cpu import CASES, make, small, work
from harness import results, speed
from harness.speed import Case

HAS_GPU = torch.cuda.is_available()
can_reset_the_peak = pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="this system cannot reset the peak"
)


@pytest.mark.covering
@pytest.mark.parametrize("entrant", cpu.ENTRANTS)
@pytest.mark.parametrize("name", CASES)
def test_every_entrant_has_the_sizes_and_trains_only_where_it_should(entrant, name, monkeypatch):
    if entrant == cpu.PEER:
        pytest.importorskip(cpu.PEER)
    case, made = small(CASES[name]), []
    monkeypatch.setattr(cpu, "make", lambda *of: made.append(make(*of)) or made[-1])
    for mode in cpu.modes(case):
        turned = work(entrant, case, mode, 3)()
        assert mode != "inference" or not turned[0].requires_grad
        has_gradients = {weight.grad is not None for weight in made[-1].parameters()}
        assert has_gradients == {mode == "training"}
    output, _ = made[-1](torch.zeros(3, case.batch, 1))
    assert output.shape == (3, case.batch, case.hidden)


def test_streams_use_step_and_carry_the_state(monkeypatch):
    case, seen = small(CASES["lem-streaming"]), []
    step = model_class(case.model).step

    def watched(self, x_t, state=None):
        seen.append((tuple(x_t.shape), state is None))
        return step(self, x_t, state)

    monkeypatch.setattr(model_class(case.model), "step", watched)
    work("anharmonic", case, "streaming", 3)()
    assert seen == [((1, 1), True), ((1, 1), False), ((1, 1), False)]


def test_loops_that_would_take_seconds_and_missing_packages_are_left_out(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(cpu, "_guess", lambda *a: 12.3)
    found = cpu.times("unicornn-b32", "training", torch.get_num_threads(), quick=True)
    assert found["left_out"] == {"reference": "about 12 s", "torchrecurrent": "not installed"}
    assert set(found["seconds"]) == {"nn.LSTM", "anharmonic", "nn.GRU"}


def test_the_best_round_counts_and_a_stream_is_timed_by_the_step(monkeypatch):
    rounds = [{"nn.LSTM": 4.0, "anharmonic": 1.0}, {"nn.LSTM": 2.0, "anharmonic": 3.0}]
    monkeypatch.setattr(cpu, "work", lambda *a: None)
    monkeypatch.setattr(cpu, "ENTRANTS", ("nn.LSTM", "anharmonic"))
    monkeypatch.setattr(cpu, "medians", lambda *a, **k: rounds.pop(0))
    monkeypatch.setattr(cpu, "ROUNDS", 2)
    found = cpu.times("lem-streaming", "streaming", torch.get_num_threads())
    expected = {"nn.LSTM": 2.0 / cpu.STREAM_STEPS, "anharmonic": 1.0 / cpu.STREAM_STEPS}
    assert found["seconds"] == expected


def test_turns_alternate_without_garbage_and_the_median_of_those_after_the_first_counts():
    now, order = [0.0], []
    seconds = {
        "ours": [9.0, 0.2, 7.0, 0.2],
        "theirs": [9.0, 2.0, 2.0, 8.0],
        "loop": [9.0, 3.0, 5.0],
    }

    def turn(name):
        order.append((name, gc.isenabled()))
        now[0] += seconds[name].pop(0)

    turns = {name: lambda name=name: turn(name) for name in seconds}
    found = speed.medians(turns, 3, slow=("loop",), clock=lambda: now[0])
    assert found == pytest.approx({"ours": 0.2, "theirs": 2.0, "loop": 4.0})
    rounds = [("ours", False), ("theirs", False), ("loop", False)]
    assert order == [*rounds * 3, *rounds[:2]] and gc.isenabled()


@can_reset_the_peak
@pytest.mark.slow
def test_a_step_of_ones_own_through_a_million_time_steps_takes_under_5_mb():
    chunked, stored = (
        speed.isolated(compiled.long_step, 1_000_000, policy)["megabytes"]
        for policy in ("chunked", "stored")
    )
    # A float of every neuron and step: the measure sees it.
    assert chunked < 5 and stored > 128


def test_memory_of_every_case(measured):
    pytest.importorskip("torch_geometric", reason="the convolution is PyG's")
    found = measured("memory")
    # The kernel counts pages in batches: a step that needs nothing may end a little below zero.
    assert all(one["is_finite"] and one["peak_mb"] > -1 for one in found)
    tables = memory.tables(found)
    assert all(f"| {title} |" in tables["memory"] for title in memory.SEQUENCES)
    assert "| GraphCON, Adjacency, checkpoint |" in tables["graph-memory"]
    assert tables["large-graph-memory"].count(" MB ") == 4
    assert "NOT" not in "".join(tables.values())
    found[0]["is_finite"] = False
    assert "NOT FINITE" in memory.tables(found)["memory"]


@can_reset_the_peak
@pytest.mark.slow
def test_the_peak_is_that_of_the_step_and_grows_with_its_length():
    cases = [Case("nn.LSTM", 1, 8, 128, steps) for steps in (1000, 3000)]
    short, long = (speed.isolated(memory.sequence_step, case)["peak_mb"] for case in cases)
    # At least output, gates, cells and the gradient of the output are held.
    assert short > 4 * 1000 * 8 * 128 * 7 / 1e6
    assert 2.5 < long / short < 3.5


def test_costs_of_processes_by_formula():
    assert scaling.speed_up(1, 64, 1.0, 0.1, 0.0) == pytest.approx(1)
    most = (1 + 0.1 * 64) / (1 + 0.1)  # a share of one sequence is the end
    assert scaling.speed_up(64, 64, 1.0, 0.1, 0.0) == pytest.approx(most)
    assert scaling.speed_up(128, 64, 1.0, 0.1, 0.0) == pytest.approx(most)
    assert scaling.speed_up(64, 64, 1.0, 0.1, 0.5) < most
    # A ring pays for each process, a tree for each doubling.
    assert scaling.reduce_formula(2, 0, 1.0, 1.0) == 2
    assert scaling.reduce_formula(1024, 0, 1.0, 1.0) == 2046
    assert scaling.reduce_formula(1024, 0, 1.0, 1.0, tree=True) == 20


@pytest.mark.parametrize("case", gpu.CASES, ids=gpu.title)
def test_every_case_of_the_gpu_is_near_float64(case):
    rounded = case.precision == "bfloat16" and library.has_bfloat16()
    error = gpu.error_of(replace(case, hidden=4, steps=9), device="cpu")
    assert 0 < error < (2e-2 if rounded else 1e-4)


def test_an_error_on_the_gpu_is_seen(monkeypatch):
    case, make = replace(gpu.CASES[-1], hidden=4, steps=9), gpu.layer_of

    def spoilt(case):
        layer = make(case)
        layer.forward = lambda x, forward=layer.forward: (forward(x)[0] * 1.01, None)
        return layer

    monkeypatch.setattr(gpu.copy, "deepcopy", lambda layer: make(case))
    monkeypatch.setattr(gpu, "layer_of", spoilt)
    assert gpu.error_of(case, device="cpu") > 5e-3
    for error in (1e-3, float("nan")):
        one = {**results.read("gpu")[0], "error": error}
        assert "| WRONG |" in gpu.tables([one])["gpu"]


@pytest.mark.skipif(HAS_GPU, reason="there is a CUDA device")
def test_without_a_gpu_it_says_so(capsys):
    with pytest.raises(SystemExit) as stopped:
        bench.main(["gpu"])
    assert stopped.value.code == 2
    assert "gpu needs a CUDA device" in capsys.readouterr().out


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
def test_the_gpu_is_measured_in_small(capsys):
    assert bench.main(["gpu", "--quick"]) == 0
    assert "WRONG" not in capsys.readouterr().out
