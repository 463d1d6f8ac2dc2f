"""What axe finds in the site and in pages that commands write: nothing, wide, narrow, light, dark.

Needs headless Chromium, and axe.min.js of the npm package axe-core, at ANHARMONIC_AXE.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AXE = os.environ.get("ANHARMONIC_AXE", "")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not AXE, reason="ANHARMONIC_AXE does not name axe.min.js"),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]
RUN = """<script>
const look = () => axe.run().then(found => {
  document.title = JSON.stringify({
    wide: document.documentElement.scrollWidth - innerWidth,
    found: found.violations.map(one => [one.id, one.nodes.map(node => node.html.slice(0, 200))]),
  });
});
addEventListener("load", () => setTimeout(look, 500));  // what the page's own scripts do is done
</script>"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The site, and a diagnosis and a comparison of short runs."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed; make docs brings it")
    from anharmonic.cli.main import main

    folder = tmp_path_factory.mktemp("pages")
    words = ["-b", "html", "-c", ROOT / "docs", "-d", folder / "trees", "-q", ROOT, folder / "site"]
    subprocess.run([sys.executable, "-m", "sphinx", *words], check=True)
    assert len(list(folder.glob("site/docs/*.html"))) > 20
    brief = ["--epochs", "2", "--hidden-size", "8", "--out", str(folder), "--no-progress"]
    assert main(["train", "lem", "digits", *brief]) == 0
    (run,) = folder.glob("digits-LEM-*")
    assert main(["diagnose", str(run), "--html", str(folder / "diagnosis.html")]) == 0
    compared = ["compare", "digits", "--models", "lem", "gru", "--seeds", "0", *brief]
    assert main([*compared, "--html", str(folder / "comparison.html")]) == 0
    return [*folder.glob("*.html"), *sorted(folder.glob("site/[!_]*/**/*.html"))]


@pytest.mark.parametrize("theme", [0, 1], ids=["dark", "light"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing(pages, width, theme, tmp_path):
    said = {}
    for page in pages:
        # The copy lies beside the page, for its links.
        copy = page.with_name(f"axe-{page.name}")
        script = f"<script>{Path(AXE).read_text('utf-8')}</script>{RUN}</body>"
        text = re.sub("</body>", lambda _, new=script: new, page.read_text("utf-8"), count=1)
        copy.write_text(text, "utf-8")
        done = subprocess.run(
            [
                CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
                f"--window-size={width},900", f"--blink-settings=preferredColorScheme={theme}",
                f"--user-data-dir={tmp_path}/chromium", "--virtual-time-budget=20000",
                "--dump-dom", f"file://{copy}",
            ],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
        assert title is not None, done.stderr
        found = json.loads(unescape(title[1]))
        if found["found"] or found["wide"] > 0:
            said[str(page)] = found
    assert said == {}
