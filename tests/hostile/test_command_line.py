"""Wrong words on the command line: one clear error.

Values that runs, environments and layers refuse are in test_more_calls.py and test_layers.py.
"""

import pytest

TRAIN = ("train", "lem", "digits")
WORDS = {
    "command": ("bogus",),
    "no data": ("train", "lem"),
    "model": ("train", "transformer", "digits"),
    "task": ("train", "lem", "bogus"),
    "graph model on sequences": ("train", "graphcon", "digits"),
    "sequence model on a graph": ("train", "lem", "cora"),
    "flag": (*TRAIN, "--bogus", "1"),
    "epochs x": (*TRAIN, "--epochs", "x"),
    "lr nan": (*TRAIN, "--lr", "nan"),
    "seed 2**32": (*TRAIN, "--seed", str(2**32)),
    "hidden 10**15": (*TRAIN, "--hidden-size", str(10**15), "--epochs", "1"),
    "devices 3": (*TRAIN, "--devices", "3", "--epochs", "1"),
    "diagnose of graphs": (*TRAIN, "--diagnose", "smoothing", "--epochs", "1"),
    "out a file": (*TRAIN, "--out", "/etc/passwd", "--epochs", "1", "--hidden-size", "2"),
    "results a folder": (*TRAIN, "--results", "/tmp", "--epochs", "1", "--hidden-size", "2"),
    "no run": ("train", "--run", "none.json"),
    "predict batch 0": ("predict", "none", "x.npz", "--batch-size", "0"),
    "predict to nowhere": ("predict", "none", "x.npz", "--output", "/nowhere/x.csv"),
    "diagnose a file": ("diagnose", "/etc/passwd"),
    "compare no file": ("compare", "none.csv"),
    "compare models": ("compare", "digits", "--models", "bogus"),
    "compare epochs": ("compare", "digits", "--epochs", "0"),
    "search storage": ("search", "lem", "digits", "--storage", "sqlite://"),
    "train seeds": ("train", "lem", "digits", "--seeds", "1", "1"),
    "compare seeds": ("compare", "digits", "--seeds", "0", "1", "0"),
    "search model": ("search", "bogus", "digits"),
    "list": ("list", "bogus"),
    "info": ("info", "bogus"),
    "NUL in a path": ("train", "lem", "a\0b.npz"),
    "no UTF-8 in a path": ("train", "lem", "a\udce9.npz"),
    "a path of 5000": ("train", "lem", "a" * 5000 + ".npz"),
}
PAPERS = {
    "table": ("table", "bogus"),
    "table rows": ("table", "demo", "--rows", "bogus", "--dry-run"),
    "table epochs": ("table", "demo", "--epochs", "0", "--dry-run"),
    "table length": ("table", "demo", "--length", "-5", "--dry-run"),
    "table seeds": ("table", "demo", "--seeds", "-1", "--dry-run"),
    "table a seed twice": ("table", "demo", "--seeds", "1", "1", "--dry-run"),
    "report": ("report", "bogus"),
    "report results": ("report", "demo", "--results", "/nowhere"),
    "report page": ("report", "demo", "--html", "/nowhere/x.html"),
    "figure": ("figure", "bogus"),
    "figure form": ("figure", "g2-mad", "--form", "gif"),
    "theory": ("theory", "bogus"),
    "theory chapter": ("theory", "--chapter", "bogus"),
}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_words(words, refused_by_command):
    refused_by_command(*words)


@pytest.mark.papers
@pytest.mark.parametrize("words", PAPERS.values(), ids=PAPERS)
def test_words_of_the_papers(words, refused_by_command):
    refused_by_command(*words)


def test_output_on_a_full_disk(process):
    code, _, error = process("list", "models", stdout="/dev/full")
    assert code in (1, 2) and "space" in error and "Traceback" not in error, error


def test_closed_output(process):
    code, _, error = process("list", "models", before="os.close(1); sys.stdout = None")
    assert code in (0, 1, 2) and "Traceback" not in error and "unexpected" not in error, error


def test_a_reader_that_leaves(process):
    pipe = "read, write = os.pipe(); os.close(read); os.dup2(write, 1); sys.stdout = open(1, 'w')"
    code, _, error = process("list", before=pipe)
    assert code == 0 and not error, error
