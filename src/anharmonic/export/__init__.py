"""Export: a trained model as a program that needs no PyTorch."""

from anharmonic.export.c import write_c
from anharmonic.export.onnx import write_onnx
from anharmonic.export.torch_program import write_torch

__all__ = ["write_c", "write_onnx", "write_torch"]
