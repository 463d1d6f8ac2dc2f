import dataclasses

import pytest
import torch

import bench
import gpu
from anharmonic.ops import library

HAS_GPU = torch.cuda.is_available()


def test_has_the_targets_we_set_out_for():
    wanted = {
        (case.model, case.batch, case.hidden, case.steps, case.precision): case.target
        for case in gpu.CASES
        if case.target is not None
    }
    assert wanted == {
        ("UnICORNN", 128, 256, 1000, "float32"): 10,
        ("UnICORNN", 8, 32, 17_984, "float32"): 50,
        ("CoRNN", 32, 128, 1000, "bfloat16"): 1,
        ("LEM", 32, 128, 1000, "bfloat16"): 0.7,
    }


@pytest.mark.parametrize("case", gpu.CASES, ids=lambda case: case.title)
def test_every_case_is_near_float64(case):
    small = dataclasses.replace(case, hidden=4, steps=9)
    rounded = case.precision == "bfloat16" and library.has_bfloat16()
    assert 0 < gpu.error_of(small, device="cpu") < (2e-2 if rounded else 1e-4)


def test_an_error_is_seen(monkeypatch):
    case = dataclasses.replace(gpu.CASES[-1], hidden=4, steps=9)
    make, calls = gpu.layer_of, []

    def spoilt(case):
        layer = make(case)
        layer.forward = lambda x, forward=layer.forward: (forward(x)[0] * 1.01, None)
        calls.append(layer)
        return layer

    monkeypatch.setattr(gpu.copy, "deepcopy", lambda layer: make(case))
    monkeypatch.setattr(gpu, "layer_of", spoilt)
    assert gpu.error_of(case, device="cpu") > 5e-3 and calls


def test_a_row_has_everything_and_an_error_is_seen():
    seconds = {"LSTM": 0.04, "ours": 0.004, "LSTM, captured": 0.04, "ours, captured": 0.002}
    result = {
        "case": gpu.CASES[0].title,
        "device": "A GPU, CUDA 12.8",
        "bandwidth": 3e12,
        "target": 10.0,
        "stretch": 20.0,
        "error": 1e-6,
        "bound": 1e-4,
        "seconds": seconds,
        "megabytes": {"LSTM": 900.0, "ours": 1500.0},
        "bytes_limit": 0.001,
        "chain_limit": 0.0005,
        "versions": {"torch": "2.13.0", "triton": "3.9.0"},
    }
    text = gpu.tables([result])["gpu"]
    rest = "| 40.0 ms | 4.0 ms | 10.0 | 10 (20) | 20.0 | 1.0 ms | 500.0 µs | 900 | 1,500 |"
    title = "| UnICORNN, 3 layers, B 128, H 256, T 1,000, float32"
    assert f"{title} | 1e-06 {rest}" in text
    assert "A GPU, CUDA 12.8, 3.00 TB/s copied; torch 2.13.0" in text
    for error in (1e-3, float("nan")):
        assert f"{title} | WRONG {rest}" in gpu.tables([result | {"error": error}])["gpu"]


def test_limits_grow_with_everything():
    case = gpu.CASES[0]
    base = gpu.bytes_limit(case, 1e12)
    for name in ("batch", "hidden", "layers", "steps"):
        double = dataclasses.replace(case, **{name: 2 * getattr(case, name)})
        assert gpu.bytes_limit(double, 1e12) == pytest.approx(2 * base)
    assert gpu.bytes_limit(case, 2e12) == pytest.approx(base / 2)


@pytest.mark.skipif(HAS_GPU, reason="there is a CUDA device")
def test_without_a_gpu_it_says_so(capsys):
    with pytest.raises(SystemExit) as stopped:
        bench.main(["gpu"])
    assert stopped.value.code == 2
    assert capsys.readouterr().out == (
        "gpu needs a CUDA device; none is here; nothing was timed.\n"
    )


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
def test_measures_in_small(capsys):
    assert bench.main(["gpu", "--quick"]) == 0
    assert "WRONG" not in capsys.readouterr().out
