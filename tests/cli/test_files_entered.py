"""How much of the package a command runs through."""

import json
from pathlib import Path

import pytest

import anharmonic

# Counts files of which a function is entered, and files of which anything runs.
COUNT = """
import inspect, json, sys
root, called, run = sys.argv.pop(1), set(), set()

def look(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root):
        run.add(code.co_filename)
        if code.co_flags & inspect.CO_OPTIMIZED:  # a function, and no body of a module or class
            called.add(code.co_filename)

sys.setprofile(look)
from anharmonic.cli.main import main
code = main(sys.argv[1:])
sys.setprofile(None)
print(json.dumps([code, sorted(called), sorted(run)]))
"""


@pytest.mark.slow
def test_training_on_a_file_runs_through_few_files(tmp_path, monkeypatch, run_python):
    monkeypatch.chdir(tmp_path)
    rows = [f"s{n},{t},{(1 + n % 2) * (t % 3)},{'ab'[n % 2]}" for n in range(40) for t in range(12)]
    (tmp_path / "mine.csv").write_text("\n".join(["series,time,x,label", *rows]) + "\n")
    root = str(Path(anharmonic.__file__).parent) + "/"
    done = run_python(COUNT, root, "train", "lem", "mine.csv", "--epochs", "1")
    code, *names = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    called, run = ([name.removeprefix(root) for name in part] for part in names)
    assert len(called) <= 60, called
    assert len(run) <= 90, run
    others = [name for name in run if "nn/graph" in name or "nn/ode" in name or "resonator" in name]
    assert others == []
