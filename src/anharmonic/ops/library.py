"""The compiled C library: finding and loading it, its capabilities, or why it is missing.

`ANHARMONIC_INSTRUCTION_SET` forces one of its instruction sets. The import of `anharmonic` reads
the variable and loads the library.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.resources
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from anharmonic._checks import message, require

FORCED = "ANHARMONIC_INSTRUCTION_SET"
_NAME = "libanharmonic.so"
_REINSTALL = "install a C compiler and then anharmonic again (pip install --force-reinstall)"


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class Call(ctypes.Structure):
    """``an_call`` of csrc/anharmonic.h; the library reports the offset of each field."""

    references: list[Any]
    """The Python objects that a call points to, so that they stay alive with it."""

    _fields_: ClassVar[Any] = [
        *_fields(
            ctypes.c_int64, "model real_bytes threads bfloat16 steps batch inputs hidden layers"
        ),
        *_fields(ctypes.c_int64, "skip block sum_rows tile keep checkpoint grid"),
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
    """``an_graph_call`` of csrc/anharmonic.h, likewise."""

    _fields_: ClassVar[Any] = [
        *_fields(ctypes.c_int64, "real_bytes threads nodes features mean single"),
        *_fields(ctypes.c_double, "power"),
        *_fields(ctypes.c_void_p, "start other back_start back_other"),
        *_fields(ctypes.c_void_p, "weight x grad result"),
    ]


class ResonatorCall(ctypes.Structure):
    """``an_resonator_call`` of csrc/anharmonic.h, likewise."""

    references: Sequence[Any]

    _fields_: ClassVar[Any] = [
        *_fields(ctypes.c_int64, "real_bytes threads sequences inputs oscillators biases"),
        *_fields(ctypes.c_void_p, "offsets before x weight steps elapsed frequency q"),
        *_fields(ctypes.c_void_p, "bias scale state pools output"),
    ]


class _Field(ctypes.Structure):
    """``an_field``: a field's name and offset; after the last, "" and the size."""

    _fields_: ClassVar[Any] = [("name", ctypes.c_char_p), ("offset", ctypes.c_int64)]


