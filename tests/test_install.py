"""Installs into fresh environments: with a compiler, without one, as a wheel and editable."""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = (".gitignore", "CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml")
COMPILER = shutil.which(os.environ.get("CC", "cc"))


@pytest.fixture
def source(tmp_path):
    """The package's sources without anything that was built."""
    built = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "src", tmp_path / "source" / "src", ignore=built)
    for part in PARTS:
        shutil.copy(ROOT / part, tmp_path / "source")
    return tmp_path / "source"


@pytest.fixture
def environment(tmp_path):
    """A fresh environment that sees the packages of this one, but not its editable installs."""
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    seen = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "seen.pth").write_text("\n".join(seen))
    return folder


def installed(environment, *words, **variables):
    """Installs with pip; what `anharmonic info` then says."""
    python = environment / "bin" / "python"
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | variables

    def run(*command):
        result = subprocess.run(
            command, cwd=environment, env=variables, capture_output=True, text=True, timeout=300
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", *words)
    found = json.loads(run(environment / "bin" / "anharmonic", "info", "--json"))
    computed = "import torch, anharmonic as ah; print(ah.LEM(2, 3)(torch.ones(4, 1, 2))[0].shape)"
    assert run(python, "-c", computed) == "torch.Size([4, 1, 3])\n"
    return found


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None or sys.platform == "win32", reason="needs a C compiler")
@pytest.mark.parametrize("flags", [(), ("--editable",)], ids=["wheel", "editable"])
def test_with_a_compiler_the_library_is_built(environment, source, flags):
    found = installed(environment, *flags, source)
    assert found["backend"] == "native"
    assert Path(found["library"]).is_relative_to(environment)
    assert found["instruction_set"] == found["instruction_sets"][-1]
    assert Path(found["package"]).is_relative_to(source if flags else environment)
    assert not list(environment.glob("**/ops/csrc"))


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--editable",)], ids=["wheel", "editable"])
@pytest.mark.parametrize(
    "variables", [{"CC": "/bin/false"}, {"SKBUILD_WHEEL_CMAKE": "false"}], ids=lambda v: min(v)
)
def test_without_a_compiler_the_reference_is_used(environment, source, flags, variables):
    # A library built by hand for another system lies in nobody's wheel.
    (source / "src" / "anharmonic" / "ops" / "libother.so").write_text("not to be packed")
    found = installed(environment, *flags, source, **variables)
    assert found["backend"] == "reference"
    assert "was not built" in found["backend_reason"]
    assert found["library"] is None and found["instruction_set"] is None
    assert not list(environment.glob("**/*other.so"))
