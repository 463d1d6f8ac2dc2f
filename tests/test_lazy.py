"""Packages whose public names are imported when they are first used."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

PACKAGES = ["", ".data", ".diagnostics", ".nn", ".pages"]


@pytest.mark.parametrize("part", PACKAGES)
def test_exports_what_it_names(part):
    name = f"anharmonic{part}"
    package = importlib.import_module(name)
    assert [n for n in package.__all__ if not hasattr(package, n)] == []
    assert dir(package) == sorted(package.__all__)
    # Importing a submodule would put it in the place of the name.
    assert not {module.name for module in pkgutil.iter_modules(package.__path__)} & {
        *package.__all__
    }
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = package.nothing


def test_packages_are_imported_when_they_are_used():
    code = """
import sys
from anharmonic.cli.main import main
assert main(["--help"]) == 0 and not {"torch", "numpy"} & set(sys.modules)
import anharmonic, anharmonic.nn, anharmonic.data
assert "torch" not in sys.modules
from anharmonic.nn import LEM
assert anharmonic.LEM is LEM
assert "anharmonic.nn.graph.graphcon" not in sys.modules
import anharmonic.pages.plots
assert main(["list"]) == 0
heavy = {"torchmetrics", "matplotlib", "pandas", "sklearn", "tyro"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
