import csv
import json
import shutil
import subprocess

import numpy as np
import pytest
import torch

# Prints the class of each of forty sequences.
PROGRAM = """#include <stdio.h>
#include <math.h>
#include "model.h"
static const float x[] = {{{numbers}}};
int main(void) {{
  int n;
  for (n = 0; n < 40; n++) {{
    model_real out[MODEL_OUTPUTS];
    model_sequence(x + n * 60, 30, out);
    puts(model_classes[model_largest(out)]);
  }}
  return 0;
}}
"""


def test_a_trained_run_becomes_c_that_predicts_the_same(cli, train, tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("there is no C compiler")

    def exported(*words):
        code, out, err = cli("export", folder, *words)
        assert code == 0, err
        return out

    def compiled(place, name):
        files = [str(tmp_path / place / file) for file in ("model.c", f"{name}.c")]
        program = tmp_path / place / name
        subprocess.run(["gcc", "-std=c99", *files, "-lm", "-o", program], check=True)
        return subprocess.run([program], capture_output=True, text=True, check=True).stdout

    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 20)
    x = rng.normal(size=(40, 30, 2)).astype("f4") + label[:, None, None].astype("f4")
    x[rng.random(x.shape) < 0.05] = np.nan
    np.savez(tmp_path / "data.npz", x=x, y=np.array(["low", "high"])[label])
    flags = ("--missing", "forward", "--difference", "True", "--bidirectional", "False")
    folder, _ = train("lem", "data.npz", *flags)
    assert json.loads((folder / "task.json").read_text())["class_names"] == ["high", "low"]
    assert cli("predict", folder, "data.npz", "--output", "p.csv")[0] == 0
    predicted = [row["prediction"] for row in csv.DictReader((tmp_path / "p.csv").open())]
    assert "model.h" in exported("--c", "c")
    numbers = ",".join("NAN" if np.isnan(v) else repr(float(v)) for v in x.ravel())
    (tmp_path / "c" / "all.c").write_text(PROGRAM.format(numbers=numbers))
    assert compiled("c", "all").split() == predicted
    assert "m.pt2" in exported("--torch", "m.pt2")
    found = torch.export.load(tmp_path / "m.pt2").module()(torch.from_numpy(x))[0]
    assert [["high", "low"][k] for k in found.argmax(dim=1).tolist()] == predicted
    exported("--c", "int8", "--weights", "int8", "--data", "data.npz")
    compiled("int8", "model_test")
