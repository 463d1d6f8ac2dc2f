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


needs_library = pytest.mark.skipif(
    library.library() is None, reason=f"no C library: {library.why_not()}"
)


@needs_library
def test_info_says_what_is_there(cli, monkeypatch, tmp_path):
    def version(name):
        if name == "optuna":
            raise metadata.PackageNotFoundError(name)
        return f"version of {name}"

    found = json.loads(cli("info", "--json")[1])
    assert found["instruction_sets"] == list(library.available())
    assert not found["instruction_set_forced"] and not found["data_named"]
    monkeypatch.setenv("ANHARMONIC_DATA", str(tmp_path))
    monkeypatch.setattr(metadata, "version", version)
    code, out, err = cli("info")
    assert code == 0 and err == ""
    said = dict(re.split("  +", line, maxsplit=1) for line in out.splitlines())
    assert said["anharmonic"].startswith(f"{found['anharmonic']} (")
    assert found["anharmonic"] == anharmonic.__version__
    assert said["PyTorch"] == torch.__version__
    assert said["threads"] == str(torch.get_num_threads())
    assert said["data folder"] == f"{tmp_path} (from ANHARMONIC_DATA)"
    assert said["optuna"] == "not installed"
    assert said["torch_geometric"] == "version of torch_geometric"
    assert said["CPU backend"].startswith("native (") and found["backend"] == "native"
    assert said["C library"] == str(library.path())
    assert said["instruction set"].startswith(f"{library.instruction_set()} (best; ")
    assert found["instruction_set"] == library.instruction_set()
    kind = found["bfloat16"]
    assert said["bfloat16"] == (f"products by {kind}" if kind else "none")
    assert (kind is None) != library.has_bfloat16()


def test_info_without_a_library(cli, library_at):
    library_at(None)
    out = cli("info")[1]
    assert "CPU backend      reference (libanharmonic.so was not built when" in out
    assert "C library        none\ninstruction set  none\nbfloat16         none\n" in out


@needs_library
def test_info_says_what_is_forced(cli, library_at):
    first = library.available()[0]
    forced = {"ANHARMONIC_BACKEND": "reference", "ANHARMONIC_INSTRUCTION_SET": first}
    library_at(library.path(), **forced)
    out = cli("info")[1]
    assert "CPU backend      reference (forced by ANHARMONIC_BACKEND)\n" in out
    assert f"{first} (forced by ANHARMONIC_INSTRUCTION_SET; " in out


@pytest.mark.parametrize("name", ["ANHARMONIC_BACKEND", "ANHARMONIC_INSTRUCTION_SET"])
def test_info_refuses_what_cannot_be_forced(refused, library_at, name):
    library_at(library.path(), **{name: "quick"})
    assert re.match(f"anharmonic: error: {name} .*'quick'", refused("info"))
