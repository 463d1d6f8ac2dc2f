"""onnxruntime on an exported layer beside the layer itself: seconds in turns, medians, one thread.

python benchmarks/onnx_speed.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import onnxruntime
import torch

import anharmonic as ah
from anharmonic.diagnostics.machine import hardware
from anharmonic.export import write_onnx

H, TURNS = 32, 7


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main() -> None:
    """Prints a Markdown table."""
    torch.set_num_threads(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    print("| layer | batch, steps | onnxruntime / layer | file |\n| --- | --- | --- | --- |")
    for name in ("CoRNN", "UnICORNN", "LEM"):
        layer = getattr(ah, name)(4, H).eval()
        path = write_onnx(layer, Path(tempfile.mkdtemp()) / "layer.onnx")
        session = onnxruntime.InferenceSession(str(path), options)
        for batch, steps in ((1, 1000), (32, 1000)):
            x = torch.randn(steps, batch, 4)
            state = layer.state_type(*(torch.zeros(1, batch, H) for _ in layer.state_type._fields))
            fed = dict(zip(("x", *layer.state_type._fields), (x, *state), strict=True))
            given = {key: value.numpy() for key, value in fed.items()}

            def ours(layer: torch.nn.Module = layer, x: torch.Tensor = x) -> object:
                with torch.no_grad():
                    return layer(x)

            def theirs(
                session: onnxruntime.InferenceSession = session, given: dict[str, object] = given
            ) -> object:
                return session.run(None, given)

            ours(), theirs()
            turns = [(seconds(ours), seconds(theirs)) for _ in range(TURNS)]
            ratio = statistics.median(b / a for a, b in turns)
            size = path.stat().st_size / 1000
            print(f"| {name} | {batch}, {steps} | {ratio:.1f} | {size:.0f} kB |")
    print(
        f"\n{H} units, one thread; {hardware('cpu')}, onnxruntime {onnxruntime.__version__}, "
        f"torch {torch.__version__}."
    )


if __name__ == "__main__":
    main()
