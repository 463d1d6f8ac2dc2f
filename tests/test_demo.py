"""The demo runs, in small: what it finds is measured by `make demo`."""

import runpy
from pathlib import Path

DEMO = Path(__file__).parents[1] / "examples" / "minutes" / "demo.py"


def test_the_demo_writes_a_page_on_both_sets(tmp_path, capsys):
    demo = runpy.run_path(str(DEMO))
    small = {"length": 8, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2}
    width = {"model_options": {"hidden_size": 4}, "epochs": 1, "batch_size": 400}
    given = {"adding": {**width, "task_options": small}, "digits": width}
    sets = {task: {**options, "given": given[task]} for task, options in demo["SETS"].items()}
    found = demo["run"](tmp_path, sets, jobs=1)
    assert [one.plan.title for one in found] == ["adding", "digits"]
    assert [len(one.standings) for one in found] == [2, 5]
    assert not any(one.failures for one in found)
    assert "Learning" not in (page := (tmp_path / "report.html").read_text())
    assert "adding" in page and "digits" in page and "wrote" in capsys.readouterr().out
