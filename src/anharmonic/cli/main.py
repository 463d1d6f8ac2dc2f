"""The command line: find and run the command, and print errors in one line."""

from __future__ import annotations

import codecs
import contextlib
import errno
import importlib
import os
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from anharmonic import __version__, _plugins
from anharmonic._checks import choice, message, missing_extra, missing_papers
from anharmonic._processes import rank

COMMANDS = {
    "train": "train a model on a built-in task or on your own file",
    "compare": "train several models and rank them",
    "search": "search a model's settings, judged by validation",
    "predict": "apply a trained model to a file and write a CSV",
    "export": "write a trained model as C, ONNX or a torch.export program",
    "diagnose": "examine a trained run: gradients, time scales, energies",
    "list": "list models and tasks",
    "info": "show versions, backend and data folder",
}
PAPERS = {
    "table": "run the rows of a table of the papers",
    "figure": "measure and draw a figure of the papers",
    "report": "print tables beside the published numbers",
    "theory": "check statements that the papers prove",
}
"""Commands that the package anharmonic-papers adds."""
DEBUG = "ANHARMONIC_DEBUG"
_debugging = ContextVar("debugging", default=False)
_TERMINATED = 128 + signal.SIGTERM
_INTERRUPTED = 128 + signal.SIGINT
_UNREAD = 128 + 13  # SIGPIPE, which Windows does not define
# Seconds before a signal swallowed by a finaliser is sent again.
_SOON = 0.05
# Replacements for characters that a terminal lacks; others are escaped.
_PLAIN = {"±": "+-", "–": "-", "─": "-", "\N{NO-BREAK SPACE}": " ", "…": "...", "×": "x"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The arguments after ``anharmonic``; those of the process if None.

    Returns:
        The exit code: 0 done, 1 failed work, 2 wrong use or missing file or package, 130
        interrupted, 141 if the reader of stderr left, 143 terminated.

    Example:
        >>> main(["--version"])
        anharmonic 0.2.0
        0
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:  # closed by the parent process
        sys.stdout = open(os.devnull, "w")
    codecs.register_error("anharmonic", _in_plain_characters)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="anharmonic")
    debug = bool(os.environ.get(DEBUG)) or "--debug" in words
    words = [word for word in words if word != "--debug"]
    before = _debugging.set(debug)
    received: list[int] = []
    try:
        with _signals_noted(received), _nothing_swallowed():
            return _dispatch(words, debug)
    except SystemExit as stop:
        if stop.code == _TERMINATED:
            _say_how_to_go_on(stop, " ".join(getattr(stop, "__notes__", ())))
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt as stop:
        _say_how_to_go_on(stop, str(stop))
        return _INTERRUPTED
    except Exception as error:
        streams = [sys.stdout, sys.stderr] if isinstance(error, BrokenPipeError) else []
        unread = [stream for stream in streams if _has_no_reader(stream)]
        if unread:
            # The reader (for example `head`) has closed the pipe.
            for stream in unread:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            # Progress goes to stderr. If that failed, the work may have stopped half-way.
            return _UNREAD if sys.stderr in unread else 0
        if received:  # an import may have swallowed it and left an incomplete module
            _say_how_to_go_on(error, "")
            return _INTERRUPTED if received[-1] == signal.SIGINT else _TERMINATED
        if debug:
            raise
        _say(f"error: {one_line(error)}")
        if not is_expected(error):
            _say(f"(unexpected {type(error).__name__}: repeat with --debug for the whole trace)")
        return 2 if isinstance(error, ValueError | TypeError | ImportError | OSError) else 1
    finally:
        _debugging.reset(before)


def _has_no_reader(stream: Any) -> bool:
    """Return whether a stream is a pipe that its reader has closed."""
    if not hasattr(select, "poll"):  # Windows
        return stream is sys.stdout
    try:
        descriptor = stream.fileno()
    except (AttributeError, OSError, ValueError):  # closed, or not a file
        return False
    polled = select.poll()
    polled.register(descriptor, select.POLLOUT)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in polled.poll(0))


def is_debugging() -> bool:
    """Whether to print tracebacks: with ``--debug`` or if ``ANHARMONIC_DEBUG`` is set.

    Example:
        >>> is_debugging()
        False
    """
    return _debugging.get()


def is_expected(error: BaseException) -> bool:
    """Whether this package raised an error on purpose, with advice in its text."""
    kinds = (ValueError, TypeError, ImportError, OSError, RecursionError)
    known = isinstance(error, kinds) or is_out_of_memory(error)
    return known or type(error).__module__.startswith("anharmonic.")


