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
    """What axe says of a page in a window of this width; the copy lies beside it, for its links."""
    text = page.read_text("utf-8")
    script = f"<script>{Path(AXE).read_text('utf-8')}</script>{RUN}</body>"
    copy = page.with_name(f"axe-{page.name}")
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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("sphinx", reason="Sphinx is not installed; make docs brings it")
    folder = tmp_path_factory.mktemp("site")
    command = ["-b", "html", "-c", ROOT / "docs", "-d", folder / "trees", "-q", ROOT]
    subprocess.run([sys.executable, "-m", "sphinx", *command, folder / "site"], check=True)
    return folder / "site"


@pytest.mark.parametrize(
    ("width", "theme"), [(390, 0), (1280, 1)], ids=["narrow dark", "wide light"]
)
def test_axe_finds_nothing_on_the_site(site, width, theme, tmp_path):
    said = {}
    for page in sorted(site.glob("[!_]*/**/*.html")):
        if "axe-" not in page.name:
            found = look(page, width, theme, tmp_path)
            if found["found"] or found["wide"] > 0:
                said[str(page.relative_to(site))] = found
    assert len(list(site.glob("docs/*.html"))) > 20
    assert said == {}
