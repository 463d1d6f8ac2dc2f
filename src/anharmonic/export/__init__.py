"""Export: a trained model as a program that needs no PyTorch."""

from anharmonic.export.c import write_c

__all__ = ["write_c"]
