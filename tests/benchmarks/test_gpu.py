import dataclasses

import pytest
import torch

import bench
import gpu
from anharmonic.ops import library

HAS_GPU = torch.cuda.is_available()


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
        "error": 1e-6,
        "bound": 1e-4,
        "seconds": seconds,
        "megabytes": {"LSTM": 900.0, "ours": 1500.0},
        "one_sequence": 0.0005,
        "versions": {"torch": "2.13.0", "triton": "3.9.0"},
    }

    def table(result):
        return gpu.tables([result])["gpu"].replace("\N{NO-BREAK SPACE}", " ")

    text = table(result)
    rest = "| 40.0 ms | 4.0 ms | 10.0 | 20.0 | 500.0 µs | 900 | 1,500 |"
    title = "| UnICORNN, 3 layers, B 128, H 256, T 1,000, float32"
    assert f"{title} | 1e-06 {rest}" in text
    assert "A GPU, CUDA 12.8; torch 2.13.0" in text
    slower = result | {"seconds": seconds | {"ours": 0.8}}
    assert "| 40.0 ms | 800.0 ms | 0.05 |" in table(slower)
    for error in (1e-3, float("nan")):
        assert f"{title} | WRONG {rest}" in table(result | {"error": error})


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
