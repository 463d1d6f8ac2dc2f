"""The pages of results in the repository are those that the command writes."""

import shutil
from pathlib import Path

import pytest

from anharmonic_papers.report.markdown_pages import PAPERS

ROOT = Path(__file__).parents[3]
PAGES = ["README.md", "papers/docs/results.md"]
PAGES += [f"papers/docs/results/{name}.md" for name in PAPERS]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with the stored results and pictures, in which the command ran."""
    from anharmonic.cli.main import main

    folder = tmp_path_factory.mktemp("checkout")
    (folder / "papers" / "docs").mkdir(parents=True)
    for name in ("papers/results", "papers/docs/pictures"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "README.md", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["report", "--into", "README.md", "--markdown", "papers/docs/results.md"]) == 0
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_the_command_writes(page, written):
    stored = (ROOT / page).read_text("utf-8")
    advice = "run `anharmonic report --into README.md --markdown papers/docs/results.md`"
    assert (written / page).read_text("utf-8") == stored, advice
