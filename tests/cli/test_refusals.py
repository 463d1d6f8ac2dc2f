"""Wrong words: one line that names the remedy, exit code 2, and nothing written."""

import pytest

CASES = {
    "": [
        ("trian", "did you mean 'train'"),
        ("info --jsom", "did you mean '--json'?"),
        ("info bogus", "bogus"),
    ],
    "train": [
        ("", "for example anharmonic train lem digits"),
        ("lem", "a model and a task or file first; got 'lem'; for example"),
        ("lam digits", "model must be one of 'CoRNN'"),
        ("lem digitz", "did you mean 'digits'"),
        ("lem file", "task must be one of"),
        ("lem no.npz", "must be an existing file; got 'no.npz'"),
        ("lem mine.xls", "your own data must be a file that ends in .npz, .ts, .csv"),
        ("lem mine.arff", "got mine.arff; take the .ts files of the same archive"),
        ("--run no.json", "the file of a run's JSON; got 'no.json'"),
        ("--run damaged.json", "unknown key 'epoch'"),
        ("--run latin.json", "latin.json"),
        ("lem digits --hiden-size 3", "--hiden-size, 3; did you mean '--hidden-size'? see"),
        ("lem digits --lr abc", "got 'abc' for --lr, of the wrong kind"),
        ("unicornn digits --dt 0.1 x", "'x'"),
        ("lem digits --epochs", "--epochs"),
        ("lem digits --seed 4294967296", "seed must be"),
        ("lem digits --seeds 1 1", "seeds must be"),
        ("graphcon digits", "'digits' must be one for sequences"),
        ("lem digits --out mine.npz --hidden-size 2 --epochs 1 --no-progress", "mine.npz"),
        ("lem digits --results . --hidden-size 2 --epochs 1 --no-progress", "--results must be a"),
        ("lem a\0b.npz", "must be an existing file"),
        ("lem a\udce9.npz", "must be an existing file"),
        (f"lem {'a' * 5000}.npz", "File name too long"),
        ("lem digits --seed 5 --seeds 0 1", "--seed must be left out with --seeds; got 5"),
        ("lem digits --folds 3", "--folds must be left out, except for your own file"),
        ("lem digits --refit", "--refit must be left out, except for your own file"),
        ("lstm adding --diagnose graidents", "did you mean 'gradients'"),
        ("lem mine.npz --streaming --bidirectional True", "--bidirectional must be False with --s"),
    ],
    "compare": [
        ("", "a task or file first; got 'nothing'; for example"),
        ("--seeds 0", "got '--seeds 0'"),
        ("digits --html .", "--html must be a file; got '.'"),
        ("digits --seeds 0 1 0", "seeds must be"),
        ("digits --folds 3", "folds must be None, except for your own file; got 3"),
        ("digits --dt 1", "--dt, 1; options of one model belong to `anharmonic train"),
    ],
    "search": [
        ("", "called with a model and a task or file first; got 'nothing'"),
        ("lem-adding", "`anharmonic table ID --search`"),
        ("lem digits --folds 3", "--folds must be for your own file; got 3"),
        # Known before the first training.
        ("gru mine.npz --valid-share 0 --epochs 1 --no-progress", "validation set"),
    ],
    "predict": [
        ("", "got no RUN"),
        ("nowhere", "got no DATA"),
        ("a b superfluous", "superfluous"),
        ("nowhere mine.npz", "nowhere must be the folder of a finished run"),
        ("run mine.npz --output none/p.csv", "got 'none/p.csv'; make the folder none first"),
        ("run mine.npz --output mine.npz", "--output must be another file than the data"),
        ("run mine.npz --output link.npz", "--output must be another file than the data"),
    ],
    "diagnose": [
        ("", "got no RUN; see anharmonic diagnose --help"),
        ("nowhere", "nowhere must be the folder of a finished run"),
        ("begun", "finish the run: anharmonic train --run begun/run.json"),
        ("begun --htlm x", "--html"),
        ("mine.npz", "must be the folder of a finished run"),
    ],
    "export": [
        ("nowhere", "--c"),
        ("nowhere --c program", "nowhere must be the folder of a finished run"),
        ("nowhere --c program --weights int16", "--weights int16 needs --data"),
        ("nowhere --onnx program --weights int8", "--weights must be left out without --c"),
        ("nowhere --torch program --data mine.npz", "--data must be left out without --c"),
        ("nowhere --c program --data mine.npz", "--data must be left out for --weights float"),
        ("nowhere --onnx program --portable", "--portable must be left out without --torch"),
    ],
    "table": [
        ("demo --length -5 --dry-run", "length"),
        ("demo --seeds 1 1 --dry-run", "seeds must be"),
    ],
    "figure": [("g2-mad --form gif", "form")],
}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        pytest.param(
            f"{name} {words}",
            text,
            id=f"{name} {words[:60]}: {text}",
            marks=[pytest.mark.papers] if name in ("table", "figure") else [],
        )
        for name, cases in CASES.items()
        for words, text in cases
    ],
)
def test_wrong_words_are_one_line_and_exit_code_2(cli, data, tmp_path, words, text):
    if words.startswith("search"):
        pytest.importorskip("optuna")
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "run.json").write_text("{}")
    (tmp_path / "damaged.json").write_text('{"task": "adding", "model": "LEM", "epoch": 3}')
    (tmp_path / "latin.json").write_bytes(b"\xff\xfe{")
    (tmp_path / "link.npz").symlink_to(data)
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    code, out, err = cli(*words.split())
    said = [line for line in err.splitlines() if not line.startswith("Chosen from the data")]
    assert (code, out, len(said)) == (2, "", 1), err
    assert said[0].startswith("anharmonic: error: ") and text in said[0]
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before
