"""Tables and text fit the terminal, and are plain where there is none."""

import pytest

pytest.importorskip("rich", reason="tables are printed with it")
from anharmonic import pages

WORDS = "a rather long name of a model with [brackets] that has to wrap somewhere " * 2


@pytest.mark.parametrize("width", [40, 80])
def test_everything_fits_and_nothing_is_lost(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    table = pages.grid(["model", "loss"], [[WORDS, "0.1 ± 0.2"], ["x" * 100, "1"]])
    text = pages.text(WORDS, table, pages.bullets([WORDS]))
    assert max(map(len, text.splitlines())) <= width
    assert text.split().count("[brackets]") == 6 and text.count("x") == 100
    assert "\x1b" not in text
    command = "anharmonic table " + "word " * 40 + "end"
    assert pages.text(pages.unwrapped(command)) == command


@pytest.mark.parametrize("width", [1, 400])
def test_no_terminal_is_too_narrow_and_lines_are_not_longer_than_can_be_read(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    text = pages.text(WORDS * 9, pages.grid(["model", "loss"], [["LEM", "0.1"]]))
    assert max(map(len, text.splitlines())) <= 120 and "rather" in text and "LEM" in text


def test_bullets_indent_their_further_lines():
    first, *rest = pages.text(pages.bullets([WORDS])).splitlines()
    assert first.startswith("* a rather") and rest
    assert all(line.startswith("  ") and line[2] != " " for line in rest)


def test_colours_are_for_terminals(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    table = pages.grid(["model", "ours"], [["LEM", "1"]], strong=["ours"])
    assert "\x1b[1m" in pages.text(table)


@pytest.mark.parametrize("name", ["\x1b[2Jcleared", "a\x00b", "back\x08", "\x9b31m", "new\rline"])
def test_names_do_not_command_the_terminal(name):
    made = [pages.grid([name], [[name]]), pages.bullets([name]), pages.unwrapped(name), name]
    text = pages.text(*made)
    assert not set(text) & {"\x1b", "\x00", "\x08", "\x9b", "\r"}
    assert text.count(r"\x") >= 5
