"""The C files of the runtime, and how they are put around a model."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.export import write as writer
from anharmonic.export import write_c
from anharmonic.export.c import drawn_examples
from anharmonic.export.plan import plan
from anharmonic.export.write import RUNTIME, Program, write_sources
from anharmonic.nn.resonators.draw import POOLS

FILES = ("model.h", "model.c", "model_test.c")
PREPARATION = Preprocessing(
    (1.0, 10.0), (2.0, 5.0), True, "forward", masked=(1,), difference=(1.0, 0.5)
)


def model(layer="LEM", input_size=2, **options):
    torch.manual_seed(0)
    made = ah.SequenceModel(layer, input_size, 3, hidden_size=4, **options)
    return made.eval().requires_grad_(False)


@pytest.mark.covering
@pytest.mark.parametrize("weights", ["float", "int16"])
@pytest.mark.parametrize("layer", ["LEM", "UnICORNN"])
def test_the_program_is_what_the_compiler_makes_of_the_runtime(
    tmp_path, cc, layer, weights, monkeypatch
):
    """The same code comes of the runtime as it is, where the compiler decides every condition."""
    kept = {}

    def keep(self, *words):
        kept["program"] = self
        return sources(self, *words)

    sources = Program.sources
    monkeypatch.setattr(Program, "sources", keep)
    made = model(layer, PREPARATION.size, num_layers=2, readout="mean", patch=2)
    x = drawn_examples(plan(made, PREPARATION))
    write_c(made, tmp_path, preparation=PREPARATION, weights=weights, calibration=x)
    assert not re.search(r"^#if (?!def)", (tmp_path / "model.c").read_text(), re.MULTILINE)
    program, raw = kept["program"], tmp_path / "raw"
    shutil.copytree(RUNTIME, raw)
    flags = "".join(f"#define {name} 1\n" for name in sorted(program.flags))
    numbers = writer.defines({f"MODEL_{name}": n for name, n in program.numbers.items()})
    (raw / "config.h").write_text(flags + numbers)
    (raw / "table.h").write_text(program.table)
    constants = writer.defines(program.constants, "model_real")
    arrays = "\n".join([constants, *program.arrays])
    (raw / "weights.h").write_text(arrays)
    codes = []
    for folder in (tmp_path, raw):
        cc("-O1", "-S", "-o", str(folder / "model.s"), str(folder / "model.c"))
        codes.append((folder / "model.s").read_text())
    assert codes[0] == codes[1]


@pytest.mark.parametrize("options", [{}, {"lut": True}], ids=["math.h", "table"])
def test_float_programs_hold_no_double_constant(tmp_path, cc, options):
    """A Cortex-M4 computes doubles in software."""
    write_c(model("LEM", PREPARATION.size), tmp_path, preparation=PREPARATION, **options)
    cc("-Wunsuffixed-float-constants", "-c", str(tmp_path / "model.c"), "-o", str(tmp_path / "o"))


def test_constants_are_rounded_as_numpy_does(tmp_path, cc):
    rng = np.random.default_rng(0)
    single = rng.normal(size=100).astype(np.float32)
    halfway = (single.astype(np.float64) + np.nextafter(single, np.float32(9))) / 2
    values = np.concatenate([single, halfway, rng.normal(size=100), [0.0, 1e-300, 1e-40, 1e30]])
    text = (RUNTIME / "float.h").read_text()
    macro = text[: text.index("#if TANH")]
    for real, flags in (("float", ()), ("double", ("-DMODEL_DOUBLE",))):
        source = f"typedef {real} model_real;\n#define MODEL_FLASH\n{macro}"
        source += writer.array("model_real", "values", values).replace("static ", "")
        (tmp_path / "values.c").write_text(source)
        library = tmp_path / f"{real}.so"
        cc(*flags, "-shared", "-fPIC", str(tmp_path / "values.c"), "-o", str(library))
        kind = {"float": ctypes.c_float, "double": ctypes.c_double}[real] * len(values)
        found = np.array(kind.in_dll(ctypes.CDLL(str(library)), "values"))
        np.testing.assert_array_equal(found, values.astype(found.dtype))


def test_every_name_in_a_condition_of_the_runtime_is_set_somewhere():
    text = "".join(path.read_text() for path in RUNTIME.iterdir())
    asked = set(re.findall(r"^#if !?([A-Z]\w*)$", text, re.MULTILINE))
    setters = ("c_program.py", "traced.py", "write.py")
    code = "".join((RUNTIME.parent / name).read_text() for name in setters)
    formed = {f"POOL_{name.upper()}" for name in POOLS}
    assert {name for name in asked - formed - {"INT8"} if f'"{name}"' not in code} == set()


def test_a_file_of_the_user_is_not_replaced(tmp_path):
    (tmp_path / "model.c").write_text("int main(void) { return 0; }\n")
    with pytest.raises(FileExistsError, match=r"model\.c .*that anharmonic wrote.*another folder"):
        write_c(model(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.c"]
    assert (tmp_path / "model.c").read_text() == "int main(void) { return 0; }\n"
    (tmp_path / "model.c").unlink()
    (tmp_path / "model_test.c").mkdir()
    with pytest.raises(FileExistsError, match=r"model_test\.c"):
        write_c(model(), tmp_path)
    assert not (tmp_path / "model.c").exists()


def test_an_earlier_export_is_replaced(tmp_path):
    # Before 0.2 the mark stood in the second line of a header.
    (tmp_path / "model.h").write_text("/* 2 channels; 3 outputs\n * Written by anharmonic 0.1.0.\n")
    write_c(model(), tmp_path)
    first = (tmp_path / "model.c").read_text()
    assert all("Written by anharmonic" in (tmp_path / n).read_text()[:80] for n in FILES)
    write_c(model("GRU"), tmp_path)
    assert (tmp_path / "model.c").read_text() != first
    with pytest.raises(FileExistsError, match="folder"):
        write_sources({}, tmp_path / "model.c")


@pytest.mark.parametrize("weights", ["float", "int16"])
def test_clang_tidy_finds_nothing(tmp_path, weights):
    if shutil.which("clang-tidy") is None:
        pytest.skip("needs clang-tidy")
    made = model("LEM", PREPARATION.size)
    x = drawn_examples(plan(made, PREPARATION))
    write_c(made, tmp_path, preparation=PREPARATION, weights=weights, calibration=x)
    off = ("easily-swappable-parameters", "narrowing-conversions")
    off += ("implicit-widening-of-multiplication-result",)
    checks = "--checks=-*,clang-analyzer-*,bugprone-*" + "".join(f",-bugprone-{c}" for c in off)
    words = ("clang-tidy", checks, "--warnings-as-errors=*", *FILES[1:], "--", "-std=c99")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
