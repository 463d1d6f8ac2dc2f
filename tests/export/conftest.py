import ctypes
import shutil
import subprocess

import numpy as np
import pytest

STRICT = (
    "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wconversion", "-Wdouble-promotion",
)  # fmt: skip
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1")


@pytest.fixture
def cc():
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        pytest.skip("there is no C compiler")

    def compile_with(*arguments):
        done = subprocess.run([found, *STRICT, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    return compile_with


@pytest.fixture
def check(cc):
    """Compiles an exported folder with sanitizers; its own check must agree."""

    def run(folder, *flags, math=True):
        files = [str(folder / name) for name in ("model.c", "model_test.c")]
        program = folder / "check"
        cc(*SANITIZERS, *flags, *files, *(["-lm"] if math else []), "-o", str(program))
        done = subprocess.run([program], capture_output=True, text=True)
        assert done.returncode == 0 and "agrees" in done.stdout, done.stdout + done.stderr

    return run


@pytest.fixture
def program(cc):
    """An exported folder as a function from a sequence to its outputs."""

    def load(folder, outputs, double=False):
        flags, real = (["-DMODEL_DOUBLE"], np.float64) if double else ([], np.float32)
        library = folder / f"model{''.join(flags)}.so"
        cc("-O2", "-shared", "-fPIC", *flags, str(folder / "model.c"), "-lm", "-o", str(library))
        function = ctypes.CDLL(str(library)).model_sequence
        function.restype = None

        def call(x):
            x = np.ascontiguousarray(x, real)
            found = np.zeros(outputs, real)
            start, end = (array.ctypes.data_as(ctypes.c_void_p) for array in (x, found))
            function(start, ctypes.c_long(len(x)), end)
            return found

        return call

    return load


@pytest.fixture
def trained(cli, tmp_path):
    """Trains on arrays or on the lines of a table, as users do: the file and the run's folder."""

    def train(model, content, *flags):
        file = tmp_path / ("mine.npz" if isinstance(content, dict) else "mine.csv")
        if isinstance(content, dict):
            np.savez(file, **content)
        else:
            file.write_text("\n".join(content) + "\n")
        small = () if model == "resonators" else ("--epochs", 1, "--hidden-size", 4)
        out = tmp_path / "runs" / model
        words = (*flags, *small, "--threads", 1, "--no-progress", "--out", out)
        code, _, err = cli("train", model, file, *words)
        assert code == 0, err
        (folder,) = (path for path in out.iterdir() if path.is_dir())
        return file, folder

    return train