# Functions of csrc/anharmonic.h: names, result, arguments.
_FUNCTIONS: tuple[tuple[str, Any, list[Any]], ...] = (
    ("an_forward an_backward", ctypes.c_int, [ctypes.c_void_p]),
    ("an_neighbour_sum an_gate an_gate_backward", ctypes.c_int, [ctypes.c_void_p]),
    ("an_resonate", ctypes.c_int, [ctypes.c_void_p]),
    ("an_available an_instruction_set", ctypes.c_char_p, []),
    ("an_has_bfloat16", ctypes.c_int, []),
    ("an_has_amx", ctypes.c_int, []),
    ("an_use_amx", None, [ctypes.c_int]),
    ("an_select", ctypes.c_int, [ctypes.c_char_p]),
    ("an_workspace_take", ctypes.c_void_p, [ctypes.c_size_t]),
    ("an_workspace_give", None, [ctypes.c_void_p]),
    (
        "an_elementary", ctypes.c_int,
        [ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64],
    ),
    (
        "an_call_fields an_graph_call_fields an_resonator_call_fields",
        ctypes.POINTER(_Field), [],
    ),
)  # fmt: skip


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the C library, loaded once at import; None if it is not available.

    This and the following functions raise a ``ValueError`` if ``ANHARMONIC_INSTRUCTION_SET`` names
    an unavailable instruction set.
    """
    return _load()[0]


def why_not() -> str:
    """Return why there is no C library; "" if there is one."""
    return _load()[1]


def path() -> Path | None:
    """Return the path of the library; None if it was not built."""
    # In an editable install it is in site-packages, not beside this file.
    found = importlib.resources.files("anharmonic.ops").joinpath(_NAME)
    return Path(str(found)) if found.is_file() else None


def instruction_set() -> str | None:
    """Return the instruction set in use: "baseline", "avx2", "avx512" or, on ARM, "neon"."""
    loaded = library()
    return None if loaded is None else str(loaded.an_instruction_set().decode())


def available() -> tuple[str, ...]:
    """Return the instruction sets of this processor and build, the best one last."""
    loaded = library()
    return () if loaded is None else _names(loaded)


def has_bfloat16() -> bool:
    """Return whether the instruction set in use has bfloat16 products."""
    loaded = library()
    return loaded is not None and bool(loaded.an_has_bfloat16())


def has_amx() -> bool:
    """Return whether this processor has AMX; on Linux, ask for its registers."""
    loaded = library()
    return loaded is not None and bool(loaded.an_has_amx())


def use_amx(use: bool) -> None:
    """Choose whether bfloat16 products use AMX if there is AMX; they do by default.

    The advice for ``select`` applies.
    """
    loaded = library()
    if loaded is not None:
        loaded.an_use_amx(use)


def select(name: str) -> None:
    """Use an instruction set in the whole process; raise a ``ValueError`` if it is unavailable.

    Do not call it while kernels run, or between a forward pass and its backward pass.
    """
    loaded = library()
    if loaded is None:
        raise ValueError(_without_library("an instruction set", name, why_not()))
    _select(loaded, "instruction set", name)


def warn_once() -> None:
    """Warn once that the slow reference runs because the library is missing."""
    if why_not() and not torch.compiler.is_compiling():
        _warn(why_not())


@functools.cache
def _warn(reason: str) -> None:
    text = message(
        "fast CPU kernels need the compiled C library of anharmonic",
        f"none: {reason}; the slower reference runs instead",
        f"{_REINSTALL}, or choose the reference with ANHARMONIC_BACKEND=reference",
    )
    warnings.warn(text, UserWarning, stacklevel=3)


@functools.cache
def _load() -> tuple[ctypes.CDLL | None, str]:
    """Return the library, or the reason why there is none.

    Two concurrent threads both load it and get the same library from the system.
    """
    forced = os.environ.get(FORCED)
    loaded, reason = _open()
    if forced and loaded is None:
        raise ValueError(_without_library(FORCED, forced, reason))
    if forced and loaded is not None:
        _select(loaded, FORCED, forced)
    return loaded, reason


def _open() -> tuple[ctypes.CDLL | None, str]:
    found = path()
    if found is None:
        if sys.platform == "win32":
            return None, "on Windows it comes with a wheel and is not built from source"
        return None, f"{_NAME} was not built when the package was installed"
    try:
        loaded = ctypes.CDLL(str(found))
        for names, result, arguments in _FUNCTIONS:
            for name in names.split():
                function = getattr(loaded, name)
                function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        return None, f"{found} cannot be loaded ({error})"
    for kind, fields in (
        (Call, loaded.an_call_fields),
        (GraphCall, loaded.an_graph_call_fields),
        (ResonatorCall, loaded.an_resonator_call_fields),
    ):
        if _layout(kind) != _layout_of(fields()):
            return None, f"{found} was built from another version of the sources"
    return loaded, ""


def _layout(kind: type[ctypes.Structure]) -> dict[str, int]:
    """Return the offset of each field of a structure by name, and its size under ""."""
    names = [name for base in reversed(kind.__mro__) for name, *_ in vars(base).get("_fields_", ())]
    return {name: getattr(kind, name).offset for name in names} | {"": ctypes.sizeof(kind)}


def _layout_of(fields: Any) -> dict[str, int]:
    """Return the same for the fields that the library lists."""
    layout: dict[str, int] = {}
    for field in fields:  # a C array without a known length
        layout[field.name.decode()] = field.offset
        if not field.name:
            break
    return layout


def _names(loaded: ctypes.CDLL) -> tuple[str, ...]:
    return tuple(loaded.an_available().decode().split())


def _select(loaded: ctypes.CDLL, what: str, name: str) -> None:
    require(
        loaded.an_select(name.encode()) == 0, what, name,
        f"one that this processor and this build can run: {', '.join(map(repr, _names(loaded)))}",
        "choose one of these" + (f", or unset {FORCED}" if what == FORCED else ""),
    )  # fmt: skip


def _without_library(what: str, name: str, reason: str) -> str:
    return message(
        f"{what} needs the compiled C library", f"{name!r} without it: {reason}", _REINSTALL
    )
