import json
import re
from importlib import metadata

import pytest
import torch

import anharmonic
from anharmonic.ops import library


@pytest.fixture(autouse=True)
def nothing_forced(monkeypatch):
    for name in ("ANHARMONIC_BACKEND", "ANHARMONIC_INSTRUCTION_SET", "ANHARMONIC_DATA"):
        monkeypatch.delenv(name, raising=False)


def test_info_says_what_is_there(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("ANHARMONIC_DATA", str(tmp_path))
    code, out, err = cli("info")
    assert code == 0 and err == ""
    said = dict(line.split("  ", 1) for line in out.splitlines())
    said = {name: value.strip() for name, value in said.items()}
    assert said["anharmonic"].startswith(f"{anharmonic.__version__} (")
    assert said["PyTorch"] == torch.__version__
    assert said["threads"] == str(torch.get_num_threads())
    assert said["data folder"] == f"{tmp_path} (from ANHARMONIC_DATA)"
    if library.library() is None:
        assert said["CPU backend"] == f"reference ({library.why_not()})"
    else:
        assert said["CPU backend"].startswith("native (")
        assert said["C library"] == str(library.path())
        assert said["instruction set"].startswith(f"{library.instruction_set()} (best; ")


def test_info_names_optional_packages(cli, monkeypatch):
    def version(name):
        if name == "optuna":
            raise metadata.PackageNotFoundError(name)
        return f"version of {name}"

    monkeypatch.setattr(metadata, "version", version)
    out = cli("info")[1]
    assert re.search(r"^optuna +not installed$", out, re.MULTILINE)
    assert re.search(r"  version of torch_geometric$", out, re.MULTILINE)


def test_info_as_json(cli):
    found = json.loads(cli("info", "--json")[1])
    assert found["anharmonic"] == anharmonic.__version__
    assert found["backend"] == ("reference" if library.library() is None else "native")
    assert found["instruction_set"] == library.instruction_set()
    assert found["instruction_sets"] == list(library.available())
    assert not found["instruction_set_forced"] and not found["data_named"]


def test_info_without_a_library(cli, library_at):
    library_at(None)
    out = cli("info")[1]
    assert "CPU backend      reference (libanharmonic.so was not built when" in out
    assert "C library        none\ninstruction set  none\n" in out


@pytest.mark.skipif(library.library() is None, reason=f"no C library: {library.why_not()}")
def test_info_says_what_is_forced(cli, library_at, monkeypatch):
    monkeypatch.setenv("ANHARMONIC_BACKEND", "reference")
    monkeypatch.setenv("ANHARMONIC_INSTRUCTION_SET", library.available()[0])
    library_at(library.path())
    out = cli("info")[1]
    assert "CPU backend      reference (forced by ANHARMONIC_BACKEND)\n" in out
    assert f"{library.available()[0]} (forced by ANHARMONIC_INSTRUCTION_SET; " in out


@pytest.mark.parametrize("name", ["ANHARMONIC_BACKEND", "ANHARMONIC_INSTRUCTION_SET"])
def test_info_refuses_what_cannot_be_forced(cli, library_at, monkeypatch, name):
    monkeypatch.setenv(name, "quick")
    library_at(library.path())
    code, _, err = cli("info")
    assert code == 2 and err.startswith(f"anharmonic: error: {name} ") and "'quick'" in err


def test_info_help_and_unknown_words(cli):
    assert cli("info", "--help")[1].startswith("usage: anharmonic info [--json]\n")
    code, _, err = cli("info", "--jsom")
    assert code == 2 and "did you mean '--json'?" in err
