"""Compiles the kernels for an H100, which needs none: what a call would start is built instead."""

import importlib

import pytest
import torch

from anharmonic.ops import CoRNNEquation, LEMEquation, UnICORNNEquation, use_precision
from anharmonic.ops.gpu import backend

triton = pytest.importorskip("triton", reason="triton is not installed")
if backend.interpreted():
    pytest.skip("the interpreter stands in for the compiler", allow_module_level=True)

SHARED = 227 * 1024  # bytes of shared memory that a program can have on an H100
POINTERS = {torch.float32: "*fp32", torch.bfloat16: "*bf16", torch.int32: "*i32",
            torch.int64: "*i64"}  # fmt: skip
EQUATIONS = {"cornn": CoRNNEquation, "lem": LEMEquation, "unicornn": UnICORNNEquation}
CASES = [  # kernel, H, precision, changes
    ("unicornn", 7, "float32", {}),
    ("unicornn", 1, "float32", {}),
    ("cornn", 128, "bfloat16", {}),
    ("cornn", 64, "float32", {"scheme": "implicit"}),
    ("cornn", 64, "tf32", {"elapsed": None, "lengths": None}),
    ("cornn", 1, "float32", {}),
    ("cornn", 3, "bfloat16", {}),
    ("lem", 1, "float32", {}),
    ("lem", 3, "bfloat16", {}),
    ("lem", 128, "bfloat16", {}),
    ("lem", 128, "bfloat16", {"elapsed": None, "lengths": None, "gate_floor": None}),
    ("lem", 64, "float32", {}),
    ("lem", 64, "tf32", {}),
    ("lem", 64, "float32", {"gate_floor": None}),
]


class Builder:
    """Stands in for ``launch`` and keeps what was built by name."""

    def __init__(self):
        self.built = {}

    def __call__(self, kernel, programs, *arguments, warps, **constants):
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        signature, fixed = dict.fromkeys(constants, "constexpr"), dict(constants)
        for name, value in zip(kernel.arg_names, arguments, strict=False):
            if value is None or (isinstance(value, int) and value == 1):  # Triton takes 1 so, too
                signature[name], fixed[name] = "constexpr", value
            elif isinstance(value, torch.Tensor):
                signature[name] = POINTERS[value.dtype]
            else:
                signature[name] = "i32"
        key = f"{kernel.__name__} {constants}"
        if key not in self.built:
            signature = {name: signature[name] for name in kernel.arg_names}
            self.built[key] = triton.compile(
                ASTSource(fn=kernel, signature=signature, constexprs=fixed),
                target=GPUTarget("cuda", 90, 32),
                options={"num_warps": warps, "enable_fp_fusion": False},
            )


@pytest.mark.fast("unicornn-7-float32-{}", "unicornn-1-float32-{}")
@pytest.mark.parametrize("kernel, hidden, precision, changes", CASES, ids=str)
def test_kernels_compile_and_fit(make_stack, monkeypatch, kernel, hidden, precision, changes):
    changes = dict(changes)
    elementary = importlib.import_module("anharmonic.ops.gpu.elementary")
    monkeypatch.setattr(elementary, "launch", builder := Builder())
    layers, size = (1 if hidden > 64 else 2), (1 if hidden == 1 else 2)
    stack = make_stack(
        kernel, dtype=torch.float32, steps=size, batch=size, hidden=hidden, layers=layers
    )
    given = {k: changes.pop(k, v) for k, v in stack.given.items() if k != "bidirectional"}
    equation = EQUATIONS[kernel](**{**stack.own, **changes})
    with use_precision(precision):
        found = backend.run(
            equation, stack.x, stack.weights, stack.start, **given, return_sequence=True,
            memory="stored",
        )  # fmt: skip
        torch.autograd.grad(stack.loss(found), stack.leaves, allow_unused=True)
    assert len(builder.built) == 2
    for name, built in builder.built.items():
        assert built.metadata.shared <= SHARED, name
        assert ".f64" not in built.asm["ptx"], name
        if hidden > 3:
            assert "cp.async" in built.asm["ptx"], f"{name} fetches nothing ahead"
