"""Many runs: none twice, and one that fails or is another process's does not stop the others."""

import dataclasses

from anharmonic.train import folder as folders
from anharmonic.train import rows as module
from anharmonic.train.results import read_results
from anharmonic.train.rows import Row, fit_rows, without_results


def test_what_has_a_result_is_not_repeated(tiny, environment):
    rows = [Row(f"seed {seed}", tiny(epochs=1, seed=seed)) for seed in (0, 1, 0)]
    assert without_results(rows, []) == rows[:2]
    assert fit_rows(rows[:1], environment, say=lambda line: None) == []
    assert without_results(rows, read_results(environment.results_path)) == rows[1:2]


def test_a_row_that_fails_is_named_and_the_others_are_trained(tiny, environment, capsys):
    rows = [Row("bad", tiny(model_options={"dropout": 2.0})), Row("good", tiny(epochs=1))]
    said = []
    (failure,) = fit_rows(rows, environment, say=said.append, debug=True)
    assert failure.startswith("bad: dropout must be") and said[0] == "[1/2] bad"
    assert "Traceback" in capsys.readouterr().err
    assert [result.run for result in read_results(environment.results_path)] == [rows[1].run]


def test_a_row_of_another_process_is_no_failure(tiny, environment):
    environment = dataclasses.replace(environment, threads=1)
    rows, said = [Row("held", tiny(epochs=1)), Row("free", tiny(epochs=1, seed=4))], []
    with folders.locked(folders.run_folder(rows[0].run, environment)):
        assert fit_rows(rows, environment, say=said.append) == []
    assert "another process" in said[1]
    assert [result.run for result in read_results(environment.results_path)] == [rows[1].run]


def test_a_long_training_without_a_bar_says_now_and_then_that_it_goes_on(
    tiny, environment, monkeypatch
):
    monkeypatch.setattr(module, "_BETWEEN_LINES", 0.0)
    said = []
    fit_rows([Row("one", tiny(epochs=3))], environment, say=said.append)
    assert [line.split(",")[0].strip() for line in said[1:-1]] == ["epoch 1 of 3", "epoch 2 of 3"]
    assert "validation" in said[1]
