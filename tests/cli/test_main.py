import contextlib
import json
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from anharmonic import __version__
from anharmonic.cli import main as module
from anharmonic.cli.main import COMMANDS, is_debugging, is_expected, main, one_line
from anharmonic.train.losses import DivergedError


def test_plain_call_lists_the_commands(cli):
    code, out, err = cli()
    assert code == 0 and err == ""
    assert all(f"\n  {name} " in out for name in COMMANDS)
    assert cli("--help")[1] == out


def test_python_runs_the_package_as_the_command(cli):
    words = [sys.executable, "-m", "anharmonic", "--version"]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, f"anharmonic {__version__}\n")
    assert cli("--version") == (0, run.stdout, "")


def test_unknown_command_names_the_nearest(cli):
    code, out, err = cli("trian")
    assert code == 2 and out == ""
    assert err.startswith("anharmonic: error: command must be one of 'train'")
    assert "did you mean 'train'" in err and err.count("\n") == 1


def failing(error):
    def dispatch(words, debug):
        raise error

    return dispatch


DIVERGED = DivergedError("loss must be finite; got nan", step=3, epoch=1, value=1.0, lr=0.1)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("a; b; c."), 2),
        (TypeError("a; b; c."), 2),
        (FileNotFoundError("no such file"), 2),
        (ImportError("needs tyro"), 2),
        (DIVERGED, 1),
        (RuntimeError("broken"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_are_one_line_and_an_exit_code(cli, monkeypatch, error, code):
    monkeypatch.setattr(module, "_dispatch", failing(error))
    found, _, err = cli("list")
    assert found == code
    assert "Traceback" not in err
    assert len(err.splitlines()) == (2 if "broken" in str(error) else 1)


HOW_TO_GO_ON = "interrupted; start the same command again to continue"


@pytest.mark.parametrize("code", [130, 143])
@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("", False, HOW_TO_GO_ON),
        ("After 1 of 2.", True, None),
        ("After 1 of 2.", False, "After 1 of 2."),
    ],
)
def test_an_interruption_is_said_once(cli, monkeypatch, code, text, said, line):
    """By training, which tells where it stopped, or by the command."""
    stop = KeyboardInterrupt(*filter(None, [text])) if code == 130 else SystemExit(143)
    if code == 143 and text:
        stop.add_note(text)
    stop.said = said
    monkeypatch.setattr(module, "_dispatch", failing(stop))
    found, _, err = cli("list")
    assert found == code and err.splitlines() == ([f"anharmonic: {line}"] if line else [])


def test_sigterm_unwinds_and_is_said(cli, monkeypatch):
    unwound = []

    def busy(words, debug):
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            unwound.append(True)

    monkeypatch.setattr(module, "_dispatch", busy)
    before = signal.getsignal(signal.SIGTERM)
    code, _, err = cli("list")
    assert code == 143 and unwound and err == f"anharmonic: {HOW_TO_GO_ON}\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_that_an_import_swallows_is_no_error_of_its_own(cli, monkeypatch):
    def busy(words, debug):
        with contextlib.suppress(BaseException):
            signal.raise_signal(signal.SIGTERM)
        raise AttributeError("half a module")

    monkeypatch.setattr(module, "_dispatch", busy)
    code, _, err = cli("list")
    assert code == 143 and err == f"anharmonic: {HOW_TO_GO_ON}\n"


def test_a_callers_own_handler_of_sigterm_stays(cli, monkeypatch):
    seen = []
    monkeypatch.setattr(module, "_dispatch", lambda *_: signal.raise_signal(signal.SIGTERM) or 0)
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append(True))
    try:
        assert cli("list")[0] == 0 and seen
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_unexpected_error_says_how_to_see_more(cli, monkeypatch):
    monkeypatch.setattr(module, "_dispatch", failing(KeyError("x")))
    assert "unexpected KeyError: repeat with --debug" in cli("list")[2]


def test_debugging_ends_with_the_command(cli, monkeypatch):
    seen = []
    monkeypatch.setattr(module, "_dispatch", lambda words, debug: seen.append(is_debugging()) or 0)
    cli("list", "--debug")
    cli("list")
    assert seen == [True, False] and not is_debugging()


@pytest.mark.parametrize("by_flag", [True, False])
def test_debug_shows_the_trace(cli, monkeypatch, by_flag):
    monkeypatch.setattr(module, "_dispatch", failing(ValueError("a; b; c.")))
    if not by_flag:
        monkeypatch.setenv("ANHARMONIC_DEBUG", "1")
    with pytest.raises(ValueError, match="a; b; c"):
        cli("list", *(["--debug"] if by_flag else []))


def test_one_line_names_the_file_of_an_os_error(tmp_path):
    with pytest.raises(OSError) as caught:
        open(tmp_path / "missing")
    said = one_line(caught.value)
    assert "missing must be a place" in said
    assert "got No such file or directory; check path" in said
    assert one_line(OSError(28, "No space left on device", "x")).endswith("; make room.")


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        (lambda: torch.empty(10**15), "must fit into memory; got"),
        (lambda: np.ones((10**15, 9)), "must fit into memory; got"),
        (lambda: (0.0,) * 10**15, "must fit into memory; got"),
        (lambda: json.loads("[" * 100_000), "; got maximum recursion"),
    ],
    ids=["torch", "numpy", "python", "nested JSON"],
)
def test_too_little_memory_and_deep_files_are_expected_errors(fails, said):
    with pytest.raises((MemoryError, RuntimeError)) as caught:
        fails()
    assert is_expected(caught.value) and said in one_line(caught.value)


def test_main_returns_what_a_command_exits_with(monkeypatch):
    monkeypatch.setattr(module, "_dispatch", failing(SystemExit("text")))
    assert main(["list"]) == 1
    monkeypatch.setattr(module, "_dispatch", failing(SystemExit(0)))
    assert main(["list"]) == 0


@pytest.mark.filterwarnings("default::anharmonic.StabilityWarning")
def test_warnings_are_one_line(cli):
    words = "--hidden-size 2 --length 4 --steps-per-epoch 1 --valid-size 4 --test-size 4 --epochs 1"
    code, _, err = cli("train", "lem", "adding", "--dt", "1.5", *words.split(), "--no-progress")
    assert code == 0
    assert err.startswith("anharmonic: warning: for stable states dt <= 1 must hold")
    assert ".py:" not in err and len(err.splitlines()) <= 2
