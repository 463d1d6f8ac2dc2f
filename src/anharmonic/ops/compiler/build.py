"""Compilation and loading of C code, with a cache of libraries.

Libraries are in one folder per user, ``$ANHARMONIC_COMPILED`` or ``~/.cache/anharmonic/compiled``.
Their name has a hash of text, headers, compiler and flags, and a hash of their content. A damaged
library, which could end the process, is rebuilt. Libraries are written elsewhere and then moved, so
that two processes may build the same one concurrently. Only the user can write to the folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.resources
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from anharmonic.ops import library
from anharmonic.ops.compiler.trace import Unsupported

FOLDER = "ANHARMONIC_COMPILED"
_HEADERS = ("vector.h", "elementary.h", "product.h", "recurrence.h", "recurrence_walk.h")
_AVX2 = ("-mavx2", "-mfma")
_AVX512 = (
    "-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", *_AVX2, "-mprefer-vector-width=512",
)  # fmt: skip
_INSTRUCTIONS: dict[str | None, tuple[str, ...]] = {"avx2": _AVX2, "avx512": _AVX512}
_FLAGS = (
    "-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-w",
    # As for the C library: infinities, NaN and signed zeros keep their meaning.
    "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
)  # fmt: skip
_SECONDS = 600
_LONG = 100_000
"""Characters of a program that compiles for minutes; steps without couplings of pairs have 7,000
to 60,000."""
LEVEL, QUICK_LEVEL = "-O3", "-O1"
"""Optimisation levels for use, and for the check in float64."""


def start_loading(text: str, real: str, level: str) -> Future[tuple[ctypes.CDLL, float]]:
    """Call ``load`` in a separate thread; the result is the library and the seconds it took."""

    def timed_load() -> tuple[ctypes.CDLL, float]:
        begin = time.perf_counter()
        return load(text, real, level), time.perf_counter() - begin

    executor = ThreadPoolExecutor(max_workers=1)
    result = executor.submit(timed_load)
    executor.shutdown(wait=False)
    return result


def load(text: str, real: str, level: str) -> ctypes.CDLL:
    """Return the library of a generated C text, building it if necessary.

    ``real`` is "float" or "double".

    Raises:
        Unsupported: If there is no working compiler, or the folder or the disk is unusable.
    """
    command, version = _compiler()
    headers = _headers()
    flags = [
        level, *_FLAGS, *_INSTRUCTIONS.get(library.instruction_set(), ()),
        f"-DAN_REAL={real}", f"-DAN_REAL_BYTES={4 if real == 'float' else 8}",
    ]  # fmt: skip
    if "gcc" not in version.lower() and "free software foundation" not in version.lower():
        flags = [flag for flag in flags if not flag.startswith("-mprefer")]
    key = hashlib.sha256()
    for part in (text, _contents(headers), " ".join(command), version, " ".join(flags)):
        key.update(part.encode() + b"\0")
    folder, name = _folder(), key.hexdigest()[:32]
    for known in folder.glob(f"{name}-*.so"):
        if known.is_file() and known.name == _named(name, known):
            with contextlib.suppress(OSError):  # from another system: rebuild it
                return _opened(known)
        with contextlib.suppress(OSError):
            known.unlink()
    if len(text) > _LONG and level == LEVEL:  # the check in float64 need not say it again
        said = (
            f"Compiling a step may take minutes, because its C code has {len(text):,} characters, "
            "as with tensors of shape [batch, units, units]. To avoid it, write products of "
            "matrices or pass compiled=False."
        )
        warnings.warn(said, stacklevel=2)
    built = _build(text, [*command, *flags, f"-I{headers}"], folder, name)
    try:
        return _opened(built)
    except OSError as error:
        raise Unsupported(f"the compiled step cannot be loaded ({error})") from error


def _named(name: str, path: Path) -> str:
    """Return the name of a library, with a hash of its content."""
    try:
        return f"{name}-{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}.so"
    except OSError:
        return ""


def _build(text: str, command: list[str], folder: Path, key: str) -> Path:
    """Compile elsewhere, move the library, and return its path."""
    try:
        with tempfile.TemporaryDirectory(dir=folder) as name:
            source, made = Path(name) / "step.c", Path(name) / "step.so"
            source.write_text(text, encoding="utf-8")
            run = subprocess.run(
                [*command, str(source), "-o", str(made), "-lm"],
                capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL,
                env={**os.environ, "TMPDIR": name},
            )  # fmt: skip
            if run.returncode or not made.exists():
                said = run.stderr.decode(errors="replace").strip().splitlines()
                raise Unsupported(
                    f"the C compiler {command[0]} fails: {said[0] if said else run.returncode}"
                )
            target = folder / _named(key, made)
            os.replace(made, target)
            return target
    except subprocess.TimeoutExpired as error:
        raise Unsupported(f"the C compiler takes longer than {_SECONDS} seconds") from error
    except OSError as error:
        raise Unsupported(f"compiled steps cannot be written to {folder} ({error})") from error


def _opened(path: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(path))
    try:
        run, saved_bytes = loaded.recurrence_run, loaded.recurrence_saved_bytes
    except AttributeError as error:
        raise OSError(f"{path} holds no step") from error
    run.argtypes = saved_bytes.argtypes = [ctypes.c_void_p]
    run.restype, saved_bytes.restype = ctypes.c_int, ctypes.c_int64
    return loaded


@functools.cache
def _compiler_at(given: str) -> tuple[list[str], str] | str:
    """Return a compiler's command and version, or why it does not work."""
    try:
        command = shlex.split(given)
    except ValueError as error:
        return f"CC={given!r} is not a command ({error})"
    found = shutil.which(command[0]) if command else None
    if found is None:
        return f"there is no C compiler {given!r} (set CC to one)"
    try:
        said = subprocess.run(
            [found, *command[1:], "--version"], capture_output=True, timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the C compiler {given!r} does not run ({error})"
    return [found, *command[1:]], said.stdout.decode(errors="replace")


def _compiler() -> tuple[list[str], str]:
    if sys.platform == "win32":
        raise Unsupported("on Windows steps are not compiled")
    if library.library() is None:
        raise Unsupported(f"there is no C library of anharmonic: {library.why_not()}")
    found = _compiler_at(os.environ.get("CC") or "cc")
    if isinstance(found, str):
        raise Unsupported(found)
    return found


def _headers() -> Path:
    """Return the folder of the headers, in the sources of a checkout or beside this package."""
    # An editable install is two folders, of which the files of one package may lie in either.
    installed = importlib.resources.files("anharmonic.ops.compiler").joinpath("include")
    for folder in (Path(__file__).parent.parent / "csrc", Path(str(installed))):
        if all((folder / header).is_file() for header in _HEADERS):
            return folder
    raise Unsupported("the C headers of anharmonic are missing (install it again)")


@functools.cache
def _contents(folder: Path) -> str:
    return "".join((folder / name).read_text(encoding="utf-8") for name in _HEADERS)


def _folder() -> Path:
    """Return the user's folder; refuse it if others can write to it."""
    given = os.environ.get(FOLDER)
    try:
        if given:
            folder = Path(given).absolute()  # a name may look like a flag
        else:
            cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
            folder = Path(cache).absolute() / "anharmonic" / "compiled"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, RuntimeError) as error:
        raise Unsupported(
            f"there is no folder for compiled steps ({error}); name one in {FOLDER}"
        ) from error
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise Unsupported(f"others can write to {folder}; name a folder of your own in {FOLDER}")
    return folder


def pointers_of_library() -> dict[str, Any]:
    """Return the addresses of the C library's thread pool and workspace, for a call.

    Raises:
        Unsupported: If the library is of an older version.
    """
    loaded = library.library()
    try:
        return {
            name: ctypes.cast(getattr(loaded, function), ctypes.c_void_p).value
            for name, function in (
                ("parallel", "an_parallel_flushing"),
                ("take", "an_workspace_take"),
                ("give", "an_workspace_give"),
            )
        }
    except AttributeError as error:
        raise Unsupported("the C library of anharmonic is of an older version") from error
