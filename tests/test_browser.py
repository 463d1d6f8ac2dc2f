"""The page for the browser: built by emscripten, run in Chromium, equal to PyTorch."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

FOLDER = Path(__file__).parents[1] / "examples" / "browser"


@pytest.mark.slow
def test_the_page_says_what_the_model_says(tmp_path, monkeypatch):
    if not (shutil.which("emcc") and shutil.which("chromium")):
        pytest.skip("needs emcc (emscripten) and chromium")
    monkeypatch.syspath_prepend(str(FOLDER))
    sys.modules.pop("build", None)
    import build

    page = tmp_path / "page.html"
    model = build.build(page, updates=100)
    x, classes = build.recording()
    samples = 170
    done = subprocess.run(
        [
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom",
            "--virtual-time-budget=1000", f"{page.as_uri()}?samples={samples}",
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    found = re.search(r'data-scores="(\[.*?\])"', done.stdout)
    assert found, done.stdout[-500:] + done.stderr[-500:]
    said = json.loads(found[1])
    # As the page has it: rounded to three digits.
    with torch.no_grad():
        wanted = model(torch.from_numpy(x[:samples].round(3))[None])[0]
    np.testing.assert_allclose(said, wanted, atol=0.02)  # tanh comes from a table
    assert int(np.argmax(said)) == classes[samples - 1]
    assert re.search(r"Right so far[^<]*: \d+ %", done.stdout)
