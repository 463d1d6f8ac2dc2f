import dataclasses
import gc
import json
import statistics

import pytest
import torch

from harness import speed
from harness.cases import CASES

QUICK = CASES[0].quick()


def test_the_result_is_json_with_machine_versions_and_ratios(in_this_process):
    said = []
    result = speed.measure([QUICK], threads=[1, 2], repeats=1, rounds=1, say=said.append)
    assert json.loads(json.dumps(result)) == result
    assert set(result) == {
        "format", "finished", "machine", "versions", "commit", "date", "settings", "measurements",
    }  # fmt: skip
    assert {"processor", "cores", "instruction_set"} <= set(result["machine"])
    assert {"torch", "anharmonic", "torchrecurrent"} <= set(result["versions"])
    modes = [(one["mode"], one["threads"]) for one in result["measurements"]]
    assert modes == [("training", 1), ("training", 2), ("inference", 1), ("inference", 2)]
    for one in result["measurements"]:
        assert {"nn.LSTM", "anharmonic", "nn.GRU", "reference"} <= set(one["seconds"])
        for name, seconds in one["seconds"].items():
            assert one["ratios"][name] == one["seconds"]["nn.LSTM"] / seconds
    assert len(said) == 8 and said[0].startswith("[1/4]")


def test_an_interrupted_measurement_goes_on(in_this_process):
    saved = []

    def save(result):
        saved.append(json.loads(json.dumps(result)))
        if len(saved) == 1:
            raise KeyboardInterrupt

    few = {"threads": [1], "repeats": 1, "rounds": 1}
    with pytest.raises(KeyboardInterrupt):
        speed.measure([QUICK], **few, save=save)
    said = []
    result = speed.measure([QUICK], **few, save=save, begun=saved[0], say=said.append)
    assert said[0].endswith("measured before") and len(said) == 3
    assert result["measurements"][0] == saved[0]["measurements"][0]
    assert not saved[0]["finished"] and saved[-1]["finished"]
    for begun in (saved[-1], {**saved[0], "machine": {}}):
        said.clear()
        speed.measure([QUICK], **few, begun=begun, say=said.append)
        assert len(said) == 4


def times(case, mode, repeats, rounds):
    threads = torch.get_num_threads()
    return speed.times(dataclasses.asdict(case), mode, threads, repeats, rounds)


def given(times):
    """Turns that take the times given, one after the other, without taking any."""
    now = [0.0]
    left = {name: list(values) for name, values in times.items()}

    def turn(name):
        def run():
            assert not gc.isenabled()
            now[0] += left[name].pop(0)

        return run

    return {name: turn(name) for name in times}, lambda: now[0], left


def test_medians_leave_out_the_warm_up_and_turns_alternate(monkeypatch):
    times = {"nn.LSTM": [9.0, 1.0, 3.0, 2.0], "anharmonic": [9.0, 0.5, 0.1, 0.2]}
    turns, clock, left = given(times)
    monkeypatch.setattr(speed.time, "perf_counter", clock)
    taken = speed.take_turns(turns, lambda number: number <= 3)
    assert statistics.median(taken["nn.LSTM"]) == pytest.approx(2.0)
    assert statistics.median(taken["anharmonic"]) == pytest.approx(0.2)
    assert not any(left.values())


def test_the_best_of_the_medians_counts(monkeypatch):
    rounds = [
        {"nn.LSTM": [3.0, 4.0, 5.0], "anharmonic": [1.0, 1.0, 9.0]},
        {"nn.LSTM": [2.0, 2.0, 2.0], "anharmonic": [2.0, 2.0, 2.0]},
    ]
    monkeypatch.setattr(speed, "work", lambda *a: lambda: None)
    monkeypatch.setattr(speed, "ENTRANTS", ("nn.LSTM", "anharmonic"))
    monkeypatch.setattr(speed, "take_turns", lambda *a, **k: rounds.pop(0))
    assert times(QUICK, "training", 3, 2) == ({"nn.LSTM": 2.0, "anharmonic": 1.0}, {})


def test_a_streams_time_is_that_of_one_step(monkeypatch):
    monkeypatch.setattr(speed, "work", lambda *a: lambda: None)
    monkeypatch.setattr(speed, "ENTRANTS", ("nn.LSTM",))
    monkeypatch.setattr(
        speed, "take_turns", lambda *a, **k: {"nn.LSTM": [speed.STREAM_STEPS * 2.0]}
    )
    assert times(CASES[-1], "streaming", 1, 1)[0] == {"nn.LSTM": 2.0}


def test_slow_loops_take_few_turns_or_none(monkeypatch):
    turns, clock, left = given({"nn.LSTM": [1.0] * 8, "reference": [1.0] * 8})
    monkeypatch.setattr(speed.time, "perf_counter", clock)
    taken = speed.take_turns(turns, lambda number: number <= 7)
    assert len(taken["nn.LSTM"]) == 7 and len(taken["reference"]) == speed.SLOW_TURNS
    assert len(left["reference"]) == 8 - 1 - speed.SLOW_TURNS
    monkeypatch.setattr(speed, "_guess", lambda *a: 12.3)
    _, left_out = times(QUICK, "training", 1, 1)
    assert left_out["reference"] == "about 12 s"


def test_targets_belong_to_training_and_streaming():
    def wanted(case, mode):
        return speed.measurement(case, mode, 1, {"nn.LSTM": 1.0}, {})["target"]

    assert wanted(CASES[0], "training") == 20 and wanted(CASES[-1], "streaming") == 2
    assert wanted(CASES[0], "inference") is None


@pytest.mark.parametrize("name", ["repeats", "rounds"])
def test_counts_start_at_one(name):
    with pytest.raises(ValueError, match=r"must be >= 1; got .*0.*; pass"):
        speed.measure([QUICK], **{name: 0})


@pytest.mark.parametrize("text", ["no json", "[]", '{"format": 0}'])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"must hold what python benchmarks/cpu.py --json writes"):
        speed.read(path)
