"""The arguments of the C library's functions."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

CORNN_EXPLICIT, CORNN_IMPLICIT, UNICORNN, LEM, LEM_CLIPPED, LEM_SINGLE_SCALE = range(6)
"""Models (enum an_model in csrc/anharmonic.h)."""


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class Call(ctypes.Structure):
    """``an_call`` of csrc/anharmonic.h; the library says how large it takes it to be."""

    _fields_: ClassVar[Any] = [
        *_fields(ctypes.c_int64, "model real_bytes threads steps batch inputs hidden layers"),
        *_fields(ctypes.c_int64, "skip block tile keep checkpoint grid"),
        *_fields(ctypes.c_double, "dt frequency damping gate_floor"),
        *_fields(ctypes.c_void_p, "x"),
        *_fields(ctypes.c_int64, "x_time x_batch"),
        *_fields(ctypes.c_void_p, "weights layer_dt y0 z0 elapsed lengths masks output"),
        *_fields(ctypes.c_int64, "output_time output_batch"),
        *_fields(ctypes.c_void_p, "y_n z_n saved grad_output"),
        *_fields(ctypes.c_int64, "grad_output_time grad_output_batch"),
        *_fields(ctypes.c_void_p, "grad_y_n grad_z_n grad_x"),
        *_fields(ctypes.c_int64, "grad_x_time grad_x_batch"),
        *_fields(ctypes.c_void_p, "grad_weights grad_y0 grad_z0 grad_elapsed grad_scalars"),
    ]


class GraphCall(ctypes.Structure):
    """``an_graph_call`` of csrc/anharmonic.h; the library says how large it takes it to be."""

    _fields_: ClassVar[Any] = [
        *_fields(ctypes.c_int64, "real_bytes threads nodes features mean single"),
        *_fields(ctypes.c_double, "power"),
        *_fields(ctypes.c_void_p, "start other back_start back_other"),
        *_fields(ctypes.c_void_p, "weight x grad result"),
    ]
