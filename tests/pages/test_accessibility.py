"""What axe finds in the pages that commands write: nothing, wide and narrow, light and dark.

Needs headless Chromium, and axe.min.js of the npm package axe-core, at ANHARMONIC_AXE.
"""

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

AXE = os.environ.get("ANHARMONIC_AXE", "")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not AXE, reason="ANHARMONIC_AXE does not name axe.min.js"),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]
RUN = """<script>axe.run().then(found => {
  document.title = JSON.stringify({
    wide: document.documentElement.scrollWidth - innerWidth,
    found: found.violations.map(one => [one.id, one.nodes.map(node => node.html.slice(0, 200))]),
  });
});</script>"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A diagnosis and a comparison of short runs."""
    from anharmonic.cli.main import main

    folder = tmp_path_factory.mktemp("pages")
    words = ["--epochs", "2", "--hidden-size", "8", "--out", str(folder), "--no-progress"]
    assert main(["train", "lem", "digits", *words]) == 0
    (run,) = folder.glob("digits-LEM-*")
    assert main(["diagnose", str(run), "--html", str(folder / "diagnosis.html")]) == 0
    compared = ["compare", "digits", "--models", "lem", "gru", "--seeds", "0", *words]
    assert main([*compared, "--html", str(folder / "comparison.html")]) == 0
    return [folder / "diagnosis.html", folder / "comparison.html"]


def look(page, width, theme, folder):
    """What axe says of a page in a window of this width."""
    text = page.read_text("utf-8")
    script = f"<script>{Path(AXE).read_text('utf-8')}</script>{RUN}</body>"
    copy = folder / "page.html"
    copy.write_text(re.sub("</body>", lambda _: script, text, count=1), "utf-8")
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900",
            f"--blink-settings=preferredColorScheme={theme}", f"--user-data-dir={folder}/chromium",
            "--virtual-time-budget=20000", "--dump-dom", f"file://{copy}",
        ],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None, done.stderr
    return json.loads(unescape(title[1]))


@pytest.mark.parametrize("theme", [0, 1], ids=["dark", "light"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("which", [0, 1], ids=["diagnosis", "comparison"])
def test_axe_finds_nothing(pages, which, width, theme, tmp_path):
    said = look(pages[which], width, theme, tmp_path)
    assert said["found"] == []
    assert said["wide"] <= 0
