"""How C files are put around a model, and where they are written."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.export import write_c
from anharmonic.export.c import drawn_examples
from anharmonic.export.plan import plan
from anharmonic.export.write import RUNTIME, array, write_sources

FILES = ("model.h", "model.c", "model_test.c")


def model(layer="LEM"):
    torch.manual_seed(0)
    return ah.SequenceModel(layer, 5, 3, hidden_size=4).eval().requires_grad_(False)


@pytest.fixture(params=[{}, {"lut": True}, {"weights": "int16"}], ids=["math.h", "table", "int16"])
def prepared(tmp_path, request):
    """The folder of a model in C that prepares its samples."""
    how = Preprocessing((1.0, 10.0), (2.0, 5.0), True, "forward", (1,), difference=(1.0, 0.5))
    x = drawn_examples(plan(model(), how))
    write_c(model(), tmp_path, preparation=how, calibration=x, **request.param)
    return tmp_path


def test_float_programs_hold_no_double_constant(prepared, cc):
    """A Cortex-M4 computes doubles in software."""
    cc("-Wunsuffixed-float-constants", "-c", str(prepared / "model.c"), "-o", str(prepared / "o"))


def test_clang_tidy_finds_nothing(prepared):
    if shutil.which("clang-tidy") is None:
        pytest.skip("needs clang-tidy")
    off = ("easily-swappable-parameters", "narrowing-conversions")
    off += ("implicit-widening-of-multiplication-result",)
    checks = "--checks=-*,clang-analyzer-*,bugprone-*" + "".join(f",-bugprone-{c}" for c in off)
    words = ("clang-tidy", checks, "--warnings-as-errors=*", *FILES[1:], "--", "-std=c99")
    done = subprocess.run(words, cwd=prepared, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("real", "flags"), [("float", ()), ("double", ("-DMODEL_DOUBLE",))])
def test_constants_are_rounded_as_numpy_does(tmp_path, cc, real, flags):
    rng = np.random.default_rng(0)
    single = rng.normal(size=100).astype(np.float32)
    halfway = (single.astype(np.float64) + np.nextafter(single, np.float32(9))) / 2
    values = np.concatenate([single, halfway, rng.normal(size=100), [0.0, 1e-300, 1e-40, 1e30]])
    macro = (RUNTIME / "float.h").read_text().partition("#if TANH")[0]
    source = f"typedef {real} model_real;\n#define MODEL_FLASH\n{macro}"
    source += array("model_real", "values", values).replace("static ", "")
    (tmp_path / "values.c").write_text(source)
    cc(*flags, "-shared", "-fPIC", str(tmp_path / "values.c"), "-o", str(tmp_path / "values.so"))
    kind = {"float": ctypes.c_float, "double": ctypes.c_double}[real] * len(values)
    found = np.array(kind.in_dll(ctypes.CDLL(str(tmp_path / "values.so")), "values"))
    np.testing.assert_array_equal(found, values.astype(found.dtype))


def test_an_earlier_export_is_replaced_and_a_file_of_the_user_is_not(tmp_path):
    path = tmp_path / "model.c"
    path.write_text("int main(void) { return 0; }\n")
    with pytest.raises(FileExistsError, match=r"model\.c .*that anharmonic wrote.*another folder"):
        write_c(model(), tmp_path)
    assert [path] == list(tmp_path.iterdir())
    assert path.read_text() == "int main(void) { return 0; }\n"
    with pytest.raises(FileExistsError, match="folder"):
        write_sources({}, path)
    path.unlink()
    (tmp_path / "model_test.c").mkdir()
    with pytest.raises(FileExistsError, match=r"model_test\.c"):
        write_c(model(), tmp_path)
    assert not path.exists()
    (tmp_path / "model_test.c").rmdir()
    # Before 0.2 the mark stood in the second line of a header.
    (tmp_path / "model.h").write_text("/* 2 channels; 3 outputs\n * Written by anharmonic 0.1.0.\n")
    write_c(model(), tmp_path)
    first = path.read_text()
    assert all("Written by anharmonic" in (tmp_path / n).read_text()[:80] for n in FILES)
    write_c(model("GRU"), tmp_path)
    assert path.read_text() != first