def one_line(error: BaseException) -> str:
    r"""Return the text of an error in one line.

    Example:
        >>> one_line(ValueError("a\n  b"))
        'a b'
        >>> one_line(PermissionError(13, "Permission denied", "runs"))
        'runs must be a place that can be used; got Permission denied; check path and permissions.'
        >>> one_line(OSError(28, "a.csv must be writable; got a full disk; free space."))
        'a.csv must be writable; got a full disk; free space.'
    """
    text = str(error)
    if isinstance(error, OSError) and "; got " in (error.strerror or ""):
        text = error.strerror or ""  # this package's message, with the error number of the cause
    elif isinstance(error, OSError) and error.strerror:
        place = error.filename or "the file or address"
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        advice = "make room" if full else "check path and permissions"
        text = message(f"{place} must be a place that can be used", error.strerror, advice)
    elif isinstance(error, UnicodeDecodeError):
        text = message("text must be in UTF-8", text, "write the file again in UTF-8")
    elif is_out_of_memory(error):
        advice = "take fewer or shorter sequences, a smaller batch_size or hidden_size"
        text = message("what is asked for must fit into memory", text or "too much", advice)
    elif isinstance(error, RecursionError):
        advice = "restore the file, or delete it"
        text = message("a JSON file must not be nested thousands of times", text, advice)
    return " ".join(text.split()) or type(error).__name__


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means lack of memory in Python, NumPy, or PyTorch on CPU or GPU."""
    said = isinstance(error, RuntimeError) and "allocate memory" in str(error)
    return said or isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def _dispatch(words: list[str], debug: bool) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if words[0] in ("-V", "--version"):
        print(f"anharmonic {__version__}")
        return 0
    with warnings.catch_warnings(), contextlib.ExitStack() as held:
        if not debug:
            warnings.showwarning = _show_warning
        if rank() > 0:  # the first process reports for all
            nowhere = held.enter_context(open(os.devnull, "w", encoding="utf-8"))
            held.enter_context(contextlib.redirect_stdout(nowhere))
        try:
            return _command(words[0])(words[1:])
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("tyro"):
                raise
            raise missing_extra("tyro", "train", f"`anharmonic {words[0]}`") from error


def _command(name: str) -> Callable[[Sequence[str]], int]:
    """Return the function of a command of this or another installed package."""
    added = _plugins.names("anharmonic.commands")
    choice("command", name, [*COMMANDS, *PAPERS, *(n for n in added if n not in PAPERS)])
    if name in COMMANDS:
        run: Callable[[Sequence[str]], int] = importlib.import_module(f"anharmonic.cli.{name}").run
        return run
    if name not in added:
        raise missing_papers(name)
    found: Callable[[Sequence[str]], int] = _plugins.load("anharmonic.commands", name)
    return found


def usage() -> str:
    """Return the text printed by plain ``anharmonic``."""
    added = _plugins.names("anharmonic.commands")
    known = {name: PAPERS.get(name, "") for name in added if name not in COMMANDS}
    known |= {
        name: f"{what} (in anharmonic-papers)" for name, what in PAPERS.items() if name not in added
    }
    known = COMMANDS | known
    width = max(map(len, known))
    lines = [f"  {name.ljust(width)}  {what}" for name, what in known.items()]
    return "\n".join(
        [
            "usage: anharmonic COMMAND ...",
            "",
            *lines,
            "",
            "anharmonic COMMAND --help   shows the flags of a command",
            "anharmonic --version        prints the version",
            f"--debug, or {DEBUG}=1  shows the traceback of an error",
            "",
            "To begin: anharmonic train lem digits, or anharmonic compare mine.csv",
        ]
    )


@contextlib.contextmanager
def _signals_noted(received: list[int]) -> Iterator[None]:
    """Note SIGTERM and Ctrl-C, and make both raise, unless the caller has handlers of its own."""

    def leave(number: int, frame: object) -> None:
        received.append(number)
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(_TERMINATED)

    usual = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    if threading.current_thread() is not threading.main_thread():
        usual = {}
    before = {n: handler for n, handler in usual.items() if signal.getsignal(n) is handler}
    for number in before:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _nothing_swallowed() -> Iterator[None]:
    """Send a signal again if its exception came in a finaliser, where Python only prints it."""
    before = sys.unraisablehook

    def look(found: Any) -> None:
        number = None
        if isinstance(found.exc_value, KeyboardInterrupt):
            number = signal.SIGINT
        elif isinstance(found.exc_value, SystemExit) and found.exc_value.code == _TERMINATED:
            number = signal.SIGTERM
        if number is None:
            before(found)
            return
        again = threading.Timer(_SOON, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()

    sys.unraisablehook = look
    try:
        yield
    finally:
        sys.unraisablehook = before


def _in_plain_characters(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return the replacement of a character that the terminal's encoding lacks."""
    if isinstance(error, UnicodeEncodeError):
        plain = _PLAIN.get(error.object[error.start])
        if plain is not None:
            return plain, error.start + 1
    return codecs.backslashreplace_errors(error)


def _say_how_to_go_on(stop: BaseException, text: str) -> None:
    """Print how to continue, unless training has already done so."""
    if not vars(stop).get("said"):
        _say(text or "interrupted; start the same command again to continue")


def _say(text: str) -> None:
    sys.stdout.flush()
    if sys.stderr is None:
        return
    print(f"anharmonic: {text}", file=sys.stderr)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    """Print a warning in one line, without the source location."""
    _say(f"warning: {' '.join(str(message).split())}")
