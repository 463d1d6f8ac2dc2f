import contextlib
import json
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from anharmonic import __version__
from anharmonic.cli import main as module
from anharmonic.cli.main import COMMANDS, is_debugging, is_expected, one_line
from anharmonic.train.losses import DivergedError


def test_a_plain_call_lists_the_commands_and_python_runs_the_package(cli):
    code, out, err = cli()
    assert (code, err) == (0, "") and out == cli("--help")[1]
    assert all(f"\n  {name} " in out for name in COMMANDS)
    words = [sys.executable, "-m", "anharmonic", "--version"]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    assert cli("--version") == (0, run.stdout, "") == (0, f"anharmonic {__version__}\n", "")


@pytest.fixture
def dispatched(cli, monkeypatch):
    """Runs a command that does what a function does."""

    def run(work, *words):
        monkeypatch.setattr(module, "_dispatch", lambda words, debug: work())
        return cli("list", *words)

    return run


def failing(error):
    def work():
        raise error

    return work


def interrupted(kind, text="", said=False):
    """As training ends that is interrupted, which tells where it stopped unless it was said."""
    error = kind(*filter(None, [text])) if kind is KeyboardInterrupt else kind(143)
    if text and kind is SystemExit:
        error.add_note(text)
    error.said = said
    return error


ERROR = ValueError("a; b; c.")
HOW_TO_GO_ON = "anharmonic: interrupted; start the same command again to continue"


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (ERROR, 2, ["anharmonic: error: a; b; c."]),
        (TypeError("a; b; c."), 2, ["anharmonic: error: a; b; c."]),
        (FileNotFoundError("no such file"), 2, [...]),
        (ImportError("needs tyro"), 2, [...]),
        (DivergedError("must be finite", step=3, epoch=1, value=1.0, lr=0.1), 1, [...]),
        (RuntimeError("broken"), 1, [..., "unexpected RuntimeError: repeat with --debug"]),
        (KeyError("x"), 1, [..., "unexpected KeyError: repeat with --debug"]),
        (SystemExit("text"), 1, []),
        (SystemExit(0), 0, []),
        *(
            case
            for kind, code in ((KeyboardInterrupt, 130), (SystemExit, 143))
            for case in (
                (interrupted(kind), code, [HOW_TO_GO_ON]),
                (interrupted(kind, "After 1 of 2.", said=True), code, []),
                (interrupted(kind, "After 1 of 2."), code, ["anharmonic: After 1 of 2."]),
            )
        ),
    ],
)
def test_errors_are_a_line_and_an_exit_code(dispatched, error, code, lines):
    found, _, err = dispatched(failing(error))
    assert found == code and "Traceback" not in err and len(err.splitlines()) == len(lines)
    for line, expected in zip(err.splitlines(), lines, strict=True):
        assert expected is ... or expected in line


@pytest.mark.parametrize(("number", "ends"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_unwind_and_are_said_and_a_callers_own_handler_stays(dispatched, number, ends):
    seen = []

    def busy():
        try:
            return signal.raise_signal(number) or 0
        finally:
            seen.append("unwound")

    def importing():  # it swallows the signal
        with contextlib.suppress(BaseException):
            signal.raise_signal(number)
        raise AttributeError("half a module")

    usual = signal.SIG_DFL if number == signal.SIGTERM else signal.default_int_handler
    before = signal.signal(number, usual)
    try:
        for work in (busy, importing):
            code, _, err = dispatched(work)
            assert code == ends and seen == ["unwound"] and err == f"{HOW_TO_GO_ON}\n"
            assert signal.getsignal(number) is usual
        signal.signal(number, lambda *_: seen.append("mine"))
        assert dispatched(busy)[0] == 0 and seen == ["unwound", "mine", "unwound"]
    finally:
        signal.signal(number, before)


def test_debug_shows_the_trace_and_ends_with_the_command(dispatched, monkeypatch):
    with pytest.raises(ValueError, match="a; b; c"):
        dispatched(failing(ERROR), "--debug")
    seen = []
    for words in (["--debug"], []):
        dispatched(lambda: seen.append(is_debugging()) or 0, *words)
    assert seen == [True, False] and not is_debugging()
    monkeypatch.setenv("ANHARMONIC_DEBUG", "1")
    with pytest.raises(ValueError, match="a; b; c"):
        dispatched(failing(ERROR))


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        (lambda: torch.empty(10**15), "must fit into memory; got"),
        (lambda: np.ones((10**15, 9)), "must fit into memory; got"),
        (lambda: (0.0,) * 10**15, "must fit into memory; got"),
        (lambda: json.loads("[" * 100_000), "; got maximum recursion"),
        (lambda: open("no/file"), "no/file must be a place.*got No such file or d.*; check path"),
        (failing(OSError(28, "No space left on device", "x")), "; make room.$"),
    ],
    ids=["torch", "numpy", "python", "nested JSON", "no file", "a full disk"],
)
def test_what_the_machine_lacks_is_an_expected_error(fails, said):
    with pytest.raises((MemoryError, RuntimeError, OSError)) as caught:
        fails()
    assert is_expected(caught.value) and re.search(said, one_line(caught.value))


@pytest.mark.filterwarnings("default::anharmonic.StabilityWarning")
def test_warnings_are_one_line(cli):
    words = "--hidden-size 2 --length 4 --steps-per-epoch 1 --valid-size 4 --test-size 4 --epochs 1"
    code, _, err = cli("train", "lem", "adding", "--dt", "1.5", *words.split(), "--no-progress")
    assert code == 0
    assert err.startswith("anharmonic: warning: for stable states dt <= 1 must hold")
    assert ".py:" not in err and len(err.splitlines()) <= 2
    assert err.count("for stable states") == 1


@pytest.mark.parametrize(
    ("before", "stdout", "codes", "said"),
    [
        ("", "/dev/full", (1, 2), "space"),
        ("os.close(1); sys.stdout = None", None, (0, 1, 2), ""),
        # A reader that leaves.
        (
            "r, w = os.pipe(); os.close(r); os.dup2(w, 1); sys.stdout = open(1, 'w')",
            None,
            (0,),
            None,
        ),
        # The same reader took the messages on stderr.
        (
            "r, w = os.pipe(); os.close(r); os.dup2(w, 1); os.dup2(w, 2); sys.stdout = open(1, 'w')"
            "; sys.stderr = open(2, 'w')",
            None,
            (141,),
            None,
        ),
    ],
)
def test_output_that_nobody_takes(run_python, before, stdout, codes, said):
    code = f"import os, sys; {before}\nfrom anharmonic.cli.main import main; sys.exit(main())"
    done = run_python(code, "list", stdout=stdout)
    assert done.returncode in codes and (said or "") in done.stderr
    assert "Traceback" not in done.stderr and "unexpected" not in done.stderr
    assert said is not None or done.stderr == ""


def test_without_tyro_a_command_says_what_to_install(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "tyro", None)
    for name in ("anharmonic.cli.predict", "tyro.conf"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    code, _, err = cli("predict")
    assert code == 2 and 'pip install "anharmonic[train]"' in err
