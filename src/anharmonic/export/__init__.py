"""Export of trained models as programs that need no PyTorch."""

from anharmonic.export.c import write_c
from anharmonic.export.graph import write_onnx, write_torch

__all__ = ["write_c", "write_onnx", "write_torch"]
