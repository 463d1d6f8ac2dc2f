"""Every command's help: one line per flag at 80 columns, all of it with --help-all."""

import re
from pathlib import Path
from typing import Literal

import pytest
from tyro.conf import Positional

from anharmonic.cli.help import first_clause, flags_of, help_text
from anharmonic.cli.main import COMMANDS

HELPS = [
    *((name,) for name in COMMANDS),
    ("train", "lem", "digits"),
    ("train", "graphcon", "cora"),
    ("train", "resonators", "digits"),
    ("train", "lem", "mine.csv"),
    ("train", "graphcon", "mine.npz"),
    ("compare", "mine.csv"),
    ("search", "lem", "mine.csv"),
]


@pytest.fixture(autouse=True)
def terminal(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    for name in ("mine.csv", "mine.npz"):
        (tmp_path / name).touch()


@pytest.mark.parametrize("words", HELPS, ids=" ".join)
def test_help_has_one_line_per_flag_and_help_all_says_every_flag(cli, words):
    code, out, err = cli(*words, "--help")
    assert (code, err) == (0, "") and out.startswith("usage: anharmonic ")
    lines = out.splitlines()
    assert len(lines) < 45 and max(map(len, lines)) <= 80
    assert "(default: )" not in out and "options options" not in out and "…" not in out
    if words[0] in ("list", "info"):
        assert lines[0].startswith(f"usage: anharmonic {words[0]} [")
        return
    flags = [line for line in lines if re.match(r"  \S", line)]
    assert all(re.match(r"  (--|\[?[A-Z])[\S]+.* {2}\S", line) for line in flags), flags
    code, full, _ = cli(*words, "--help-all")
    assert code == 0 and all(len(line) <= 80 for line in full.splitlines())
    for line in flags:
        if line.startswith("  --") and "--help-all" not in line:
            assert f"\n  {line.split()[0]}" in full, line


def test_common_flags_come_first_and_rare_ones_only_with_help_all(cli):
    short, full = (cli("train", "lem", "mine.csv", flag)[1] for flag in ("--help", "--help-all"))
    assert "--epochs N" in short and "--ema-decay" not in short and "--ema-decay" in full
    assert full.index("--epochs") < full.index("--ema-decay")
    assert "--multiscale" in full.replace("[no-]", "") and "--damping" not in full
    fitted = cli("train", "resonators", "mine.csv", "--help")[1]
    assert "--num-oscillators N" in fitted and "--pools" not in fitted
    assert "--group-column TEXT" in fitted


def test_values_are_named_by_their_kind_and_defaults_are_in_brackets():
    def pour(
        cup: Positional[Path],
        number: int = 2,
        warm: bool = True,
        sweet: bool = False,
        kind: Literal["tea", "coffee"] = "tea",
        pair: tuple[float, float] = (0.5, 1.0),
        names: tuple[str, ...] = (),
        where: Path | None = None,
    ) -> int:
        """Pour a cup.

        Args:
            cup: Cup to fill. It must be empty.
            number: Cups.
            warm: Whether it is warm.
            sweet: Whether it is sweet.
            kind: What is in it.
            pair: Two shares.
            names: Of guests.
            where: Table.
        """
        return number

    heads = "CUP,--number N,--[no-]warm,--sweet,--kind tea|coffee,--pair X X,--names TEXT ...,"
    assert [flag.head for flag in flags_of(pour)] == f"{heads}--where PATH".split(",")
    text = help_text(pour, "pour")
    assert text.startswith("usage: pour CUP [OPTIONS]\n\nPour a cup.\n")
    assert "Cups [2]" in text and "Whether it is warm [on]" in text and "Table\n" in text
    assert "Cup to fill\n" in text and "It must be empty" in help_text(pour, "pour", True)


@pytest.mark.parametrize(
    ("width", "clause"),
    [
        (60, "Folder of the data, in which all lies; it must exist"),
        (40, "Folder of the data, in which all lies"),
        (30, "Folder of the data"),
        (12, "Folder of…"),
    ],
)
def test_a_long_sentence_ends_with_the_last_clause_that_fits(width, clause):
    text = "Folder of the data, in which all lies; it must exist."
    assert first_clause(text, width) == clause
