"""Beside the folders of a site's versions: the list the switcher reads, the way to the newest.

    python tools/site_versions.py FOLDER URL

FOLDER holds a built site for each version (0.1.0, 0.2.0, ... and dev, the newest commit); URL is
where FOLDER is published. Writes versions.json and index.html into FOLDER.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

DEV = "dev"
REDIRECT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>anharmonic</title>
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<a href="{newest}/index.html">anharmonic</a>
</html>
"""


def write_versions(folder: Path, url: str) -> list[str]:
    """Writes both files and returns the versions, the newest release first, dev last."""
    names = [path.parent.name for path in folder.glob("*/index.html")]
    releases = [name for name in names if name.replace(".", "").isdigit()]
    releases.sort(key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    names = releases + [DEV] * (DEV in names)
    if not names:
        raise SystemExit(
            f"{folder} holds no version: expected folders like 0.1.0 with a built site"
        )
    listed = [{"name": name, "version": name, "url": f"{url}/{name}/"} for name in names]
    listed[0]["preferred"] = True
    (folder / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", "utf-8")
    (folder / "index.html").write_text(REDIRECT.format(newest=names[0]), "utf-8")
    return names


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    print(*write_versions(Path(sys.argv[1]), sys.argv[2].rstrip("/")))
