import dataclasses

import pytest
import torch

import bench
import gpu
from anharmonic.ops import library
from harness import results

HAS_GPU = torch.cuda.is_available()


@pytest.mark.parametrize("case", gpu.CASES, ids=gpu.title)
def test_every_case_is_near_float64(case):
    small = dataclasses.replace(case, hidden=4, steps=9)
    rounded = case.precision == "bfloat16" and library.has_bfloat16()
    assert 0 < gpu.error_of(small, device="cpu") < (2e-2 if rounded else 1e-4)


def test_an_error_is_seen(monkeypatch):
    case = dataclasses.replace(gpu.CASES[-1], hidden=4, steps=9)
    make = gpu.layer_of

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
def test_measures_in_small(capsys):
    assert bench.main(["gpu", "--quick"]) == 0
    assert "WRONG" not in capsys.readouterr().out
